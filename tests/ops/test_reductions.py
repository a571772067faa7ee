"""Reductions, running reductions and reductions over windows against NumPy, and their derivatives."""

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)


def both_ways(function, *args, exact=True):
    """The eager result, which the compiled one must equal."""
    eager, compiled = np.asarray(function(*args)), np.asarray(gradix.jit(function)(*args))
    assert (eager.dtype, eager.shape) == (compiled.dtype, compiled.shape)
    wide = [v.astype(np.float64) if v.dtype.kind == "V" else v for v in (eager, compiled)]
    np.testing.assert_allclose(*wide, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6)
    return eager


def by_differences(function, x, t, step=1e-5):
    """The directional derivative of a float64 function."""
    return (np.asarray(function(x + step * t)) - np.asarray(function(x - step * t))) / (2 * step)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("name, reference", [("max", np.max), ("min", np.min), ("sum", np.sum), ("prod", np.prod)])
def test_reduce(name, reference, axes):
    got = both_ways(lambda x: getattr(lax, f"reduce_{name}")(x, axes), X, exact=name in ("max", "min"))
    np.testing.assert_allclose(got, reference(X, axis=axes), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool"])
def test_bit_reductions(dtype):
    with gradix.enable_x64():
        x = RNG.integers(0, 100, (3, 4)).astype(dtype)
        for name, ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
            got = both_ways(lambda x, name=name: getattr(lax, f"reduce_{name}")(x, (0,)), x)
            np.testing.assert_array_equal(got, ufunc.reduce(x, axis=0))


@pytest.mark.parametrize(
    "dtype, low, high",
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("bool", False, True),
        ("float32", -INF, INF),
        (ml_dtypes.bfloat16, -INF, INF),
        (ml_dtypes.float8_e4m3fn, -448, 448),
    ],
)
def test_nothing_reduces_to_the_identity(dtype, low, high):
    x = np.zeros((0, 2), dtype)
    np.testing.assert_array_equal(both_ways(lambda x: lax.reduce_max(x, (0,)), x), np.full(2, low).astype(dtype))
    np.testing.assert_array_equal(both_ways(lambda x: lax.reduce_min(x, (0,)), x), np.full(2, high).astype(dtype))


def test_narrow_products_are_rounded_once():
    x = np.full(200, 1.01, np.float16)
    want = np.float16(np.prod(x.astype(np.float32)))
    assert abs(float(lax.reduce_prod(x, (0,))) - float(want)) <= float(np.spacing(want))


@pytest.mark.parametrize(
    "x, largest, smallest", [([1, NAN, 3, NAN], 1, 1), ([0.0, -0.0], 0, 0), ([2, 5, 5, 2], 1, 0), ([-INF, -INF], 0, 0)]
)
def test_arg_reductions_take_the_first(x, largest, smallest):
    x = np.array(x, np.float32)
    assert both_ways(lambda x: lax.argmax(x, 0, np.int32), x) == largest
    assert both_ways(lambda x: lax.argmin(x, 0, np.int32), x) == smallest


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bool", ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_arg_reductions_of_dtypes(dtype, axis):
    x = RNG.integers(0, 4, (3, 4, 5)).astype(dtype)
    plain = x.astype(np.int32)
    got = both_ways(lambda x: lax.argmax(x, axis, np.uint8), x)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, np.argmax(plain, axis))
    np.testing.assert_array_equal(both_ways(lambda x: lax.argmin(x, axis, np.int32), x), np.argmin(plain, axis))


