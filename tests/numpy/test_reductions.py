"""Reductions, running sums, statistics, histograms, differences: against NumPy, with types, masks and derivatives."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from tests.same import assert_same

X = np.array([[[3, -1, 4, 1], [5, -9, 2, 6], [5, 3, -5, 8]], [[9, 7, 9, -3], [2, 3, 8, 4], [-6, 2, 6, 4]]])
F = (X / 4).astype(np.float32)
NAN = np.where(X == 2, np.nan, F).astype(np.float32)
AXES = [None, 0, -1, (0, 2), (1,)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", "sum prod max min amax amin mean var std all any ptp count_nonzero median".split())
def test_reductions_equal_numpy(name, axis, keepdims):
    assert_same(
        getattr(jnp, name)(F, axis=axis, keepdims=keepdims), getattr(np, name)(F, axis=axis, keepdims=keepdims), 1e-5
    )


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split())
def test_reductions_without_nan(name, axis):
    assert_same(getattr(jnp, name)(NAN, axis=axis), getattr(np, name)(NAN, axis=axis), 1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", "argmax argmin nanargmax nanargmin cumsum cumprod nancumsum nancumprod".split())
def test_positions_and_running_values(name, axis):
    x = NAN if name.startswith("nan") else F
    assert_same(getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis), 1e-5)


@pytest.mark.x32
@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("jnp.sum(jnp.ones(3, 'int8'))", "int32"),
        ("jnp.sum(jnp.ones(3, 'uint8'))", "uint32"),
        ("jnp.sum(jnp.ones(3, bool))", "int32"),
        ("jnp.sum(jnp.ones(3, 'float16'))", "float16"),
        ("jnp.sum(jnp.ones(3, 'int8'), promote_integers=False)", "int8"),
        ("jnp.sum(jnp.ones(3), dtype=int)", "int32"),
        ("jnp.sum(jnp.ones(3, int), dtype=bool)", "bool"),
        ("jnp.prod(jnp.ones(3, 'int16'))", "int32"),
        ("jnp.mean(jnp.ones(3, int))", "float32"),
        ("jnp.mean(jnp.ones(3, 'bfloat16'))", "bfloat16"),
        ("jnp.mean(jnp.ones(3, int), dtype=int)", "int32"),
        ("jnp.var(jnp.ones(3, 'complex64'))", "float32"),
        ("jnp.var(jnp.ones(3, 'float16'))", "float16"),
        ("jnp.max(jnp.ones(3, 'uint8'))", "uint8"),
        ("jnp.argmax(jnp.ones(3))", "int32"),
        ("jnp.count_nonzero(jnp.ones(3))", "int32"),
        ("jnp.cumsum(jnp.ones(3, 'int8'))", "int8"),
        ("jnp.cumsum(jnp.ones(3, bool))", "int32"),
        ("jnp.cumulative_sum(jnp.ones(3, 'int8'))", "int32"),
        ("jnp.all(jnp.ones(3))", "bool"),
        ("jnp.median(jnp.ones(3, int))", "float32"),
        ("jnp.average(jnp.ones(3, int))", "float32"),
        ("jnp.add.reduce(jnp.ones(3, 'int8'))", "int32"),
        ("jnp.histogram(jnp.ones(3, int))[0]", "float32"),
        ("jnp.bincount(jnp.ones(3, int))", "int32"),
        ("jnp.nanmean(jnp.ones(3, int))", "float32"),
    ],
)
def test_result_dtypes(expression, dtype):
    out = eval(expression, {"jnp": jnp})
    assert (str(out.dtype), out.weak_type) == (dtype, False)


def test_half_precision_is_summed_in_single():
    x = jnp.full(5000, 1.0, "float16")
    assert jnp.sum(x).item() == 5000 and jnp.mean(x).item() == 1


def test_masks_and_initial_values():
    mask = F > 0
    for name in ("sum", "prod", "mean", "var", "all", "any"):
        assert_same(getattr(jnp, name)(F, axis=1, where=mask), getattr(np, name)(F, axis=1, where=mask), 1e-5)
    for name in ("max", "min"):
        assert_same(
            getattr(jnp, name)(F, axis=1, where=mask, initial=0.25),
            getattr(np, name)(F, axis=1, where=mask, initial=0.25),
        )
    assert jnp.sum(jnp.arange(3), initial=10).item() == 13
    assert jnp.max(jnp.zeros(0), initial=2).item() == 2
    assert_same(jnp.nanmax(NAN, axis=0, where=mask, initial=0), np.nanmax(NAN, axis=0, where=mask, initial=0))
    assert jnp.sum(jnp.arange(6).reshape(2, 3), where=jnp.array([True, False, True])).item() == 10


@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        ("jnp.sum([1, 2])", TypeError, "list"),
        ("jnp.sum(jnp.ones(3), axis=1)", ValueError, "axis 1 is out of bounds for an array of rank 1"),
        ("jnp.sum(jnp.ones((2, 2)), axis=(0, 0))", ValueError, "names a duplicate axis"),
        ("jnp.sum(jnp.ones(3), axis=0.5)", TypeError, "axis"),
        ("jnp.sum(jnp.ones(3), out=jnp.ones(()))", NotImplementedError, "sum: out is not supported"),
        ("jnp.max(jnp.zeros(0))", ValueError, "zero-size array"),
        ("jnp.max(jnp.ones(3), where=True)", ValueError, "initial"),
        ("jnp.argmax(jnp.zeros(0))", ValueError, "is empty along"),
        ("jnp.var(jnp.ones(3), ddof=1, correction=1)", ValueError, "ddof and correction"),
        ("jnp.std(jnp.ones(3), dtype=int)", ValueError, "inexact"),
        ("jnp.sum(jnp.ones(3), initial=jnp.ones(2))", ValueError, "scalar"),
        ("jnp.cumulative_sum(1)", ValueError, "at least one axis"),
        ("jnp.cumulative_sum(jnp.ones((2, 2)))", ValueError, "axis"),
        ("jnp.average(jnp.ones((2, 3)), weights=jnp.ones(3))", ValueError, "axis must be given"),
        ("jnp.quantile(jnp.ones(3), 0.5, method='guess')", ValueError, "method"),
        ("jnp.quantile(jnp.ones(3), jnp.ones((1, 1)))", ValueError, "rank"),
        ("jnp.quantile(jnp.ones(3) * 1j, 0.5)", ValueError, "complex"),
        ("jnp.bincount(jnp.ones(3))", TypeError, "must hold integers"),
        ("jnp.histogram(jnp.ones(3), bins='auto')", NotImplementedError, "bins"),
        ("jnp.diff(1)", ValueError, "at least one axis"),
        ("jnp.unwrap(jnp.ones(3), axis=1)", ValueError, "axis 1 is out of bounds"),
        ("jnp.gradient(jnp.ones(1))", ValueError, "at least 2 elements"),
        ("jnp.gradient(jnp.ones((2, 2)), 1, 2, 3)", TypeError, "spacing"),
        ("jnp.interp(1.0, jnp.ones(2), jnp.ones(3))", ValueError, "vectors of one size"),
        ("jnp.cov(jnp.ones((2, 2, 2)))", ValueError, "must be a vector or a matrix"),
        ("jnp.convolve(jnp.ones(2), jnp.ones(2), mode='some')", ValueError, "mode"),
    ],
)
def test_what_is_refused(expression, error, text):
    with pytest.raises(error, match=text):
        eval(expression, {"jnp": jnp})


def test_spread():
    x = F.reshape(-1)
    assert_same(jnp.var(x, ddof=1), np.var(x, ddof=1), 1e-5)
    assert_same(jnp.std(x, correction=1.5), np.std(x, correction=1.5), 1e-5)
    assert_same(jnp.var(x + 1j * x[::-1]), np.var(x + 1j * x[::-1]), 1e-5)
    assert np.isnan(jnp.var(jnp.ones(1), ddof=1)) and np.isnan(jnp.nanvar(jnp.array([1.0, jnp.nan]), ddof=1))
    assert_same(jnp.var(x, mean=jnp.mean(x, keepdims=True)), np.var(x), 1e-5)
    assert np.isnan(jnp.nanmax(jnp.array([jnp.nan]))) and jnp.nanargmax(jnp.array([jnp.nan])).item() == -1


def test_averages():
    w = np.arange(1.0, 5, dtype=np.float32)
    assert_same(jnp.average(F, axis=2, weights=w), np.average(F, axis=2, weights=w))
    assert_same(jnp.average(F, weights=np.abs(F)), np.average(F, weights=np.abs(F)))
    mean, total = jnp.average(F, axis=2, weights=w, returned=True)
    assert mean.shape == total.shape == (2, 3) and (total == 10).all()


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_quantiles(method, axis):
    q = np.array([0.0, 0.1, 0.6, 1.0], np.float32)
    assert_same(jnp.quantile(F, q, axis=axis, method=method), np.quantile(F, q, axis=axis, method=method), 1e-5)
    assert_same(
        jnp.quantile(F, 0.3, axis=axis, method=method, keepdims=True),
        np.quantile(F, np.float32(0.3), axis=axis, method=method, keepdims=True),
        1e-5,
    )


def test_quantiles_with_nan_and_weights():
    q = np.array([0.2, 0.5], np.float32)
    assert_same(jnp.nanquantile(NAN, q, axis=1), np.nanquantile(NAN, q, axis=1), 1e-5)
    assert_same(jnp.nanpercentile(NAN, 30), np.nanpercentile(NAN, 30), 1e-5)
    assert np.isnan(jnp.quantile(NAN, 0.5))
    assert_same(jnp.percentile(F, 30), np.percentile(F, 30), 1e-5)
    w = np.abs(F[0, 0]) + 1
    assert_same(
        jnp.quantile(F[0, 0], q, weights=w, method="inverted_cdf"),
        np.quantile(F[0, 0], q, weights=w, method="inverted_cdf"),
    )
    assert jnp.median(jnp.array([3, 1, 2])).item() == 2


def test_covariance():
    x = F[0]
    for options in (
        {},
        {"bias": True},
        {"ddof": 2},
        {"rowvar": False},
        {"fweights": np.array([1, 2, 1, 1])},
        {"aweights": np.array([0.1, 0.2, 0.3, 0.4])},
    ):
        assert_same(jnp.cov(x, **options), np.cov(x, **options), 1e-5)
    assert_same(jnp.cov(x[0], x[1]), np.cov(x[0], x[1]), 1e-5)
    assert_same(jnp.corrcoef(x), np.corrcoef(x), 1e-5)
    z = x + 1j * x[::-1]
    assert_same(jnp.cov(z), np.cov(z), 1e-5)


def test_histograms():
    x = F.reshape(-1)
    for options in (
        {"bins": 5},
        {"bins": np.array([-2.0, 0, 1, 2.25])},
        {"bins": 4, "range": (-1, 1)},
        {"bins": 4, "density": True},
        {"bins": 4, "weights": np.abs(x)},
    ):
        for got, want in zip(jnp.histogram(x, **options), np.histogram(x, **options)):
            assert_same(got, want, 1e-5)
    assert_same(jnp.histogram_bin_edges(np.ones(3), 2), np.histogram_bin_edges(np.ones(3), 2))
    y = x[::-1].copy()
    for got, want in zip(jnp.histogram2d(x, y, bins=4), np.histogram2d(x, y, bins=4)):
        assert_same(got, want, 1e-5)
    sample = np.stack([x, y, x + y], 1)
    counts, edges = jnp.histogramdd(sample, bins=(2, 4, 8), density=True)
    want, wanted_edges = np.histogramdd(sample, bins=(2, 4, 8), density=True)
    assert_same(counts, want, 1e-5)
    for got, want in zip(edges, wanted_edges):
        assert_same(got, want, 1e-5)


def test_counting():
    x = np.array([1, 1, 3, 0])
    assert_same(jnp.bincount(x), np.bincount(x))
    assert_same(jnp.bincount(x, np.arange(4.0)), np.bincount(x, np.arange(4.0)))
    assert jnp.bincount(x, minlength=6).shape == (6,) and jnp.bincount(x, length=2).tolist() == [1, 2]
    assert gradix.jit(lambda v: jnp.bincount(v, length=4))(x).tolist() == [1, 2, 0, 1]
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="length"):
        gradix.jit(jnp.bincount)(x)
    values = np.array([0.5, 1, 2.5, 9])
    for bins in ([1, 2, 3], [3, 2, 1]):
        for right in (False, True):
            assert_same(jnp.digitize(values, np.array(bins), right=right), np.digitize(values, bins, right=right))


@pytest.mark.parametrize("wide", [False, True])
def test_histograms_of_several_columns_in_both_widths(wide):
    x, y = np.array([0.1, 0.4, 0.4, 0.9]), np.array([3.0, 1.0, 1.0, 2.0])
    with gradix.enable_x64(wide):
        for got, want in zip(jnp.histogram2d(x, y, bins=4), np.histogram2d(x, y, bins=4)):
            assert_same(got, want, 1e-5)
        found, _ = jnp.histogramdd(np.stack([x, y], 1).astype("float32"), bins=3, weights=y)
        assert_same(found, np.histogramdd(np.stack([x, y], 1), bins=3, weights=y)[0], 1e-5)


def test_differences_and_integrals():
    x = F[0, 0]
    assert_same(jnp.diff(F, 2, axis=1), np.diff(F, 2, axis=1))
    assert_same(jnp.diff(x, prepend=0, append=np.float32([5, 6])), np.diff(x, prepend=0, append=np.float32([5, 6])))
    assert jnp.diff(jnp.array([True, False, False])).tolist() == [True, False]
    assert_same(
        jnp.ediff1d(x, to_begin=9, to_end=np.float32([1, 2])), np.ediff1d(x, to_begin=9, to_end=np.float32([1, 2]))
    )
    for got, want in zip(jnp.gradient(F), np.gradient(F)):
        assert_same(got, want)
    places = np.array([0.0, 1, 3, 4], np.float32)
    assert_same(jnp.gradient(x, places), np.gradient(x, places), 1e-5)
    assert_same(jnp.gradient(F, 2.0, axis=2), np.gradient(F, 2.0, axis=2))
    assert_same(jnp.trapezoid(F, places), np.trapezoid(F, places))
    assert_same(jnp.trapezoid(F, dx=0.5, axis=0), np.trapezoid(F, dx=0.5, axis=0))
    for ends in (
        [np.inf, 1, 2],
        [1, 2, -np.inf],
        [np.inf, 1, -np.inf],
        [1, np.nan, np.inf],
        [2, np.inf, 1],
        [5, 7],
        [np.inf, np.inf],
    ):
        with np.errstate(invalid="ignore"):
            assert_same(jnp.trapezoid(np.float32(ends)), np.trapezoid(np.float32(ends)))
    assert_same(jnp.trapezoid(np.array([1 + 1j, 2, 3j]), dx=2), np.trapezoid(np.array([1 + 1j, 2, 3j]), dx=2))
    assert_same(gradix.grad(lambda y: jnp.trapezoid(y, dx=2.0))(jnp.array([1.0, np.inf, 3.0, -np.inf])), [1, 2, 2, 1])
    for y, at, axis in [(x, F[0], -1), (F, F[0], -1), (F[0], F, -1), (F[0], F[0], 0), (F[0], F[0, :, :1], 0)]:
        assert_same(jnp.trapezoid(y, at, axis=axis), np.trapezoid(y, at, axis=axis))
    with pytest.raises(ValueError, match="Incompatible shapes"):
        jnp.trapezoid(F, F[0], axis=1)
    angles = np.array([0, 3, 6.5, 10, -2], np.float32)
    assert_same(jnp.unwrap(angles), np.unwrap(angles), 1e-5)
    assert_same(jnp.unwrap(np.array([0, 3, 6, 1]), period=4), np.unwrap(np.array([0, 3, 6, 1]), period=4))


def test_interpolation():
    xp, fp = np.array([0.0, 1, 3], np.float32), np.array([1.0, -1, 5], np.float32)
    x = np.array([-1, 0, 0.25, 2, 3, 9], np.float32)
    assert_same(jnp.interp(x, xp, fp), np.interp(x, xp, fp))
    assert_same(jnp.interp(x, xp, fp, left=7, right=8), np.interp(x, xp, fp, left=7, right=8))
    assert_same(jnp.interp(x, xp, fp, period=4), np.interp(x, xp, fp, period=4))
    assert jnp.interp(5.0, xp, fp, right="extrapolate").item() == 11
    assert_same(gradix.grad(lambda v: jnp.interp(v, xp, fp))(2.0), 3)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(5, 2), (5, 3), (2, 5), (3, 3)])
def test_convolution(n, m, mode):
    a, v = F.reshape(-1)[:n], F.reshape(-1)[5 : 5 + m]
    assert_same(jnp.convolve(a, v, mode), np.convolve(a, v, mode), 1e-5)
    assert_same(jnp.correlate(a, v, mode), np.correlate(a, v, mode), 1e-5)
    assert_same(
        jnp.correlate(a + 1j * a[::-1], v - 2j * v, mode), np.correlate(a + 1j * a[::-1], v - 2j * v, mode), 1e-5
    )


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (jnp.var, [1.0, 2, 4], [-8 / 9, -2 / 9, 10 / 9]),
        (jnp.max, [1.0, 4, 4], [0, 0.5, 0.5]),
        (jnp.prod, [1.0, 0, 4], [0, 4, 0]),
        (jnp.median, [1.0, 5, 2, 4], [0, 0, 0.5, 0.5]),
        (jnp.nanmean, [1.0, jnp.nan], [1, 0]),
        (jnp.nanvar, [1.0, jnp.nan, 2], [-0.5, 0, 0.5]),
        (lambda x: jnp.cumprod(x).sum(), [1.0, 2, 4], [11, 5, 2]),
        (lambda x: jnp.quantile(x, 0.3), [1.0, 5, 2, 4], [0.1, 0, 0.9, 0]),
        (lambda x: jnp.trapezoid(x**2, x), [1.0, 2, 3], [-1.5, 0, 9.5]),
        (lambda x: jnp.average(x, weights=x), [1.0, 2, 3], [-1 / 18, 5 / 18, 11 / 18]),
    ],
)
def test_derivatives(function, x, slope):
    assert_same(gradix.grad(function)(jnp.array(x)), slope, 1e-5)


def test_under_vmap_and_jit():
    rows = F.reshape(6, 4)
    for function in (
        jnp.median,
        jnp.std,
        lambda x: jnp.quantile(x, 0.3),
        lambda x: jnp.histogram(x, 2)[0],
        lambda x: jnp.argmax(x),
        lambda x: jnp.cumsum(x),
        lambda x: jnp.interp(x[0], x, x),
    ):
        want = np.stack([np.asarray(function(row)) for row in rows])
        assert_same(gradix.vmap(function)(rows), want, 1e-5)
        assert_same(gradix.jit(gradix.vmap(function))(rows), want, 1e-5)
