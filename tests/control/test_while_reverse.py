"""Reverse mode through loops of unknown length, against the same programs with the turns written out."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._control.while_reverse import FIRST, SLOTS, UNIT
from tests.same import assert_same

W = jnp.asarray(np.random.RandomState(0).randn(3, 3).astype("f4") / 3)
V = jnp.asarray(np.array([0.3, -0.5, 0.8], "f4"))


def turn(i, v, w, b):
    """Reads the counter, a matrix that is the same each turn, and a function of it alone."""
    return jnp.tanh(w.T @ v + jnp.sin(b)) * (1 + 0.1 * jnp.cos(i * 0.5))


def looped(w, v, b, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, turn(s[0], s[1], w, b)), (0, v))[1].sum()


def written_out(w, v, b, n):
    for i in range(int(n)):
        v = turn(i, v, w, b)
    return v.sum()


def scanned(w, v, b, n):
    return lax.scan(lambda v, i: (turn(i, v, w, b), None), v, jnp.arange(n))[0].sum()


def until(v, w, limit=4.0):
    """The number of turns depends on the data."""
    return lax.while_loop(lambda c: (c * c).sum() < limit, lambda c: c * 1.3 + jnp.sin(w @ c) * 0.1, v).sum()


def until_plain(v, w, limit=4.0):
    while (v * v).sum() < limit:
        v = v * 1.3 + jnp.sin(w @ v) * 0.1
    return v.sum()


@pytest.mark.parametrize("n", [0, 1, 2, UNIT - 1, UNIT, UNIT + 1, 3 * UNIT])
def test_gradients_of_all_operands(n):
    assert_same(gradix.grad(looped, (0, 1, 2))(W, V, V, n), gradix.grad(scanned, (0, 1, 2))(W, V, V, n))
    if n < 3:
        assert_same(gradix.grad(looped, (0, 1, 2))(W, V, V, n), gradix.grad(written_out, (0, 1, 2))(W, V, V, n))


@pytest.mark.parametrize("units", [FIRST - 1, FIRST, FIRST + 1, SLOTS, 2 * FIRST + 1, 10 * FIRST + 7])
def test_gradients_where_the_checkpoints_were_thinned(units):
    n = units * UNIT + 5
    decay = gradix.jit(gradix.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.999 + x * jnp.sin(c + i), x)))
    wanted = gradix.grad(lambda x: lax.scan(lambda c, i: (c * 0.999 + x * jnp.sin(c + i), None), x, jnp.arange(n))[0])
    assert_same(decay(0.01, n), wanted(0.01), rtol=1e-3)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 5000), st.floats(0.9, 1.0))
def test_products_over_any_number_of_turns(n, scale):
    slope = _slope(jnp.float32(scale), jnp.int32(n))
    np.testing.assert_allclose(slope, n * np.float64(np.float32(scale)) ** max(n - 1, 0), rtol=1e-2, atol=1e-30)


_slope = gradix.jit(gradix.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, jnp.float32(1))))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(0.1, 0.9), min_size=3, max_size=3))
def test_against_finite_differences(values):
    v = np.array(values, "f4")
    with gradix.enable_x64():
        loop = lambda v: until(v, np.asarray(W, "f8"))
        v = jnp.asarray(v.astype("f8"))
        steps = 1e-6 * np.eye(3)
        wanted = [(loop(v + e) - loop(v - e)) / 2e-6 for e in steps]
        np.testing.assert_allclose(gradix.grad(loop)(v), wanted, rtol=1e-4, atol=1e-6)


def test_turns_that_depend_on_data():
    for v in (V, V * 0.01, V * 10):
        assert_same(gradix.grad(until, (0, 1))(v, W), gradix.grad(until_plain, (0, 1))(v, W))
        assert_same(gradix.jit(gradix.grad(until, (0, 1)))(v, W), gradix.grad(until_plain, (0, 1))(v, W))


def test_examples_that_end_at_turns_of_their_own():
    vs, ws = jnp.stack([V, V * 0.01, V * 10]), jnp.stack([W, W.T, W * 2])
    each = [gradix.grad(until_plain, (0, 1))(v, w) for v, w in zip(vs, ws)]
    wanted = tuple(np.stack(column) for column in zip(*each))
    assert_same(gradix.vmap(gradix.grad(until, (0, 1)))(vs, ws), wanted)
    assert_same(gradix.jit(gradix.grad(lambda v, w: gradix.vmap(until)(v, w).sum(), (0, 1)))(vs, ws), wanted)
    shared = [gradix.grad(until_plain, (0, 1))(v, W) for v in vs]
    assert_same(gradix.vmap(gradix.grad(until, (0, 1)), (0, None))(vs, W), tuple(np.stack(c) for c in zip(*shared)))
    assert_same(gradix.grad(lambda w: gradix.vmap(until, (0, None))(vs, w).sum())(W), sum(g[1] for g in shared))
    nested = gradix.vmap(gradix.vmap(gradix.grad(until), (0, None)), (None, 0))(vs, ws)
    assert_same(nested, np.stack([[gradix.grad(until_plain)(v, w) for v in vs] for w in ws]))


def test_a_finished_example_is_not_poisoned():
    def f(x):  # the turn after the last would take the root of a negative number
        return lax.while_loop(lambda c: c > 1, lambda c: jnp.sqrt(c - 1), x)

    def g(x):
        while x > 1:
            x = jnp.sqrt(x - 1)
        return x

    xs = jnp.asarray(np.array([0.5, 1.5, 3.0, 30.0], "f4"))
    assert_same(gradix.vmap(gradix.grad(f))(xs), np.stack([gradix.grad(g)(x) for x in xs]))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: gradix.jacrev(gradix.grad(f)),
        lambda f: gradix.jacfwd(gradix.grad(f)),
        lambda f: gradix.jacrev(gradix.jacfwd(f)),
        lambda f: gradix.jit(gradix.hessian(f)),
        lambda f: gradix.grad(lambda v: gradix.grad(f)(v) @ gradix.grad(f)(v)),
        lambda f: lambda v: gradix.vmap(gradix.hessian(f))(jnp.stack([v, v])),
    ],
    ids=["rev rev", "fwd rev", "rev fwd", "jit hessian", "grad of products", "vmap hessian"],
)
def test_second_derivatives(wrap):
    turns = sum(float((until_after(V, k) ** 2).sum()) < 4.0 for k in range(20))
    assert turns == 3
    assert_same(wrap(lambda v: until(v, W))(V), wrap(lambda v: until_after(v, turns).sum())(V), rtol=1e-3)
    assert_same(wrap(lambda v: looped(W, v, V, 5))(V), wrap(lambda v: scanned(W, v, V, 5))(V), rtol=1e-3)


def until_after(v, turns):
    for _ in range(turns):
        v = v * 1.3 + jnp.sin(W @ v) * 0.1
    return v


def test_second_derivatives_mix_operands():
    wanted = gradix.hessian(lambda w, v: scanned(w, v, V, 4), (0, 1))(W, V)
    assert_same(gradix.hessian(lambda w, v: looped(w, v, V, 4), (0, 1))(W, V), wanted, rtol=1e-3)
    assert_same(gradix.jacrev(gradix.jacrev(lambda w, v: looped(w, v, V, 4), (0, 1)), (0, 1))(W, V), wanted, rtol=1e-3)


def test_third_derivative():
    f = lambda x: lax.while_loop(lambda s: s[0] < 6, lambda s: (s[0] + 1, jnp.sin(s[1]) + x), (0, x))[1]

    def g(x):
        c = x
        for _ in range(6):
            c = jnp.sin(c) + x
        return c

    third = lambda f: gradix.grad(gradix.grad(gradix.grad(f)))
    assert_same(third(f)(0.3), third(g)(0.3), rtol=1e-3)
    assert_same(gradix.jit(third(f))(0.3), third(g)(0.3), rtol=1e-3)


@pytest.mark.x32
def test_inside_scan_cond_checkpoint_and_loops():
    inner = lambda v: until(v, W)
    grow = lambda k: lax.while_loop(lambda k: k.sum() < 2, lambda k: k * 1.5 + 0.1, k)
    loops = lambda v: lax.scan(lambda c, r: (c + grow(c * r), r), v, jnp.ones((3, 3)))[0].sum()

    def loops_plain(v):
        c = v
        for _ in range(3):
            k = c
            while k.sum() < 2:
                k = k * 1.5 + 0.1
            c = c + k
        return c.sum()

    assert_same(gradix.grad(loops)(V), gradix.grad(loops_plain)(V))
    assert_same(gradix.grad(gradix.checkpoint(inner))(V), gradix.grad(lambda v: until_plain(v, W))(V))
    branch = lambda v: lax.cond(v.sum() > 0, inner, lambda v: v.sum(), v)
    assert_same(gradix.jit(gradix.grad(branch))(V), gradix.grad(lambda v: until_plain(v, W))(V))

    def twice(v, n):
        return lax.fori_loop(0, n, lambda i, c: lax.fori_loop(0, n + i, lambda j, d: jnp.sin(d) + c * 0.1, c), v).sum()

    def twice_plain(v, n):
        for i in range(n):
            c = v
            for _ in range(n + i):
                v = jnp.sin(v) + c * 0.1
        return v.sum()

    assert_same(gradix.jit(gradix.grad(twice))(V, 3), gradix.grad(lambda v: twice_plain(v, 3))(V))


def test_a_branch_per_example_with_a_loop_in_it():
    def f(x):  # from zero the loop would never end
        return lax.cond(
            x > 0, lambda x: lax.while_loop(lambda c: c < 4, lambda c: c * c * 0.5 + c, jnp.exp(x)), lambda x: x * 3, x
        )

    def g(x):
        if not x > 0:
            return x * 3
        c = jnp.exp(x)
        while c < 4:
            c = c * c * 0.5 + c
        return c

    xs = jnp.asarray(np.array([-1.0, 0.1, 0.4, 2.0], "f4"))
    assert_same(gradix.vmap(gradix.grad(f))(xs), np.stack([gradix.grad(g)(x) for x in xs]))


@pytest.mark.x32
def test_linearize_and_vjp():
    outs, pull = gradix.vjp(lambda v, w: until(v, w), V, W)
    assert_same(pull(jnp.float32(2)), gradix.tree.map(lambda g: 2 * g, gradix.grad(until_plain, (0, 1))(V, W)))
    out, linear = gradix.linearize(lambda v: until(v, W), V)
    assert_same(linear(V), gradix.grad(until_plain)(V, W) @ V)
    assert_same(gradix.vmap(linear)(jnp.eye(3)), gradix.grad(until_plain)(V, W))
    assert_same(gradix.grad(linear)(V), gradix.grad(until_plain)(V, W))


def test_integers_booleans_and_keys_are_carried():
    def f(x):
        def step(s):
            i, on, key, c = s
            key, sub = gradix.random.split(key)
            return i + 1, ~on, key, jnp.where(on, c * x, c + x) + gradix.random.uniform(sub)

        return lax.while_loop(lambda s: s[0] < 5, step, (0, True, gradix.random.key(0), x))[3]

    def g(x):
        key, c = gradix.random.key(0), x
        for i in range(5):
            key, sub = gradix.random.split(key)
            c = (c * x if i % 2 == 0 else c + x) + gradix.random.uniform(sub)
        return c

    assert_same(gradix.grad(f)(0.7), gradix.grad(g)(0.7))
    assert_same(gradix.grad(gradix.grad(f))(0.7), gradix.grad(gradix.grad(g))(0.7))


def test_complex_carry():
    f = lambda z: lax.while_loop(lambda c: jnp.abs(c) < 5, lambda c: c * c + z, z)

    def g(z):
        c = z
        while jnp.abs(c) < 5:
            c = c * c + z
        return c

    z = jnp.complex64(0.9 + 0.7j)
    assert_same(gradix.grad(f, holomorphic=True)(z), gradix.grad(g, holomorphic=True)(z))
    assert_same(gradix.grad(lambda z: jnp.abs(f(z)))(z), gradix.grad(lambda z: jnp.abs(g(z)))(z))


def test_rules_of_users_inside():
    @gradix.custom_vjp
    def scaled(x):
        return x * 2

    scaled.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 10,))
    f = lambda x, n: lax.fori_loop(0, n, lambda i, c: scaled(c), x)
    assert gradix.grad(f)(1.0, jnp.int32(3)) == gradix.jit(gradix.grad(f))(1.0, 3) == 1000


def test_what_does_not_reach_the_carry_needs_no_run_backward():
    f = lambda x: lax.while_loop(lambda c: c < x, lambda c: c + 1, 0.0) * x
    assert gradix.grad(f)(2.5) == 3
    jaxpr = str(gradix.make_jaxpr(gradix.grad(f))(2.5))
    assert "while_back" not in jaxpr and "while_save" not in jaxpr


def test_memory_does_not_grow_with_the_turns():
    f = gradix.jit(gradix.grad(lambda v, n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) + v, v).sum()))
    v = jnp.ones(1000)
    needed = f.lower(v, 10).compile().memory_analysis().temp_size_in_bytes
    assert needed < 4000 * (2 * (SLOTS + 1) + 4 * UNIT)
    counted = lambda v: lax.scan(lambda c, _: (jnp.sin(c) + v, None), v, length=20_000)[0].sum()
    assert_same(f(v, 20_000), gradix.grad(counted)(v), rtol=1e-3)
