"""Contractions in groups, contractions of scaled blocks, and the approximate extremes."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

RNG = np.random.default_rng(0)
LHS, RHS = RNG.normal(size=(6, 3)).astype("f4"), RNG.normal(size=(2, 3, 4)).astype("f4")


def reference(lhs, rhs, sizes):
    out, start = np.zeros((len(lhs), rhs.shape[-1]), lhs.dtype), 0
    for matrix, n in zip(rhs, sizes):
        out[start : start + n] = lhs[start : start + n] @ matrix
        start += n
    return out


def numbers(*args):
    return lax.RaggedDotDimensionNumbers(*args)


@pytest.mark.parametrize("sizes", [(2, 3), (5, 3), (0, 6), (3, 0), (0, 0)])
def test_rows_in_groups(sizes):
    sizes = np.array(sizes, "i4")
    want = reference(LHS, RHS, sizes)
    np.testing.assert_allclose(lax.ragged_dot(LHS, RHS, sizes), want, rtol=1e-5)
    np.testing.assert_allclose(gradix.jit(lax.ragged_dot)(LHS, RHS, sizes), want, rtol=1e-5)
    back = gradix.grad(lambda l, r: (lax.ragged_dot(l, r, sizes) * want).sum(), (0, 1))(LHS, RHS)
    start = 0
    for matrix, n, g in zip(RHS, sizes, back[1]):
        rows = slice(start, start + n)
        np.testing.assert_allclose(back[0][rows], want[rows] @ matrix.T, rtol=1e-5)
        np.testing.assert_allclose(g, LHS[rows].T @ want[rows], rtol=1e-5, atol=1e-6)
        start += n
    assert not np.asarray(back[0][start:]).any()


def test_mapped_sizes():
    sizes = np.array([[2, 3], [1, 1]], "i4")
    got = gradix.vmap(lambda s: lax.ragged_dot(LHS, RHS, s))(sizes)
    np.testing.assert_allclose(got, [reference(LHS, RHS, s) for s in sizes], rtol=1e-5)


@pytest.mark.parametrize("sizes", [(2, 3), ((2, 3), (1, 4))])
def test_batched_rows_in_groups(sizes):
    lhs, rhs = RNG.normal(size=(2, 6, 3)).astype("f4"), RNG.normal(size=(2, 2, 3, 4)).astype("f4")
    got = lax.ragged_dot_general(lhs, rhs, np.array(sizes), numbers((([2], [2]), ([0], [1])), [1], [0]))
    each = np.broadcast_to(sizes, (2, 2))
    np.testing.assert_allclose(got, [reference(lhs[b], rhs[:, b], each[b]) for b in range(2)], rtol=1e-5)


def test_contraction_in_groups():
    x, y = RNG.normal(size=(2, 3, 4)).astype("f4"), RNG.normal(size=(2, 3, 5)).astype("f4")
    got = lax.ragged_dot_general(x, y, np.array([1, 1]), numbers((([1], [1]), ([0], [0])), [1], []))
    np.testing.assert_allclose(got, [np.swapaxes(x[:, k : k + 1], 1, 2) @ y[:, k : k + 1] for k in range(2)], rtol=1e-5)
    both = lax.ragged_dot_general(
        x, y, np.array([[1, 0], [2, 0], [0, 1]]), numbers((([1, 0], [1, 0]), ([], [])), [0], [])
    )
    parts = [x[0, 0:1].T @ y[0, 0:1] + x[:, 1].T @ y[:, 1], x[0, 2:].T @ y[0, 2:]]
    np.testing.assert_allclose(both, parts, rtol=1e-5)


def test_groups_of_batches_make_no_difference():
    x, y = RNG.normal(size=(5, 2, 3)).astype("f4"), RNG.normal(size=(5, 3, 4)).astype("f4")
    got = lax.ragged_dot_general(x, y, np.array([2, 2]), numbers((([2], [1]), ([0], [0])), [0], []))
    np.testing.assert_allclose(got, x @ y, rtol=1e-5)


@pytest.mark.parametrize(
    "args, kind, pattern",
    [
        ((LHS, RHS, np.ones(2, "f4")), TypeError, "np.integer"),
        ((LHS, RHS, np.ones(3, "i4")), TypeError, "size to be 3, .*got 2"),
        ((LHS[:, :2], RHS, np.ones(2, "i4")), TypeError, r"\(2,\) and \(3,\)"),
        ((LHS, RHS, np.ones((1, 2), "i4")), TypeError, "shape"),
    ],
)
def test_wrong_groups(args, kind, pattern):
    with pytest.raises(kind, match=pattern):
        lax.ragged_dot(*args)


@pytest.mark.parametrize(
    "ragged, groups, pattern",
    [
        ([1], [], "exactly one rhs group"),
        ([0, 1], [0], "exactly one lhs ragged"),
        ([3], [0], "nonnegative"),
        ([2], [0], "zero group"),
    ],
)
def test_wrong_axes(ragged, groups, pattern):
    with pytest.raises(TypeError, match=pattern):
        lax.ragged_dot_general(
            np.ones((2, 6, 3), "f4"),
            np.ones((2, 2, 3, 4), "f4"),
            np.ones(2, "i4"),
            numbers((([2], [2]), ([0], [1])), ragged, groups),
        )


def test_scaled_blocks():
    x, scale = RNG.integers(-8, 8, (4, 8)).astype("f4"), np.array(RNG.choice([0.5, 1, 2, 4], (4, 2)), "f4")
    y, other = RNG.integers(-8, 8, (8, 3)).astype("f4"), np.array(RNG.choice([0.5, 1, 2, 4], (4, 3)), "f4")
    want = (x * scale.repeat(4, 1)) @ (y * other.repeat(2, 0))
    got = lax.scaled_dot(x, y, lhs_scale=scale, rhs_scale=other, preferred_element_type="float32")
    np.testing.assert_array_equal(got, want)
    assert lax.scaled_dot(x, y).dtype == jnp.bfloat16
    eighth = jnp.asarray(x).astype("float8_e4m3fn"), jnp.asarray(y).astype("float8_e4m3fn")
    np.testing.assert_array_equal(lax.scaled_dot(*eighth, preferred_element_type="float32"), x @ y)
    for kw, pattern in (
        ({"lhs_scale": scale[:2]}, "does not match"),
        ({"lhs_scale": x}, "at least 2"),
        ({"lhs_scale": x[:, :3]}, "divisible"),
        ({"lhs_scale": scale[0]}, "same rank"),
    ):
        with pytest.raises(TypeError, match=pattern):
            lax.scaled_dot(x, y, **kw)


@pytest.mark.parametrize("find, sign", [(lax.approx_max_k, 1), (lax.approx_min_k, -1)])
def test_extremes(find, sign):
    x = RNG.permutation(24).reshape(4, 6).astype("f4")
    for axis in (0, 1):
        values, places = gradix.jit(lambda x, axis=axis: find(x, 3, axis))(x)
        order = np.argsort(-sign * x, axis, kind="stable").take(range(3), axis)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))
    for args, pattern in (
        ((x, 0), "positive"),
        ((x, 7), "smaller than the size"),
        ((x.astype("i4"), 2), "floating"),
        ((x, 2, -1, 0.0), "recall_target"),
        ((x, 2, -1, 0.9, 3), "override"),
    ):
        with pytest.raises(ValueError, match=pattern):
            find(*args)
