"""`jit(f, symbolic=...)`: one trace for all sizes, a program for each."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

RNG = np.random.default_rng(0)


def traced_once(fn, spec, *sizes, make=lambda n: (RNG.normal(size=n).astype("f4"),)):
    """The function under `symbolic`, checked against the plain one at several sizes; it must be traced once."""
    calls = []

    def counted(*args):
        calls.append(1)
        return fn(*args)

    f = gradix.jit(counted, symbolic=spec)
    for n in sizes:
        args = make(n)
        for have, want in zip(gradix.tree.leaves(f(*args)), gradix.tree.leaves(gradix.jit(fn)(*args))):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
            assert have.dtype == want.dtype and have.weak_type == want.weak_type
    assert len(calls) == 1 and f.stats().traces == 1 and f.stats().compiles == len(set(sizes))
    return f


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.sum() / x.shape[0],
        lambda x: jnp.concatenate([x[1:], x[:1]]) * jnp.arange(x.shape[0]),
        lambda x: lax.scan(lambda c, r: (c + r, c * r), 0.0, x),
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0),
        lambda x: gradix.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2) / x.shape[0])(x),
        lambda x: gradix.vmap(lambda v: v * x.mean())(x),
        lambda x: (jnp.var(x), jnp.median(x), jnp.sort(x)[::-1], jnp.pad(x, 1, mode="edge")),
        lambda x: gradix.jit(lambda y: y[::2])(x),
    ],
)
def test_one_trace_serves_all_sizes(fn):
    traced_once(fn, "n", 1, 4, 7, 4)


def test_trees_and_prefixes_of_arguments():
    def step(params, batch):
        return {"loss": jnp.mean((batch["x"] @ params["w"] + params["b"] - batch["y"]) ** 2), "n": batch["x"].shape[0]}

    params = {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}
    make = lambda n: (params, {"x": RNG.normal(size=(n, 3)).astype("f4"), "y": np.ones((n, 2), "f4")})
    traced_once(step, (None, "b, _"), 2, 5, make=make)
    traced_once(step, (None, {"x": "b, ...", "y": "b, 2"}), 1, 6, make=make)


def test_transformations_of_it_are_those_of_the_plain_function():
    f = gradix.jit(lambda x: jnp.sin(x).sum() * x.shape[0], symbolic="n")
    x = jnp.arange(3.0)
    np.testing.assert_allclose(gradix.grad(f)(x), 3 * jnp.cos(x), rtol=1e-6)
    np.testing.assert_allclose(gradix.vmap(f)(jnp.ones((2, 4))), np.full(2, 16 * np.sin(1.0)), rtol=1e-6)
    np.testing.assert_allclose(
        gradix.jit(lambda x: f(x) + f(x[:2]))(x), 3 * jnp.sin(x).sum() + 2 * jnp.sin(x[:2]).sum(), rtol=1e-6
    )
    assert f.stats().traces == 1
    assert str(f.eval_shape(gradix.ShapeDtypeStruct((5,), "float32"))) == "ShapeDtypeStruct(shape=(), dtype=float32)"


def test_static_arguments_trace_apart():
    f = gradix.jit(lambda x, k: x[:k] * k, static_argnums=1, symbolic=("4*n",))
    assert (
        f(jnp.ones(8), 2).tolist() == [2, 2]
        and f(jnp.ones(4), 2).tolist() == [2, 2]
        and f(jnp.ones(4), 3).shape == (3,)
    )
    assert f.stats().traces == 2


@pytest.mark.parametrize(
    ("spec", "args", "error", "message"),
    [
        ("n", (np.ones(0, "f4"),), ValueError, "Expected value >= 1 for dimension variable 'n'"),
        ("2*n", (np.ones(3, "f4"),), ValueError, "remainder 1"),
        (
            ("n", "n"),
            (np.ones(2, "f4"), np.ones(3, "f4")),
            ValueError,
            r"y.shape\[0\] \(= 3\) and the specification 'n' \(= 2\)",
        ),
        ("n, m", (np.ones(2, "f4"),), ValueError, r"args\[0\] of <lambda>.*2 dimensions"),
        (("n", "n", "n"), (np.ones(2, "f4"),), ValueError, "not a prefix of the 1 positional arguments"),
        ("n)", (np.ones(2, "f4"),), ValueError, "syntax error"),
    ],
)
def test_sizes_that_do_not_fit_are_named(spec, args, error, message):
    f = gradix.jit((lambda x: x * 2) if len(args) == 1 else (lambda x, y: (x, y)), symbolic=spec)
    with pytest.raises(error, match=message):
        f(*args)


def test_a_wrong_specification_is_refused():
    with pytest.raises(TypeError, match="symbolic= takes a text"):
        gradix.jit(lambda x: x, symbolic=3)


def test_constraints_decide_while_tracing_and_are_checked_at_calls():
    def halves(x, y):
        return (x.reshape(2, -1) if x.shape[0] >= 8 else x[None]), y[:3]

    f = gradix.jit(halves, symbolic=("n; n >= 8; mod(n, 2) == 0", "m, _; m >= 3; m <= n"))
    for n, m in ((8, 3), (10, 10), (8, 5)):
        x, y = np.arange(n, dtype="f4"), np.ones((m, 2), "f4")
        assert f(x, y)[0].tolist() == x.reshape(2, -1).tolist() and f(x, y)[1].shape == (3, 2)
    assert f.stats().traces == 1
    for n, m, broken in (
        (6, 3, r"n = 6 do not satisfy the constraint n >= 8.*x.shape\[0\] \(= 6\)"),
        (9, 3, r"n = 9 .*constraint mod\(n, 2\) == 0"),
        (8, 2, r"m = 2 .*constraint m >= 3.*y.shape\[0\] \(= 2\)"),
        (8, 9, r"m = 9, n = 8 .*constraint m <= n"),
    ):
        with pytest.raises(ValueError, match=broken):
            f(np.zeros(n, "f4"), np.zeros((m, 2), "f4"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("n; n > 8", r"symbolic='n; n > 8'.*'>='"),
        ("n; n >=", "syntax error in constraint"),
        ("n; n >= 3; n <= 2", "contradict each other"),
        (("n; n >= 3", "n; n <= 2"), "contradict each other"),
        ("n; n", "must contain one of"),
    ],
)
def test_wrong_constraints_are_refused_at_once(spec, message):
    with pytest.raises(ValueError, match=message):
        gradix.jit(lambda *xs: xs, symbolic=spec)


def test_a_constraint_on_no_axis_is_named():
    f = gradix.jit(lambda x: x, symbolic="n; k >= 3")
    with pytest.raises(ValueError, match="constrains 'k', which no axis"):
        f(np.ones(3, "f4"))
    assert gradix.jit(lambda x: x + 1, symbolic="n;")(np.ones(2, "f4")).tolist() == [2.0, 2.0]
