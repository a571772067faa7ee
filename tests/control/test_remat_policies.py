"""What policies of checkpoint keep inside of branches and loops."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

policies = gradix.checkpoint_policies
W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
X = np.linspace(0, 1, 8, dtype=np.float32).reshape(2, 4)


def branch(w, x, index=1):
    def two(x):
        return jnp.sin(x @ w) @ w

    return jnp.sin(lax.switch(index, [lambda x: jnp.cos(x @ w), two, lambda x: x], x)).sum()


def loop(w, x):
    return lax.scan(lambda c, _: (jnp.sin(c @ w), jnp.tanh(c)), x, None, length=3)[0].sum()


def nested(w, x):
    def step(c, i):
        return lax.cond(i % 2 == 0, lambda c: jnp.sin(c @ w), lambda c: jnp.cos(c), c), None

    return gradix.jit(lambda x: lax.scan(step, x, jnp.arange(4))[0].sum())(x)


FUNCTIONS = {"branch": branch, "loop": loop, "nested": nested}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "policy",
    [policies.dots_saveable, policies.everything_saveable, lambda prim, *_, **__: prim.name == "sin"],
    ids=["dots", "everything", "sines"],
)
def test_derivatives_are_those_of_the_function(name, policy):
    f = FUNCTIONS[name]
    kept = gradix.checkpoint(f, policy=policy)
    expected = gradix.grad(f, (0, 1))(W, X)
    for got in (gradix.grad(kept, (0, 1))(W, X), gradix.jit(gradix.grad(kept, (0, 1)))(W, X)):
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    rows = gradix.vmap(gradix.grad(kept), (None, 0))(W, X[:, None])
    np.testing.assert_allclose(rows, gradix.vmap(gradix.grad(f), (None, 0))(W, X[:, None]), rtol=1e-5, atol=1e-6)


def test_branches_chosen_for_each_example_and_second_derivatives():
    kept = gradix.checkpoint(branch, policy=policies.dots_saveable)
    index = jnp.array([0, 1, 2])
    rows = jnp.stack([X, X + 1, X - 1])
    for f, g in ((kept, branch),):
        one, other = [gradix.vmap(gradix.grad(h), (None, 0, 0))(W, rows, index) for h in (f, g)]
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        one, other = [gradix.hessian(lambda x, h=h: h(W, x))(X) for h in (f, g)]
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def _products(f, policy, *args) -> int:
    pull = gradix.vjp(gradix.checkpoint(f, policy=policy), *args)[1]
    return str(gradix.make_jaxpr(pull)(jnp.float32(1))).count("dot_general")


@pytest.mark.parametrize(
    "f, args", [(lambda w, x, i: branch(w, x, i), (W, X, jnp.int32(1))), (loop, (W, X))], ids=["branch", "loop"]
)
def test_what_is_kept_is_not_computed_again(f, args):
    w = args[0]
    of = lambda policy: _products(lambda w, x: f(w, x, *args[2:]), policy, w, args[1])
    assert of(policies.everything_saveable) == of(policies.dots_saveable) < of(None)


COSINES = lambda prim, *_, **__: prim.name == "cos"  # noqa: E731  (what derivatives of sines read)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.sin(jnp.sin(x)),
        lambda x: lax.scan(lambda c, _: (jnp.sin(c), jnp.sin(c)), x, None, length=3)[1].sum(),
        lambda x: lax.cond(x > 0, jnp.sin, lambda x: x, x),
        gradix.jit(lambda x: jnp.sin(jnp.sin(x))),
    ],
    ids=["operations", "scan", "cond", "jit"],
)
def test_policies_are_asked_about_what_derivatives_read(f):
    kept = gradix.checkpoint(f, policy=COSINES)
    push = gradix.linearize(kept, 3.0)[1]
    text = str(gradix.make_jaxpr(push)(1.0))
    assert " sin " not in text
    assert " cos " not in text
    again = str(
        gradix.make_jaxpr(gradix.linearize(gradix.checkpoint(f, policy=policies.nothing_saveable), 3.0)[1])(1.0)
    )
    assert " cos " in again
    for g in (gradix.grad, lambda f: gradix.jit(gradix.grad(f)), lambda f: gradix.grad(gradix.grad(f))):
        np.testing.assert_allclose(g(kept)(0.5), g(f)(0.5), rtol=1e-5)


def test_only_what_is_read_is_kept():
    f = gradix.checkpoint(lambda x: jnp.exp(jnp.sin(x)) + jnp.floor(x), policy=policies.everything_saveable)
    kept = gradix.linearize(f, 0.5)[1].jaxpr
    assert [e.primitive.name for e in kept.eqns] == ["remat2"]
    assert len(kept.eqns[0].invars) <= 4  # the input, the cosine, the exponential and the tangent
    assert " floor " not in str(kept)
