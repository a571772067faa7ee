"""Sizes that values decide inside of what holds programs and rules: each combination is equal to its eager meaning, or refused."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = np.array([3.0, -1.0, 4.0, -2.0, 5.0, 0.5], np.float32)
ROWS = [[1.0, 2.0], [], [3.0, 4.0, 5.0]]


def leaves(tree):
    return [np.asarray(v) for v in gradix.tree.leaves(tree)]


def check_same(want, have):
    want, have = leaves(want), leaves(have)
    assert [w.shape for w in want] == [h.shape for h in have]
    for w, h in zip(want, have):
        assert w.dtype == h.dtype
        np.testing.assert_allclose(h, w, rtol=2e-5, atol=2e-5)


@gradix.custom_jvp
def sines(x):
    return jnp.sin(x[x > 0])


@sines.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    mask = x > 0
    return jnp.sin(x[mask]), jnp.cos(x[mask]) * t[mask]


@gradix.custom_vjp
def squares(x):
    return x[x > 0] ** 2, x.sum()


def _forward(x):
    kept = x[x > 0]
    return (kept**2, x.sum()), (x, kept)


def _backward(residuals, cts):
    x, kept = residuals
    return (jnp.zeros_like(x).at[x > 0].set(2 * kept * cts[0]) + cts[1],)


squares.defvjp(_forward, _backward)
masked_anew = gradix.custom_vjp(lambda x: x[x > 0])
masked_anew.defvjp(lambda x: (x[x > 0], x), lambda x, ct: (jnp.zeros_like(x).at[x > 0].set(ct * x[x > 0]),))


@gradix.custom_vjp
def later_ones(x):
    return 2 * x[1:]


# the cotangent of the argument has the size of a residual, in whichever program the rule runs
later_ones.defvjp(
    lambda x: (2 * x[1:], x), lambda x, ct: (jnp.concatenate([jnp.zeros(x.shape[0] - ct.shape[0]), 2 * ct]),)
)


def branch(x, one, other):
    return lax.cond(x[0] > 0, one, other, x)


# A function of the vector, and what it means where masks may be asked for their values.
CASES = {
    "checkpoint": (gradix.checkpoint(lambda x: (x[x > 0] * 2, x[x > 0][1:])), lambda x: (x[x > 0] * 2, x[x > 0][1:])),
    "checkpoint of a part": (
        lambda x: gradix.checkpoint(lambda v: jnp.sin(v[v > 1]))(x[x > 0]),
        lambda x: jnp.sin(x[x > 1]),
    ),
    "custom_jvp": (sines, lambda x: jnp.sin(x[x > 0])),
    "custom_vjp": (squares, lambda x: (x[x > 0] ** 2, x.sum())),
    "custom_vjp of a part": (lambda x: later_ones(x[x > 0]), lambda x: 2 * x[x > 0][1:]),
    "custom_jvp twice": (lambda x: sines(sines(x) * 2), lambda x: jnp.sin(2 * (s := jnp.sin(x[x > 0]))[s > 0])),
    "branches of two sizes": (
        lambda x: branch(x, lambda x: x[x > 0], lambda x: x[x < 0]),
        lambda x: x[x > 0] if x[0] > 0 else x[x < 0],
    ),
    "a branch of a known size": (
        lambda x: branch(x, lambda x: x[1:], lambda x: x[x < 0]),
        lambda x: x[1:] if x[0] > 0 else x[x < 0],
    ),
    "branches of larger sizes": (
        lambda x: branch(x, lambda x: jnp.concatenate([x[x > 0]] * 2), lambda x: x),
        lambda x: jnp.concatenate([x[x > 0]] * 2) if x[0] > 0 else x,
    ),
    "results of one size": (
        lambda x: (lambda a, b: a + b)(*branch(x, lambda x: (x[x > 0], 2 * x[x > 0]), lambda x: (x[x < 0], x[x < 0]))),
        lambda x: 3 * x[x > 0] if x[0] > 0 else 2 * x[x < 0],
    ),
    "branches of captured sizes": (
        lambda x: (lambda v: lax.cond(x[0] > 0, lambda: v[1:], lambda: v))(x[x > 0]),
        lambda x: x[x > 0][1:] if x[0] > 0 else x[x > 0],
    ),
    "switch": (lambda x: lax.switch(1, [lambda x: x, lambda x: x[x > 0], lambda x: x[:1]], x), lambda x: x[x > 0]),
    "a branch in a loop": (
        lambda x: lax.fori_loop(
            0, 3, lambda i, c: c / 2 + lax.cond(i > 1, lambda x: x[x > 0], lambda x: x[x < 0], x).sum(), 0.0
        ),
        lambda x: ((0.0 / 2 + x[x < 0].sum()) / 2 + x[x < 0].sum()) / 2 + x[x > 0].sum(),
    ),
    "a carry": (lambda x: lax.fori_loop(0, 2, lambda i, c: c * 2, x[x > 0]), lambda x: 4 * x[x > 0]),
    "split": (lambda x: jnp.split(x, [jnp.argmax(x)]), lambda x: jnp.split(x, [int(jnp.argmax(x))])),
    "delete": (lambda x: jnp.delete(x, x > 3.5), lambda x: x[x <= 3.5]),
    "trim_zeros": (lambda x: jnp.trim_zeros(x * (x > 3.5)), lambda x: jnp.trim_zeros(x * (x > 3.5))),
    "tile": (lambda x: jnp.tile(x[x > 0], 2), lambda x: jnp.concatenate([x[x > 0]] * 2)),
    "a rule inside of checkpoint": (gradix.checkpoint(lambda x: sines(x) * 2), lambda x: 2 * jnp.sin(x[x > 0])),
    "checkpoint inside of a branch": (
        lambda x: branch(x, gradix.checkpoint(lambda x: x[x > 0] ** 2), lambda x: x),
        lambda x: x[x > 0] ** 2 if x[0] > 0 else x,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_inside(name):
    f, plain = CASES[name]
    compiled = gradix.jit(f)
    for x in (X, -X):
        check_same(plain(jnp.asarray(x)), compiled(x))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if i % 4 == 1 else pytest.mark.slow) for i, n in enumerate(CASES)]
)
def test_gradients_of_programs_inside(name):
    f, plain = CASES[name]
    total = lambda f: lambda x: sum(jnp.sum(jnp.sin(v)) for v in gradix.tree.leaves(f(x)))  # noqa: E731
    for x in map(jnp.asarray, (X, -X)):
        want = gradix.grad(total(plain))(x)
        for g in (gradix.jit(gradix.grad(total(f))), gradix.grad(total(gradix.jit(f)))):
            np.testing.assert_allclose(g(x), want, rtol=1e-4, atol=1e-5)


def test_rules_outside_of_programs():
    x = jnp.asarray(X)
    check_same(jnp.sin(x[x > 0]), sines(x))
    np.testing.assert_allclose(
        gradix.grad(lambda x: gradix.checkpoint(lambda x: x[x > 0] * 2)(x).sum())(x), 2.0 * (X > 0)
    )
    check_same(x[x > 0], lax.cond(True, lambda x: x[x > 0], lambda x: x[x < 0], x))


def test_cotangents_have_the_sizes_of_residuals():
    total = lambda x: (masked_anew(x) ** 2).sum()  # noqa: E731
    np.testing.assert_allclose(gradix.jit(gradix.grad(total))(X), np.where(X > 0, 2 * X**2, 0), rtol=1e-5)
    with pytest.raises(
        TypeError, match="decided by values"
    ):  # in another program, a mask made anew has a size of its own
        gradix.grad(gradix.jit(total))(X)


def test_jacobians_outside_of_programs():
    f, x = gradix.jit(lambda x: x[x > 0] ** 2), jnp.asarray(X)
    want = np.diag(2 * X)[X > 0]
    for g in (gradix.jacfwd(f), gradix.jacrev(f), gradix.jit(gradix.jacfwd(f))):
        np.testing.assert_allclose(g(x), want)
    np.testing.assert_allclose(gradix.hessian(lambda x: f(x).sum())(x), np.diag(2.0 * (X > 0)))


def test_maps_of_programs_inside():
    rows = jnp.stack([X[:3], -X[:3], X[3:]])
    for f, plain in (
        CASES["checkpoint of a part"],
        CASES["custom_jvp"],
        CASES["branches of two sizes"],
        CASES["delete"],
        CASES["trim_zeros"],
    ):
        for g in (gradix.vmap(f), gradix.jit(gradix.vmap(f))):
            if f is not CASES["trim_zeros"][0]:
                assert [np.asarray(r).tolist() for r in g(rows)] == [
                    pytest.approx(np.asarray(plain(r)).tolist()) for r in rows
                ]
    both = gradix.vmap(lambda r: gradix.grad(lambda r: (sines(r) ** 2).sum())(r))(rows)
    np.testing.assert_allclose(both, np.where(rows > 0, 2 * np.sin(rows) * np.cos(rows), 0), rtol=1e-5, atol=1e-6)


def test_sums_of_no_groups_have_a_gradient():
    total = lambda x, n: gradix.ops.segment_sum(x, jnp.zeros(x.shape[0], int), num_segments=n).sum()  # noqa: E731
    for grad in (gradix.grad(total), gradix.jit(gradix.grad(total), static_argnums=1)):
        assert np.asarray(grad(jnp.asarray(X), 0)).tolist() == [0.0] * 6
    kept = gradix.jit(gradix.grad(lambda x: total(x, x[x > 9].shape[0])))
    assert np.asarray(kept(X)).tolist() == [0.0] * 6


# -- with what jit is asked for --------------------------------------------------------------------


def test_checks_of_indices():
    """What the package itself leaves out is no error; an index past the size is one."""
    x = jnp.asarray(X)
    for check in ("index", "all"):
        check_same(x[x > 0] / 2, gradix.jit(lambda x: x[x > 0] / 2, check=check)(x))
        check_same(jnp.nonzero(x > 0, size=2)[0], gradix.jit(lambda x: jnp.nonzero(x > 0, size=2)[0], check=check)(x))
    f = gradix.jit(lambda x, i: x[x > 0][i], check="index")
    assert float(f(x, 3)) == 0.5
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size k"):
        f(x, 4)
    assert float(gradix.jit(lambda x: jnp.outer(x[x > 0], x[x > 0])[3, 0], check="index")(x)) == 0.5 * x[x > 0][0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 0][4],
        lambda x: x[x > 0][-5],
        lambda x: x[x > 9][0],
        lambda x: x[x > 9][-1],
        lambda x: x[x > 0][99],
        lambda x: jnp.outer(x[x > 0], x[x > 0])[:, 4],
        lambda x: jnp.outer(x[x > 0], x)[4, ::-1],
        lambda x: x[x > 0].at[4].set(1.0),
    ],
)
def test_checks_of_written_indices(f):
    with pytest.raises(IndexError, match="is out of bounds for axis . with size k"):
        gradix.jit(f, check="index")(jnp.asarray(X))
    gradix.jit(f)(jnp.asarray(X))  # without the check it is the nearest element


@pytest.mark.parametrize("i", [0, 2, 3, -1, -2, -4, 9])
def test_written_indices_that_may_be_outside_fill(i):
    """Whether a number that is written is out of bounds is known when the size is."""
    given = jnp.asarray(X)
    take = lambda x: x.at[i].get(mode="fill", fill_value=7.0)  # noqa: E731
    rows = lambda x: jnp.stack([x, x + 1], 1).at[i, 1].get(mode="fill", fill_value=7.0)  # noqa: E731
    for f in (take, rows):
        compiled = gradix.jit(lambda x, m: f(x[m]))
        slope = gradix.jit(gradix.grad(lambda x, m: f(x[m]) ** 2))
        for m in (X > 0, X > 1.5, X > 9, X > -9):
            kept, at = X[m], np.flatnonzero(m)
            inside = -len(kept) <= i < len(kept)
            value = kept[i] + (f is rows) if inside else 7.0
            assert float(compiled(given, m)) == value
            want = np.zeros_like(X)
            if inside:
                want[at[i]] = 2 * value
            np.testing.assert_array_equal(slope(given, m), want)
    open_size = gradix.jit(take, symbolic="n")
    for n in (1, 3, 6):
        assert float(open_size(given[:n])) == (X[:n][i] if -n <= i < n else 7.0)


def test_mutable_arrays():
    total = gradix.new_ref(jnp.zeros(()))

    def body(c, v):
        total[...] += v
        return c + 1, v * 2

    n, out = gradix.jit(lambda x: lax.scan(body, 0, x[x > 0]))(X)
    assert int(n) == 4 and float(total[...]) == 12.5
    check_same(2 * jnp.asarray(X[X > 0]), out)
    kept = gradix.new_ref(jnp.asarray(X))

    def step(x):
        kept[x > 0] = 7.0
        return gradix.checkpoint(lambda x: x[x > 0])(kept[...])

    assert np.asarray(gradix.jit(step)(X)).tolist() == [7.0] * 4


def test_donation_and_ahead_of_time():
    x = jnp.asarray(X) + 0
    f = gradix.jit(lambda x: (x[x > 0], {"n": x.sum()}), donate_argnums=0)
    lowered = f.lower(x)
    compiled = lowered.compile()
    out = compiled(jnp.asarray(X) + 0)
    assert out[0].shape == (4,) and float(out[1]["n"]) == 9.5
    f(x)
    assert x.is_deleted()


# -- Ragged ----------------------------------------------------------------------------------------


def test_gradients_with_respect_to_a_whole_ragged():
    r = gradix.Ragged.of(ROWS)
    want = [[2.0, 4.0], [], [6.0, 8.0, 10.0]]
    lists = lambda r: [np.asarray(v).tolist() for v in r]  # noqa: E731
    loss = lambda r: gradix.vmap(lambda s: (s**2).sum())(r).sum()  # noqa: E731
    for g in (
        gradix.grad(loss),
        gradix.jit(gradix.grad(loss)),
        gradix.grad(gradix.jit(loss)),
        gradix.grad(loss, nondiff="skip"),
    ):
        assert lists(g(r)) == want
    value, slope = gradix.value_and_grad(lambda p: (p["r"].values * p["w"]).sum())({"r": r, "w": 2.0})
    assert float(value) == 30 and lists(slope["r"]) == [[2, 2], [], [2, 2, 2]] and float(slope["w"]) == 15
    y, pull = gradix.vjp(lambda r: r.map(lambda s: s * 2), r)
    assert lists(y) == want and lists(pull(y)[0]) == [[4, 8], [], [12, 16, 20]]
    assert "Ragged(" in repr(gradix.jvp(lambda b: gradix.Ragged(b, r.counts).map(jnp.sin), (r.buffer,), (r.buffer,))[1])


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda x: lax.while_loop(lambda c: c.sum() > 3, lambda c: c[c > 1], x), TypeError, "keep c of shape (6,)"),
        (lambda x: lax.map(lambda v: x[x > v], x), NotImplementedError, "vmap returns a Ragged"),
        (lambda x: jnp.repeat(x, x.astype(int)), gradix.errors.ConcretizationTypeError, "total_repeat_length=n"),
    ],
)
def test_what_cannot_be_says_what_to_write(f, error, words):
    with pytest.raises(error, match=re.escape(words)):
        gradix.jit(f)(X)


def test_as_many_values_as_a_mask_selects():
    x, v = jnp.array([3.0, -1.0, 4.0, -1.0, 5.0]), jnp.arange(1.0, 6.0)
    f = gradix.jit(lambda x, v: x.at[x > 0].set(v[: x[x > 0].shape[0]]))
    for given in (x, -x, abs(x), 0 * x):
        want = np.asarray(given).copy()
        want[want > 0] = np.asarray(v)[: (want > 0).sum()]
        np.testing.assert_array_equal(f(given, v), want)
    with pytest.raises(gradix.errors.NonConcreteBooleanIndexError, match=r"x.at\[mask\].set\(values\[: x\[mask\]"):
        gradix.jit(lambda x, v: x.at[x > 0].set(v[:3]))(x, v)