def test_ties_share_the_gradient():
    x = np.array([1, 3, 3, 2], np.float32)
    np.testing.assert_array_equal(gradix.grad(lambda x: lax.reduce_max(x, (0,)))(x), [0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(gradix.grad(lambda x: lax.reduce_min(x, (0,)))(-x), [0, 0.5, 0.5, 0])


@pytest.mark.parametrize(
    "x, want", [([2, 3, 4], [12, 8, 6]), ([2, 0, 4], [0, 8, 0]), ([0, 0, 4], [0, 0, 0]), ([5], [1])]
)
def test_gradient_of_a_product_with_zeros(x, want):
    np.testing.assert_array_equal(gradix.grad(lambda x: lax.reduce_prod(x, (0,)))(np.array(x, np.float32)), want)


def test_product_is_differentiable_twice_and_over_axes():
    with gradix.enable_x64():
        x, t = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5))
        x[1, 2] = 0

        def f(x):
            return lax.reduce_prod(x, (0, 1))

        np.testing.assert_allclose(gradix.jvp(f, (x,), (t,))[1], by_differences(f, x, t), atol=1e-8)
        gradient = gradix.grad(f)
        np.testing.assert_allclose(gradix.jvp(gradient, (x,), (t,))[1], by_differences(gradient, x, t), atol=1e-8)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: lax.reduce_max(X, (-1,)), ValueError, "out-of-bounds"),
        (lambda: lax.reduce_sum(X, (3,)), ValueError, "out-of-bounds"),
        (lambda: lax.reduce_prod(X, (0, 0)), ValueError, "duplicate"),
        (lambda: lax.reduce_max(X, 0), TypeError, "iterable"),
        (lambda: lax.reduce_and(X, (0,)), TypeError, "bool or int"),
        (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "bool"),
        (lambda: lax.argmax(X, 3, "int32"), ValueError, "Invalid axis 3"),
        (lambda: lax.argmax(X, 0, "float32"), TypeError, "integer type"),
        (lambda: lax.argmin(X[:0], 0, "int32"), ValueError, "non-empty"),
        (lambda: lax.cumsum(X, -1), ValueError, "negative axes"),
        (lambda: lax.cumsum(X, 3), ValueError, "out of bounds"),
        (lambda: lax.cumsum(X > 0), TypeError, "bool"),
        (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2)), TypeError, "wrong number"),
        (lambda: lax.reduce_window(X[0], 0.0, lax.add, (2, 0)), TypeError, "strictly positive"),
        (lambda: lax.reduce_window(X[0], 0.0, lax.add, (2, 2), padding="ALL"), RuntimeError, "padding type"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


# -- running reductions -------------------------------------------------------------------------------------------

CUMULATIVE = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative(name, axis, reverse):
    got = both_ways(lambda x: getattr(lax, name)(x, axis, reverse), X, exact=False)
    want = CUMULATIVE[name](np.flip(X, axis) if reverse else X, axis=axis)
    np.testing.assert_allclose(got, np.flip(want, axis) if reverse else want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_edges(name):
    x = np.array([-INF, -INF, 1, INF, 2, NAN, 3], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(both_ways(getattr(lax, name), x, exact=False), CUMULATIVE[name](x), rtol=1e-6)
    assert both_ways(getattr(lax, name), np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_long_sums_stay_accurate():
    x = RNG.uniform(size=100_000).astype(np.float32)
    got = np.asarray(gradix.jit(lax.cumsum)(x), np.float64)
    np.testing.assert_allclose(got, np.cumsum(x, dtype=np.float64), rtol=2e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint32"])
def test_cumulative_integers_wrap(dtype):
    x = RNG.integers(0, 100, 30).astype(dtype)
    np.testing.assert_array_equal(both_ways(lax.cumprod, x), np.cumprod(x, dtype=dtype))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_derivatives(name, reverse):
    with gradix.enable_x64():
        x, t, ct = RNG.normal(size=(3, 4, 6))
        if name == "cumprod":
            x[2, 1] = 0

        def f(x):
            return getattr(lax, name)(x, 1, reverse)

        tangent = gradix.jvp(f, (x,), (t,))[1]
        np.testing.assert_allclose(tangent, by_differences(f, x, t), atol=1e-8)
        (adjoint,) = gradix.vjp(f, x)[1](ct)
        np.testing.assert_allclose(np.sum(np.asarray(tangent) * ct), np.sum(t * np.asarray(adjoint)))

        def gradient(x):
            return gradix.grad(lambda x: jnp.sum(f(x) * ct))(x)

        np.testing.assert_allclose(gradix.jvp(gradient, (x,), (t,))[1], by_differences(gradient, x, t), atol=1e-7)


@pytest.mark.parametrize("name", CUMULATIVE)
@pytest.mark.parametrize("mapped", [0, 1, 2])
def test_cumulative_vmap(name, mapped):
    got = gradix.vmap(getattr(lax, name), in_axes=mapped)(X)
    np.testing.assert_allclose(got, np.stack([getattr(lax, name)(x) for x in np.moveaxis(X, mapped, 0)]), rtol=1e-6)


# -- windows ------------------------------------------------------------------------------------------------------


def windows_by_loops(x, reduce, fill, size, stride, pads, base, dilation):
    """One axis, one window at a time."""
    spread = np.full((len(x) - 1) * base + 1, fill, x.dtype)
    spread[::base] = x
    (low, high), reach = pads, (size - 1) * dilation + 1
    padded = np.concatenate([np.full(max(low, 0), fill, x.dtype), spread, np.full(max(high, 0), fill, x.dtype)])
    padded = padded[max(-low, 0) : len(padded) - max(-high, 0)]
    starts = range(0, len(padded) - reach + 1, stride)
    return np.array([reduce(padded[i : i + reach : dilation]) for i in starts], x.dtype)


WINDOWS = [
    (2, 1, (0, 0), 1, 1),
    (3, 2, (1, 2), 1, 1),
    (2, 3, (-1, 0), 1, 2),
    (3, 1, (2, 2), 2, 1),
    (2, 2, (1, 0), 3, 2),
    (20, 1, (3, 3), 1, 1),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reduce_window(name, window):
    function, reduce, fill = {
        "sum": (lax.add, np.sum, 0.0),
        "max": (lax.max, np.max, -INF),
        "min": (lax.min, np.min, INF),
    }[name]
    size, stride, pads, base, dilation = window
    x = RNG.normal(size=23).astype(np.float32)

    def f(x):
        return lax.reduce_window(x, fill, function, (size,), (stride,), (pads,), (base,), (dilation,))

    got = both_ways(f, x, exact=name != "sum")
    np.testing.assert_allclose(got, windows_by_loops(x, reduce, fill, *window), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "size, pads",
    [((2, 3), ((0, 0), (0, 0))), ((3, 2), ((1, 2), (-2, 1))), ((4, 1), ((-1, -2), (3, 0))), ((7, 9), ((0, 0), (2, 4)))],
    ids=str,
)
def test_gradients_of_sums_over_windows_side_by_side(size, pads):
    """Each element gets the cotangent of the one window it is in, or none."""
    x = np.arange(63, dtype=np.float32).reshape(7, 9)
    y, back = gradix.vjp(lambda x: lax.reduce_window(x, 0.0, lax.add, size, size, pads), x)
    ct = np.arange(1, y.size + 1, dtype=np.float32).reshape(y.shape)
    wanted = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        number = tuple([(i + low) // k for i, k, (low, _) in zip(place, size, pads)])
        if all(0 <= i < n for i, n in zip(number, ct.shape)):
            wanted[place] = ct[number]
    np.testing.assert_array_equal(both_ways(lambda ct: back(ct)[0], ct), wanted)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reduce_window_derivatives(name, window):
    function, fill = {"sum": (lax.add, 0.0), "max": (lax.max, -INF), "min": (lax.min, INF)}[name]
    size, stride, pads, base, dilation = window
    with gradix.enable_x64():
        x, t = RNG.permutation(23).astype(float), RNG.normal(size=23)

        def f(x):
            return lax.reduce_window(x, fill, function, (size,), (stride,), (pads,), (base,), (dilation,))

        y, tangent = [np.asarray(v) for v in gradix.jvp(f, (x,), (t,))]
        with np.errstate(invalid="ignore"):  # windows over padding alone hold infinities
            differences = by_differences(f, x, t, 1e-3)
        np.testing.assert_allclose(tangent, np.where(np.isfinite(y), differences, 0), atol=1e-9)
        ct = RNG.normal(size=tangent.shape)
        for back in (gradix.vjp(f, x)[1], gradix.jit(gradix.vjp(f, x)[1])):
            np.testing.assert_allclose(np.sum(tangent * ct), np.sum(t * np.asarray(back(ct)[0])))


def test_pooling_gives_ties_to_the_first():
    def pooled(x):
        return jnp.sum(lax.reduce_window(x, -INF, lax.max, (2, 2), (2, 2), "SAME"))

    np.testing.assert_array_equal(gradix.grad(pooled)(np.ones((3, 2), np.float32)), [[1, 0], [0, 0], [1, 0]])


def test_reduce_window_by_any_computation():
    x = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)

    def f(x):
        return lax.reduce_window((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2, 2))

    for total, product in (f(x), gradix.jit(f)(x)):
        np.testing.assert_array_equal(total, [[12, 16]])
        np.testing.assert_array_equal(product, [[40, 180]])


@pytest.mark.parametrize(
    "padding, want",
    [
        ("SAME", [(0, 1), (1, 1)]),
        ("SAME_LOWER", [(1, 0), (1, 1)]),
        ("VALID", [(0, 0), (0, 0)]),
        ("same", [(0, 1), (1, 1)]),
    ],
)
def test_padding_by_name(padding, want):
    assert lax.padtype_to_pads((8, 7), (3, 3), (2, 1), padding) == want


# -- windows reduced by a program ----------------------------------------------------------------------------------

WINDOWS = {
    "plain": ((2, 3, 1), (1, 1, 1), "VALID", None, None),
    "strides": ((2, 2, 2), (1, 2, 3), "SAME", None, None),
    "dilated": ((2, 2, 1), (2, 1, 1), [(1, 0), (0, 1), (2, 0)], (1, 2, 1), (2, 1, 1)),
    "cut": ((1, 2, 2), (1, 1, 1), [(-1, 0), (0, -2), (-1, 1)], (1, 1, 2), None),
}


def windows_of_products(x, start, window):
    return lax.reduce_window(x, start, lax.mul, *window)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_windows_of_products_have_derivatives(window):
    with gradix.enable_x64(True):
        x, t = (jnp.asarray(RNG.uniform(0.5, 1.5, (3, 4, 5))) for _ in range(2))
        one = jnp.float64(1)
        f = lambda x: windows_of_products(x, one, window)
        both_ways(f, x, exact=False)
        y, moved = gradix.jvp(f, (x,), (t,))
        np.testing.assert_allclose(y, f(x))
        np.testing.assert_allclose(moved, by_differences(f, x, t), rtol=1e-6, atol=1e-7)
        ct = jnp.cos(jnp.arange(y.size, dtype="float64")).reshape(y.shape)
        (back,) = gradix.vjp(f, x)[1](ct)
        np.testing.assert_allclose((back * t).sum(), (ct * moved).sum(), rtol=1e-9)
        gradient = lambda x: gradix.vjp(f, x)[1](ct)[0]
        np.testing.assert_allclose(
            gradix.jvp(gradient, (x,), (t,))[1], by_differences(gradient, x, t), rtol=1e-5, atol=1e-6
        )


def test_starts_of_windows_have_derivatives_and_may_be_mapped():
    x, window = jnp.asarray(X), WINDOWS["plain"]
    f = lambda start: windows_of_products(x, start, window)
    np.testing.assert_allclose(gradix.jvp(f, (2.0,), (1.0,))[1], f(jnp.float32(1)), rtol=1e-6)
    starts = jnp.array([0.5, 2.0], "float32")
    with pytest.raises(TypeError, match="inconsistent dtypes.*float32.*int32"):
        f(jnp.int32(2))
    with pytest.raises(TypeError, match="inconsistent dtypes.*float32.*int32"):
        lax.reduce(x, jnp.int32(2), lax.mul, (0,))
    np.testing.assert_allclose(gradix.vmap(f)(starts), jnp.stack([f(s) for s in starts]), rtol=1e-6)


def sums_by_hand(x, start, size, strides, padding, base, holes):
    """`start` and the elements of each window that are there."""
    shape = lax.reduce_window_shape_tuple(x.shape, size, strides, padding, base, holes)
    out = np.full(shape, start)
    for at in np.ndindex(*shape):
        for k in np.ndindex(*size):
            place = [a * s + i * h - low for a, s, i, h, (low, _) in zip(at, strides, k, holes, padding)]
            if all(p >= 0 and p % b == 0 and p // b < n for p, b, n in zip(place, base, x.shape)):
                out[at] += x[tuple([p // b for p, b in zip(place, base)])]
    return out


@pytest.mark.parametrize(
    "size, padding, base",
    [
        ((1, 1), [(0, -1), (0, 0)], (1, 1)),
        ((1, 1), [(-1, 2), (1, -2)], (1, 1)),
        ((2, 1), [(1, 2), (0, -1)], (2, 1)),
        ((2, 2), [(-2, -1), (-4, 1)], (3, 2)),
        ((1, 2), [(-4, 3), (0, 0)], (1, 1)),
        ((1, 1), [(-9, 2), (0, 0)], (3, 1)),
    ],
)
def test_windows_leave_out_padding(size, padding, base):
    """Of negative padding, XLA made another shape where the window has one element, and ended the process."""
    x, window = jnp.asarray(X[0]), (size, (1, 2), padding, base, (1, 1))
    f = lambda x: lax.reduce_window(x, jnp.float32(2), lax.add, *window)
    want = sums_by_hand(X[0], 2.0, *window)
    np.testing.assert_allclose(gradix.jit(f)(x), want, rtol=1e-5)
    primal, moved = gradix.jvp(f, (x,), (x,))
    np.testing.assert_allclose(primal, want, rtol=1e-5)
    np.testing.assert_allclose(moved, want - 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_large_extrema_keep_nan(name, axes, dtype):
    """XLA's library for large reductions drops it; infinities of both signs are no NaN."""
    x = np.random.default_rng(0).standard_normal((80, 90)).astype(dtype)
    x[3, 7], x[5, 5], x[5, 6], x[9, 2] = np.nan, np.inf, -np.inf, -np.inf
    for value in (x, np.where(np.isnan(x), 0, x), np.where(np.isinf(x), 0, x), np.full_like(x, np.nan)):
        value = value.astype(dtype)
        want = (np.maximum if name == "reduce_max" else np.minimum).reduce(value, axis=axes)
        with gradix.enable_x64(True):
            got = gradix.jit(lambda v: getattr(lax, name)(v, axes))(jnp.asarray(value))
        np.testing.assert_array_equal(got, want)


# What XLA would leave to a library that drops NaN: all that is a maximum or minimum of two numbers in the end.
EXTREME_BODIES = {
    "max": lax.max,
    "min": lax.min,
    "swapped": lambda a, b: lax.max(b, a),
    "twice": lambda a, b: lax.max(lax.max(a, b), a),
    "and nothing": lambda a, b: lax.max(a, b) + 0,
    "inside": lambda a, b: lax.neg(lax.min(lax.neg(a), lax.neg(b))),
    "called": lambda a, b: gradix.jit(jnp.maximum)(a, b),
    "kept apart": lambda a, b: lax.optimization_barrier(lax.max(a, b)),
    "clipped": lambda a, b: lax.min(lax.max(a, b), lax.full_like(a, 9)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXTREME_BODIES)
def test_large_reductions_by_a_users_extremum_keep_nan(name, dtype):
    body = EXTREME_BODIES[name]
    with gradix.enable_x64(True):
        x = np.linspace(-3, 5, 64 * 128).astype(dtype).reshape(64, 128)
        x[3, 7], x[9, 2] = np.nan, np.inf
        half = np.asarray(0.5, dtype)
        for axes in ((0,), (1,), (0, 1)):
            plain, marked = (
                np.isnan(x).any(axes),
                np.asarray(gradix.jit(lambda x, a=axes: lax.reduce(x, half, body, a))(x)),
            )
            np.testing.assert_array_equal(np.isnan(marked), plain)
            whole = gradix.jit(lambda x, a=axes: lax.reduce(x, half, body, a))(np.where(np.isnan(x), 1, x))
            np.testing.assert_array_equal(np.where(plain, whole, marked), whole)
        row = x.reshape(-1)
        for size in (32, len(row)):
            windows = np.asarray(
                gradix.jit(lambda x, n=size: lax.reduce_window(x, half, body, (n,), (n,), "VALID"))(row)
            )
            np.testing.assert_array_equal(np.isnan(windows), np.isnan(row.reshape(-1, size)).any(1))


@pytest.mark.parametrize("body, start", [(lax.max, -np.inf), (lax.min, np.inf)])
def test_large_windows_keep_nan(body, start):
    row = np.linspace(-3, 5, 1 << 13, dtype="float32")
    row[700] = np.nan
    for size in (32, len(row)):
        found = np.asarray(gradix.jit(lambda x, n=size: lax.reduce_window(x, start, body, (n,), (n,), "VALID"))(row))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(row.reshape(-1, size)).any(1))


@pytest.mark.rewritten
@pytest.mark.parametrize("dtype", ["float32", "float64", ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "shape, axes",
    [
        ((7, 5000), (0,)),
        ((2, 1, 20_001), (0,)),
        ((3, 4, 70, 60), (0, 1)),
        ((1, 9, 4100), (1,)),
        ((3, 5, 64, 64), (1,)),
        ((2, 3, 1, 2, 4099), (1, 3)),
        ((1, 2, 4096, 1), (0, 1, 3)),
    ],
)
def test_sums_of_many_columns(shape, axes, dtype):
    with gradix.enable_x64():
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        total = gradix.jit(lambda a: jnp.sum(a, axis=axes))
        found = np.asarray(total(x)).astype("float64")
        wide = x.astype("float64")
        bound = 100 * float(jnp.finfo(dtype).eps) * np.abs(wide).sum(axes)
        assert (np.abs(found - wide.sum(axes)) <= bound).all()
        text = total.lower(x).as_text()
        assert "dot_general" in text and 'stablehlo.reduce"' not in text
        y = x.copy().reshape(-1)
        y[[5, 77, -1]] = np.nan, np.inf, -np.inf
        y = y.reshape(shape)
        np.testing.assert_array_equal(
            np.isfinite(np.asarray(total(y)).astype("float64")), np.isfinite(y.astype("float64").sum(axes))
        )
        weights = np.random.default_rng(1).standard_normal(found.shape).astype(dtype)
        gradient = gradix.jit(gradix.grad(lambda a: (jnp.sum(a, axis=axes) * weights).sum()))(x)
        np.testing.assert_array_equal(gradient, np.broadcast_to(np.expand_dims(weights, axes), shape))


def test_sums_of_few_columns_along_rows_and_over_parted_axes_are_reductions():
    for shape, axes in (
        ((7, 4095), 0),
        ((5000, 3), 1),
        ((7, 5000), None),
        ((3, 2, 3, 5000), (0, 2)),
        ((0, 5000), 0),
        ((1, 5000), 0),
    ):
        text = gradix.jit(lambda a: jnp.sum(a, axis=axes)).lower(np.zeros(shape, "float32")).as_text()
        assert "dot_general" not in text, shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "total", [lambda x: lax.reduce_sum(x, [0]), lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (0,))]
)
def test_sums_in_the_precision_of_16_bits_can_be_refused(dtype, total):
    x = jnp.ones((3, 1), dtype)
    assert total(x) == 3
    with gradix.allow_f16_reductions(False):
        with pytest.raises(ValueError, match="not allowed when jax_allow_f16_reductions=False"):
            gradix.jit(total)(x)
        assert total(x.T).shape == (3,) and total(x.astype("float32")) == 3 and x.sum() == 3
