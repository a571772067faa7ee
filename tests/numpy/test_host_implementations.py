"""The host rules of whole functions against the functions' programs: the same from the first call on, with all special values."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import nn
from gradix._base.tree import tree_leaves
from gradix.nn import activations
from gradix.numpy import (
    elementary,
    host_implementations as host,
    matrix_host_implementations as on_matrices,
    row_host_implementations as on_rows,
)

RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.7, 7.3, 1e-3, -1e30, 3e38, np.inf, -np.inf, np.nan]
WHOLE = [0, 1, 2, -3, 4, 6, -6, 7, 12, 100, 127, -128]
FLOATS, INEXACT = ("float32", "float64"), ("float32", "float64", "complex64", "complex128")


def pairs(values, dtype):
    both = np.array(list(itertools.product(values, values)), dtype)
    return both[:, 0].copy(), both[:, 1].copy()


def noise(dtype, *shape):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def both(function, rule, *args, **options):
    """Leaves from the rule and from the program, whose types must agree; the rule must be one for these arguments."""
    arrays = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    assert rule(*[a.aval if isinstance(a, jnp.ndarray) else a for a in arrays], **options) is not None
    got, want = function(*arrays, **options), function.__wrapped__(*arrays, **options)
    assert type(got) is type(want)
    for x, y in zip(tree_leaves(got), tree_leaves(want), strict=True):
        assert x.aval == y.aval
        yield np.asarray(x), np.asarray(y)


def exact(function, rule, *args, **options):
    for x, y in both(function, rule, *args, **options):
        np.testing.assert_array_equal(x, y, strict=True)
        if x.dtype.kind == "f":
            there = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x)[there], np.signbit(y)[there])


def close(function, rule, *args, ulps=8, **options):
    for x, y in both(function, rule, *args, **options):
        finite = np.abs(y[np.isfinite(y)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(x, y, rtol=ulps * np.finfo(x.dtype).eps, atol=ulps * scale * np.finfo(x.dtype).eps)


@pytest.fixture(autouse=True)
def wide():
    with gradix.enable_x64(True), np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "divmod"])
def test_two_floats(name, dtype):
    x, y = pairs(SPECIAL, dtype)
    function, rule = getattr(jnp, name), getattr(host, name)
    exact(function, rule, x, y)
    exact(function, rule, noise(dtype, 3, 1) * 10, noise(dtype, 1, 4))
    exact(function, rule, noise(dtype, 0), noise(dtype, 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_hypot_and_logaddexp(dtype):
    for function, rule in ((elementary.hypot, host.hypot), (elementary.logaddexp, host.logaddexp)):
        for x, y in both(function, rule, *pairs(SPECIAL, dtype)):
            np.testing.assert_allclose(x, y, rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)
        close(function, rule, noise(dtype, 5), noise(dtype, 3, 1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_frexp(dtype):
    exact(jnp.frexp, host.frexp, np.array([*SPECIAL, 1e-40, -1e-310], dtype))
    exact(jnp.frexp, host.frexp, noise(dtype, 2, 0))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_whole_numbers(name, dtype):
    least = np.iinfo(dtype).min
    x, y = pairs(
        [v if v >= least else -v for v in WHOLE if v <= np.iinfo(dtype).max] + [int(least), np.iinfo(dtype).max], dtype
    )
    exact(getattr(jnp, name), getattr(host, name), x, y)
    keep = (x != least) & (y != least)
    exact(getattr(jnp, name), getattr(host, name), x[keep], y[keep])


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4), (6, 2), (2, 6), (1, 1)])
def test_sums_of_products(sizes, mode, dtype):
    x, y = [noise(dtype, n) for n in sizes]
    close(jnp.convolve, host.convolve, x, y, mode)
    close(jnp.correlate, host.correlate, x, y, mode=mode)
    close(jnp.polymul, host.polymul, x, y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_polyval(dtype):
    p = noise(dtype, 6)
    for x in (noise(dtype, 7), noise(dtype, 2, 3), noise(dtype, 0), np.array(1.5, dtype)):
        close(jnp.polyval, host.polyval, p, x)
    exact(jnp.polyval, host.polyval, np.array([1, -2, 0, 3], dtype), np.arange(-4, 5).astype(dtype))
    for x in ([np.inf, 1.0], [np.nan, 2.0], [1e30, 1.0]):
        exact(jnp.polyval, host.polyval, np.array([0, 1, 2], dtype), np.array(x, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_take_along_axis(dtype):
    rule = on_rows.take_along_axis
    for shape, axis in (((6,), 0), ((3, 5), 1), ((3, 5), -2), ((2, 3, 4), 1)):
        x = noise(dtype, *shape)
        exact(jnp.take_along_axis, rule, x, np.argsort(x, axis), axis)
        exact(jnp.take_along_axis, rule, x, np.argsort(x, axis) - shape[axis], axis)
        wild = RNG.integers(-9, 9, shape)
        exact(jnp.take_along_axis, rule, x, wild, axis)
    exact(jnp.take_along_axis, rule, noise(dtype, 4), np.zeros(0, "int32"), 0)
    assert rule(jnp.ones((3, 1)).aval, jnp.ones((3, 4), int).aval, 0) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_middles(dtype):
    for x in (
        noise(dtype, 9),
        noise(dtype, 8),
        noise(dtype, 3, 4),
        np.array(SPECIAL, dtype),
        np.array(SPECIAL[:-1], dtype),
        np.array([2.0], dtype),
        np.array(1.5, dtype),
        np.array([0.0, -0.0], dtype),
    ):
        exact(jnp.median, on_rows.median, x)
        for q in (0.0, 0.3, 0.5, 1.0, -0.2, 1.7):
            for method in ("linear", "midpoint"):
                exact(jnp.quantile, on_rows.quantile, x, q, method=method)
            exact(jnp.percentile, on_rows.percentile, x, 100 * q)
    exact(jnp.median, on_rows.median, noise(dtype, 5), axis=-1)
    assert on_rows.median(jnp.ones((2, 3)).aval, axis=1) is None and on_rows.quantile(jnp.ones(3).aval, np.nan) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_parts(dtype):
    for x in (
        noise(dtype, 7),
        np.array([2, 1, 2, 1, 1, 3], dtype),
        np.array(SPECIAL, dtype),
        np.array([1, np.nan, -2], dtype),
    ):
        for kth in (0, 1, -1, -3):
            exact(jnp.partition, on_rows.partition, x, kth)
            exact(jnp.argpartition, on_rows.argpartition, x, kth)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nanmean(dtype):
    for x in (
        noise(dtype, 7),
        np.array([1, np.nan, 4], dtype),
        np.array([np.nan], dtype),
        np.array([np.inf, 1, np.nan], dtype),
    ):
        close(jnp.nanmean, on_rows.nanmean, x, ulps=2)
        close(jnp.nanmean, on_rows.nanmean, x, axis=-1, ulps=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sinc(dtype):
    close(jnp.sinc, host.sinc, np.array([v for v in SPECIAL if abs(v) < 1e9], dtype), ulps=2)
    exact(jnp.sinc, host.sinc, np.array([0.0, -0.0, np.nan, np.inf], dtype))
    close(jnp.sinc, host.sinc, noise(dtype, 3, 4), ulps=2)


@pytest.mark.parametrize("dtype", INEXACT)
def test_matrices(dtype):
    x = noise(dtype, 6, 6)
    close(jnp.linalg.det, on_matrices.det, x, ulps=100)
    close(jnp.linalg.inv, on_matrices.inv, x, ulps=1000)
    close(jnp.linalg.inv, on_matrices.inv, noise(dtype, 2, 3, 3), ulps=1000)
    close(jnp.linalg.slogdet, on_matrices.slogdet, x, ulps=100)
    close(jnp.linalg.slogdet, on_matrices.slogdet, noise(dtype, 2, 3, 3), ulps=100)


@pytest.mark.parametrize("dtype", FLOATS)
def test_singular_matrices(dtype):
    rows = [
        np.zeros((4, 4)),
        np.ones((4, 4)),
        np.diag([1.0, 2.0, 0.0, 3.0]),
        np.full((4, 4), np.nan),
        np.diag([2.0, 2.0, 2.0, 2.0]),
    ]
    for x in [r.astype(dtype) for r in rows]:
        for got, want in both(jnp.linalg.det, on_matrices.det, x):
            np.testing.assert_array_equal(got, want)
        exact(jnp.linalg.inv, on_matrices.inv, x)
    for got, want in both(jnp.linalg.slogdet, on_matrices.slogdet, np.zeros((4, 4), dtype)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_unwrap(dtype):
    half = np.dtype(dtype).type(np.pi)
    for x in (
        noise(dtype, 9) * 0.1,
        noise(dtype, 9) * 20,
        np.array([1], dtype),
        np.array([-0.0, -0.0, 0.0], dtype),
        np.array([0, half, -half, 0, 2 * half, 9 * half], dtype),
        np.array([0, 9, np.nan, 1, 30], dtype),
        np.array([0, 9, np.inf, 1, 30], dtype),
    ):
        close(jnp.unwrap, host.unwrap, x)
        close(jnp.unwrap, host.unwrap, x, axis=0, period=1.5)
    exact(jnp.unwrap, host.unwrap, np.array([0, 3, 6, 1, -2, -4, 4], dtype), period=6.0)
    assert host.unwrap(jnp.ones((2, 3)).aval) is None and host.unwrap(jnp.ones(3).aval, period=-1.0) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_poly(dtype):
    for n in (1, 2, 5, 16):
        close(jnp.poly, host.poly, noise(dtype, n))
    exact(jnp.poly, host.poly, np.array([1, -2, 3, 0, 4], dtype))
    exact(jnp.poly, host.poly, np.array([300, -200, 128], dtype))
    for x in ([np.nan, 1.0, 2.0], [1.0, np.nan], [np.inf, 1.0, 0.0], [1e20, 1e20, -1e20], [1e300, 1.0], [-np.inf]):
        exact(jnp.poly, host.poly, np.array(x, dtype))
    assert host.poly(jnp.ones(17).aval) is host.poly(jnp.ones(0).aval) is host.poly(jnp.ones((2, 2)).aval) is None


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
def test_nan_deviations(name, dtype):
    function, rule = getattr(jnp, name), getattr(on_rows, name)
    for x in (
        noise(dtype, 7),
        np.array([1, np.nan, 4, 7], dtype),
        np.array([np.nan, np.nan], dtype),
        np.array([np.inf, 1, np.nan], dtype),
        np.array([3], dtype),
        np.array([np.inf, -np.inf, 1], dtype),
        np.array([np.nan, 2], dtype),
    ):
        for options in ({}, {"ddof": 1}, {"axis": -1, "ddof": 3}):
            close(function, rule, x, **options)
    assert (
        rule(jnp.ones((2, 3)).aval)
        is rule(jnp.ones(3).aval, keepdims=True)
        is rule(jnp.ones(3).aval, mean=jnp.ones(1))
        is None
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_softplus(dtype):
    close(nn.softplus, activations.softplus_by_numpy, noise(dtype, 3, 4), ulps=4)
    for x, y in both(nn.softplus, activations.softplus_by_numpy, np.array([*SPECIAL, 100, -100, 700], dtype)):
        np.testing.assert_allclose(x, y, rtol=4 * np.finfo(dtype).eps)
    close(nn.softplus, activations.softplus_by_numpy, noise(dtype, 0))


def test_rules_are_left_alone_where_they_must_be():
    x = jnp.array([3.0, 4.0])
    assert gradix.grad(lambda v: elementary.hypot(v, v).sum())(x).tolist() == pytest.approx([2**0.5] * 2)
    assert "while" in str(gradix.make_jaxpr(jnp.gcd)(jnp.arange(3), jnp.arange(3)))
    with gradix.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.remainder(x, jnp.zeros(2))
    with pytest.raises(ValueError, match="square|n, n"):
        jnp.linalg.inv(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="mode"):
        jnp.convolve(x, x, "some")
    large = jnp.asarray(noise("float32", 5000))
    assert jnp.median(large).item() == np.median(np.asarray(large))
