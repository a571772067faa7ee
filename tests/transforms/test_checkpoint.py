"""checkpoint: the same derivatives, and policies that really keep what they say and compute the rest again."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import checkpoint_policies as policies, lax
from gradix.ad_checkpoint import checkpoint_name
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1
W = np.eye(3, dtype=np.float32) * 2 + 0.1


def chain(x):
    return jnp.sin(jnp.sin(jnp.sin(x)))


def layers(x):
    y = checkpoint_name(jnp.sin(x @ W), "y")
    z = checkpoint_name(jnp.cos(y @ W), "z")
    return (jnp.exp(z) * y).sum()


def count(jaxpr, name):
    """How often a primitive occurs in a program, the programs inside included."""
    total = 0
    for eqn in jaxpr.eqns:
        total += eqn.primitive.name == name
        for p in eqn.params.values():
            inner = getattr(p, "jaxpr", p)
            if hasattr(inner, "eqns"):
                total += count(inner, name)
    return total


def backward(f, *args):
    """The backward pass alone: what is left of the gradient's program without the result of the forward pass."""
    return gradix.make_jaxpr(gradix.grad(f))(*args).jaxpr


# -- values ------------------------------------------------------------------------------------------------------------

TRANSFORMS = {
    "value": lambda f: f,
    "grad": gradix.grad,
    "jit of grad": lambda f: gradix.jit(gradix.grad(f)),
    "grad of jit": lambda f: gradix.grad(gradix.jit(f)),
    "grad of grad": lambda f: gradix.grad(lambda x: gradix.grad(f)(x).sum()),
    "hessian": gradix.hessian,
    "jvp": lambda f: lambda x: gradix.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: gradix.linearize(f, x)[1](x),
    "vmap of grad": lambda f: lambda x: gradix.vmap(gradix.grad(f))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: gradix.grad(lambda x: gradix.vmap(f)(jnp.stack([x, 2 * x])).sum()),
    "jit of vmap of grad": lambda f: lambda x: gradix.jit(gradix.vmap(gradix.grad(f)))(jnp.stack([x, 2 * x])),
}
POLICIES = {
    "none": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "dots without batch": policies.dots_with_no_batch_dims_saveable,
    "names": policies.save_only_these_names("y"),
    "other names": policies.save_any_names_but_these("y"),
    "all but names": policies.save_anything_except_these_names("y", "z"),
    "both": policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("z")),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_same_values(policy, transform):
    assert_same(transform(gradix.checkpoint(layers, policy=policy))(x3), transform(layers)(x3))


def test_trees_static_arguments_keywords_and_closures():
    ck = gradix.checkpoint
    assert_same(gradix.grad(ck(lambda x, n: x**n if n > 2 else x, static_argnums=1))(2.0, 3), 12)
    assert_same(gradix.grad(ck(lambda x, *, n: x**n if n > 2 else x, static_argnames="n"))(2.0, n=3), 12)
    assert_same(gradix.grad(lambda x: ck(lambda x, *, k: x * k["a"])(x, k={"a": 3.0}))(2.0), 3)
    assert_same(
        gradix.grad(lambda a, b: ck(lambda x: jnp.sin(x * a))(b), (0, 1))(3.0, 2.0), (2 * np.cos(6), 3 * np.cos(6))
    )
    assert_same(gradix.grad(lambda x: ck(lambda x, i: x[i] * 2)(x, 1))(x3), np.array([0, 2, 0]))
    got = gradix.jacrev(ck(lambda x: (x * x, {"b": jnp.sin(x).sum(), "n": None})))(x3)
    assert_same(got, (np.diag(2 * x3), {"b": np.cos(x3)}))
    assert_same(
        gradix.grad(lambda c: lax.scan(ck(lambda c, x: (jnp.sin(c * x), None)), c, x3)[0])(2.0),
        gradix.grad(lambda c: lax.scan(lambda c, x: (jnp.sin(c * x), None), c, x3)[0])(2.0),
    )
    assert_same(gradix.grad(ck(ck(chain)))(1.0), gradix.grad(chain)(1.0))


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["plain", "jit"])
def test_nothing_is_kept_by_default(wrap):
    assert count(backward(chain, 1.0), "sin") == 3
    assert count(backward(wrap(gradix.checkpoint(chain)), 1.0), "sin") == 5  # the two inner ones again
    assert count(backward(wrap(gradix.checkpoint(chain, policy=policies.everything_saveable)), 1.0), "sin") == 3


