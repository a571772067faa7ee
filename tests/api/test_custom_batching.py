"""custom_vmap and sequential_vmap, alone and under every other transformation."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.custom_batching import custom_vmap, sequential_vmap
from tests.same import assert_same

X = np.array([0.5, -1.0, 2.0], "f4")
Y = np.array([2.0, 3.0, -1.0], "f4")


def marked():
    """`sin(x) * y`, whose rule adds 100, so that its use is seen; and what the rule was told."""
    calls = []

    @custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched, x.shape, y.shape))
        return jnp.sin(x) * y + 100.0, True

    return f, calls


def test_rule_is_told_what_is_mapped_and_gets_the_axis_first():
    f, calls = marked()
    assert_same(f(0.5, 2.0), np.sin(0.5) * 2)
    assert_same(gradix.vmap(f)(X, Y), np.sin(X) * Y + 100)
    assert_same(gradix.vmap(f, (1, None), 1)(np.ones((2, 3), "f4"), 2.0), np.full((2, 3), 2 * np.sin(1.0) + 100))
    assert calls == [(3, [True, True], (3,), (3,)), (3, [True, False], (3, 2), ())]


def test_keywords_defaults_and_methods():
    @custom_vmap
    def f(x, scale=3.0):
        return x * scale

    f.def_vmap(lambda n, batched, x, scale: (x * scale + 1, True))
    assert_same(gradix.vmap(f)(X), X * 3 + 1)
    assert_same(gradix.vmap(lambda x: f(x, scale=2.0))(X), X * 2 + 1)


def test_trees_and_results_that_are_not_batched():
    seen = []

    @custom_vmap
    def f(d):
        return {"x": d["x"] * d["y"], "y": d["y"]}

    @f.def_vmap
    def rule(n, in_batched, d):
        seen.append(in_batched)
        return {"x": d["x"] * d["y"], "y": d["y"]}, {"x": True, "y": False}

    out = gradix.vmap(f, ({"x": 0, "y": None},), {"x": 0, "y": None})({"x": X, "y": 2.0})
    assert_same(out["x"], 2 * X)
    assert_same(out["y"], 2.0)
    assert seen == [[{"x": True, "y": False}]]


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_programs_around_the_call_keep_the_rule(wrap):
    f, _ = marked()
    want = np.sin(X) * Y + 100
    assert_same(wrap(gradix.vmap(f))(X, Y), want)
    assert_same(gradix.vmap(wrap(f))(X, Y), want)
    assert_same(wrap(gradix.vmap(gradix.checkpoint(f)))(X, Y), want)
    assert_same(wrap(gradix.vmap(lambda x, y: lax.cond(True, f, lambda x, y: x, x, y)))(X, Y), want)
    scanned = gradix.vmap(lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, None, length=2)[0])
    assert_same(wrap(scanned)(X, Y), np.sin(want) * Y + 100)


@pytest.mark.x32
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_derivatives_use_the_function_and_under_vmap_the_rule(wrap):
    @custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    f.def_vmap(lambda n, batched, x, y: (jnp.sin(x) * y * 10.0, True))  # ten times: its use is seen
    x, y = jnp.asarray(X), jnp.asarray(Y)
    assert_same(wrap(gradix.grad(f))(x[0], y[0]), np.cos(X[0]) * Y[0])
    assert_same(
        wrap(gradix.jvp)(f, (x[0], y[0]), (1.0, 0.0))[1] if wrap is not gradix.jit else np.cos(X[0]) * Y[0],
        np.cos(X[0]) * Y[0],
    )
    each = gradix.vmap(gradix.grad(f, (0, 1)))
    for got, want in zip(wrap(each)(x, y), (10 * np.cos(X) * Y, 10 * np.sin(X))):
        assert_same(got, want)
    for got, want in zip(wrap(gradix.vmap(wrap(gradix.grad(f, (0, 1)))))(x, y), (10 * np.cos(X) * Y, 10 * np.sin(X))):
        assert_same(got, want)
    whole = gradix.grad(lambda x, y: gradix.vmap(f)(x, y).sum(), (0, 1))
    for got, want in zip(wrap(whole)(x, y), (10 * np.cos(X) * Y, 10 * np.sin(X))):
        assert_same(got, want)
    shared = gradix.grad(lambda y: gradix.vmap(f, (0, None))(x, y).sum())
    assert_same(wrap(shared)(2.0), 10 * np.sin(X).sum())
    assert_same(wrap(gradix.vmap(gradix.grad(f, 1), (0, None)))(x, 2.0), 10 * np.sin(X))
    assert_same(wrap(gradix.vmap(lambda x, y: gradix.jvp(f, (x, y), (1.0, 0.0))[1]))(x, y), 10 * np.cos(X) * Y)


def test_second_derivatives():
    @custom_vmap
    def f(x):
        return jnp.sin(x)

    f.def_vmap(lambda n, batched, x: (10 * jnp.sin(x), True))
    x = jnp.asarray(X)
    assert_same(gradix.grad(gradix.grad(f))(0.5), -np.sin(0.5))
    assert_same(gradix.vmap(gradix.grad(gradix.grad(f)))(x), -10 * np.sin(X))
    assert_same(gradix.grad(lambda x: gradix.vmap(gradix.grad(f))(x).sum())(x), -10 * np.sin(X))
    assert_same(gradix.jit(gradix.vmap(gradix.jacfwd(gradix.jacrev(f))))(x), -10 * np.sin(X))


def test_inside_custom_vjp():
    @gradix.custom_vjp
    @custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    f.def_vmap(lambda n, batched, xs, ys: (jnp.cos(xs) * ys, True))
    f.defvjp(lambda x, y: (f(x, y), (jnp.cos(x), jnp.sin(x), y)), lambda res, ct: (res[0] * ct * res[2], res[1] * ct))
    assert_same(gradix.vmap(f)(jnp.zeros(3), jnp.ones(3)), np.ones(3))
    assert_same(gradix.jit(gradix.vmap(f))(jnp.zeros(3), jnp.ones(3)), np.ones(3))
    assert_same(gradix.grad(f)(0.0, 1.0), 1.0)


def test_nested_vmap():
    f, _ = marked()
    xs, ys = np.stack([X, Y]), np.ones((2, 3), "f4")
    assert_same(gradix.vmap(gradix.vmap(f))(xs, ys), np.sin(xs) + 100)


def test_sequential(capsys):
    @sequential_vmap
    def f(x, y):
        gradix.debug.print("{}", x, ordered=True)
        return {"sum": x + y}

    assert_same(gradix.vmap(f, (0, None))(jnp.arange(3), 10)["sum"], [10, 11, 12])
    assert capsys.readouterr().out == "0\n1\n2\n"
    g = sequential_vmap(lambda x: jnp.sin(x) * x)
    assert_same(gradix.grad(lambda x: gradix.vmap(g)(x).sum())(jnp.asarray(X)), np.cos(X) * X + np.sin(X))
    assert "scan" in str(gradix.make_jaxpr(gradix.vmap(g))(X))
    assert_same(gradix.vmap(gradix.vmap(g))(np.stack([X, Y])), np.sin([X, Y]) * [X, Y])


def with_rule(rule):
    f = custom_vmap(lambda x: x)
    f.def_vmap(rule)
    return lambda: gradix.vmap(f)(X)


WRONG = {
    "no rule": (AttributeError, "No batching rule defined", lambda: custom_vmap(lambda x: x)(1.0)),
    "three results": (ValueError, "must return a pair.*tuple of length 3", with_rule(lambda n, b, x: (x, x, True))),
    "structure": (
        ValueError,
        "must return results in the structure",
        with_rule(lambda n, b, x: ((x, x), (True, True))),
    ),
    "specification": (ValueError, "do not match", with_rule(lambda n, b, x: (x, (True, True)))),
    "flag": (ValueError, "True or False; at out_batched it returned 0", with_rule(lambda n, b, x: (x, 0))),
    "shape": (ValueError, r"'float32\[3\]'\], but returned \['float32\[\]'\]", with_rule(lambda n, b, x: (x[0], True))),
    "no array": (TypeError, "output is not an array", with_rule(lambda n, b, x: ("x", True))),
}


@pytest.mark.parametrize("name", WRONG)
def test_messages(name):
    kind, pattern, call = WRONG[name]
    with pytest.raises(kind, match=pattern):
        call()


def test_what_the_function_closes_over_cannot_be_mapped():
    def outer(x):
        f = custom_vmap(lambda y: x * y)
        f.def_vmap(lambda n, b, y: (y, True))
        return f(x)

    with pytest.raises(ValueError, match="closes over a value that vmap maps"):
        gradix.vmap(outer)(X)


@pytest.mark.x32
def test_the_rule_is_not_asked_where_only_tangents_are_mapped():
    f, calls = marked()
    assert_same(gradix.jacfwd(f, (0, 1))(jnp.asarray(X), 2.0)[0], np.diag(2 * np.cos(X)))
    assert_same(gradix.jacfwd(f, (0, 1))(jnp.asarray(X), 2.0)[1], np.sin(X))
    primal, tangents = gradix.vmap(lambda t: gradix.jvp(f, (0.5, 2.0), (t, 0.0)), out_axes=(None, 0))(X)
    assert_same(primal, np.sin(0.5) * 2)
    assert_same(tangents, 2 * np.cos(0.5) * X)
    assert calls == []
    # Lanes whose primals differ use it, and are told that these are mapped.
    ts = gradix.vmap(lambda x, t: gradix.jvp(f, (x, 2.0), (t, x)))(X, Y)[1]
    assert_same(ts, 2 * np.cos(X) * Y + np.sin(X) * X)
    assert [c[1] for c in calls] == [[True, True]]