@pytest.mark.parametrize(
    "policy, dots, sines, cosines",
    [
        (policies.nothing_saveable, 6, 2, 3),
        (policies.everything_saveable, 4, 1, 2),
        (policies.dots_saveable, 4, 2, 3),
        (policies.save_only_these_names("y"), 6, 1, 3),
        (policies.save_only_these_names("y", "z"), 6, 1, 2),
    ],
)
def test_policies(policy, dots, sines, cosines):
    program = backward(gradix.checkpoint(layers, policy=policy), x3)
    kept = backward(layers, x3)
    assert (count(kept, "dot_general"), count(kept, "sin"), count(kept, "cos")) == (4, 2, 2)
    # 2 dots, sin, cos forward; cos, sin and 2 dots backward; and what was not kept again
    assert count(program, "dot_general") == dots
    assert count(program, "sin") - 1 == sines and count(program, "cos") == cosines


def test_compiled_programs_keep_the_recomputation():
    text = gradix.jit(gradix.grad(gradix.checkpoint(chain))).lower(1.0).as_text()
    assert "optimization_barrier" in text
    text = gradix.jit(gradix.grad(gradix.checkpoint(chain, prevent_cse=False))).lower(1.0).as_text()
    assert "optimization_barrier" not in text


def test_eager_recomputation_calls_back_twice():
    calls = []

    def f(x):
        gradix.debug.callback(lambda v: calls.append(float(v)), x)
        return jnp.sin(x)

    gradix.grad(f)(2.0)
    assert calls == [2]
    gradix.grad(gradix.checkpoint(f))(2.0)
    gradix.effects_barrier()
    assert calls == [2, 2, 2]


def test_policies_see_operations_with_their_parameters():
    seen = []
    gradix.grad(
        gradix.checkpoint(layers, policy=lambda prim, *avals, **params: seen.append((prim.name, len(avals), params)))
    )(x3)
    assert {"dot_general", "sin", "name"} <= {name for name, _, _ in seen}
    assert {params["name"] for name, _, params in seen if name == "name"} == {"y", "z"}
    assert all(n == 2 for name, n, _ in seen if name == "dot_general")


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: gradix.checkpoint(3), TypeError, "expects a function"),
        (lambda: gradix.grad(lambda x: gradix.checkpoint(lambda x, s: x)(x, "s"))(1.0), TypeError, "is not an array"),
        (
            lambda: gradix.grad(gradix.checkpoint(lambda x, n: x if n > 2 else -x))(1.0, 3),
            gradix.errors.TracerBoolConversionError,
            "argument n",
        ),
        (lambda: gradix.grad(gradix.checkpoint(lambda x: "s"))(1.0), TypeError, "is not an array"),
        (lambda: checkpoint_name("s", "name"), TypeError, "is not an array"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_policy_finds_parameters_by_the_names_that_programs_print():
    seen = {}

    def policy(prim, *avals, **params):
        seen.setdefault(prim.name, params)
        return False

    f = gradix.checkpoint(lambda x: lax.all_gather(jnp.sin(x), "i").sum(), policy=policy)
    gradix.vmap(gradix.grad(f), axis_name="i")(jnp.ones((3, 2)))
    assert seen["all_gather"]["axis_name"] == ("i",) and seen["all_gather"]["axis_size"] == 3


def test_the_recomputation_from_some_arguments_may_be_merged():
    """A tuple or tree of bools says from which ones; the values are the same."""

    def net(layer):
        return lambda ws, x: (lambda y: jnp.sum(y**2))(layer({"w": ws[1], "x": layer({"w": ws[0], "x": x})}))

    def barriers(prevent_cse):
        layer = gradix.checkpoint(lambda d: jnp.sin(d["x"] @ d["w"] + jnp.arange(3.0)), prevent_cse=prevent_cse)
        ws, x = [jnp.ones((3, 3)), 2 * jnp.eye(3)], jnp.arange(3.0)
        f = gradix.jit(gradix.grad(net(layer), (0, 1)))
        lines = [line for line in f.lower(ws, x).as_text().split("\n") if "optimization_barrier" in line]
        return f(ws, x), [line.partition(" : ")[2] for line in lines]

    whole, all_apart = barriers(True)
    some, x_apart = barriers(({"w": False, "x": True},))
    none, _ = barriers(False)
    np.testing.assert_array_equal(
        np.concatenate([np.ravel(g) for g in gradix.tree.leaves(whole)]),
        np.concatenate([np.ravel(g) for g in gradix.tree.leaves(some)]),
    )
    assert len(all_apart) == len(x_apart) == 2 and all("3x3" in line for line in all_apart)
    assert not any("3x3" in line for line in x_apart) and barriers(False)[1] == []
    with pytest.raises(TypeError, match="prevent_cse must be a bool, or a tuple of bools"):
        barriers((1,))
    with pytest.raises(ValueError, match="prefix|structure"):
        barriers((True, False))
