"""Sorting and top_k against NumPy, small and large (large arrays are sorted another way), with NaN and both zeros."""

import ml_dtypes
import numpy as np
import pytest

import gradix
from gradix import lax

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
SIZES = [7, 20_000]  # the latter is above the size from which keys and places are packed
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", ml_dtypes.bfloat16, "float32", "int64", "float64"]


def mixed(shape, dtype):
    """Values with many ties; floats with NaN of either sign, infinities and both zeros."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iub":
        if dtype.kind == "b":
            return RNG.integers(0, 2, shape).astype(bool)
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        return RNG.choice(np.array([low, low + 1, low // 2, 0, 1, 2, high // 2, high - 1, high], dtype), shape)
    return RNG.choice([NAN, -NAN, INF, -INF, 0.0, -0.0, 1, -1, 2.5, -2.5], shape).astype(dtype)


def as_floats(x):
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "V" else x


def ways(function):
    return function, gradix.jit(function)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype, size):
    with gradix.enable_x64():
        x = mixed(size, dtype)
        for f in ways(lax.sort):
            np.testing.assert_array_equal(as_floats(f(x)), np.sort(as_floats(x), kind="stable"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_follow_their_keys_stably(dtype, size):
    with gradix.enable_x64():
        keys, places = mixed(size, dtype), np.arange(size, dtype=np.int32)
        order = np.argsort(as_floats(keys), kind="stable")
        for f in ways(lax.sort_key_val):
            got, followed = f(keys, places)
            np.testing.assert_array_equal(followed, order)
            np.testing.assert_array_equal(np.signbit(as_floats(got)), np.signbit(as_floats(keys)[order]))


@pytest.mark.parametrize("shape", [(1 << 16,), ((1 << 16) + 1,), (3, 700)])
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "float16", "uint8", "int32", "uint32", "float32"])
def test_places_beside_keys_in_32_bits_and_in_more(dtype, shape):
    x = mixed(shape, dtype)
    np.testing.assert_array_equal(gradix.jit(gradix.numpy.argsort)(x), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dimension", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 4), (200, 90), (0, 3), (2, 1)])
def test_dimensions(shape, dimension):
    x, y = mixed(shape, np.float32), RNG.permutation(shape[0] * shape[1]).reshape(shape).astype(np.int32)
    order = np.argsort(x, dimension, kind="stable")
    for f in ways(lambda x, y: lax.sort((x, y), dimension)):
        got = f(x, y)
        np.testing.assert_array_equal(got[0], np.take_along_axis(x, order, dimension))
        np.testing.assert_array_equal(got[1], np.take_along_axis(y, order, dimension))


def test_several_keys():
    a, b, c = RNG.integers(0, 3, 50), mixed(50, np.float32), np.arange(50, dtype=np.int32)
    a = a.astype(np.int32)
    order = np.lexsort((c, b, a))
    for f in ways(lambda *xs: lax.sort(xs, num_keys=2)):
        for got, x in zip(f(a, b, c), (a, b, c)):
            np.testing.assert_array_equal(got, x[order])


def test_complex_numbers_go_by_real_then_imaginary_part_and_those_with_nan_last():
    x = np.array([1 + 2j, 1 + 1j, 0 + 5j, complex(NAN, 0), complex(1, NAN), 2], np.complex64)
    for f in ways(lax.sort):
        np.testing.assert_array_equal(f(x), x[[2, 1, 0, 5, 4, 3]])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [*DTYPES[1:], ml_dtypes.int4])
def test_top_k(dtype, size):
    with gradix.enable_x64():
        x = mixed(size, dtype) if dtype is not ml_dtypes.int4 else RNG.integers(-8, 8, size).astype(dtype)
        if np.dtype(dtype).kind in "fV" and dtype is not ml_dtypes.int4:
            x = np.where(np.isnan(x.astype(np.float64)), 3.0, x.astype(np.float64)).astype(dtype)
        plain = as_floats(x)
        signs = np.where(plain == 0, ~np.signbit(plain), 0) if plain.dtype.kind == "f" else np.zeros(size)
        order = np.lexsort((np.arange(size), -signs, -plain.astype(np.longdouble)))[:5]
        for f in ways(lambda x: lax.top_k(x, 5)):
            values, places = f(x)
            np.testing.assert_array_equal(places, order)
            np.testing.assert_array_equal(as_floats(values), plain[order])


def test_top_k_puts_nan_first_and_negative_nan_last():
    x = np.array([1, NAN, 3, 3, -0.0, 0.0, np.copysign(NAN, -1)], np.float32)
    for f in ways(lambda x: lax.top_k(x, 7)[1]):
        np.testing.assert_array_equal(f(x), [1, 2, 3, 0, 5, 4, 6])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k_axis_and_none(axis):
    x = RNG.normal(size=(4, 3)).astype(np.float32)
    values, _ = lax.top_k(x, 2, axis=axis)
    np.testing.assert_array_equal(values, np.take(-np.sort(-x, axis), [0, 1], axis))
    assert lax.top_k(x, 0, axis=axis)[0].size == 0


def test_derivatives_follow_the_order():
    x, t = RNG.permutation(12).reshape(3, 4).astype(np.float32), RNG.normal(size=(3, 4)).astype(np.float32)
    order = np.argsort(x, 1)
    np.testing.assert_array_equal(gradix.jvp(lambda x: lax.sort(x, 1), (x,), (t,))[1], np.take_along_axis(t, order, 1))
    ct = RNG.normal(size=(3, 4)).astype(np.float32)
    (back,) = gradix.vjp(lambda x: lax.sort(x, 1), x)[1](ct)
    np.testing.assert_array_equal(np.take_along_axis(np.asarray(back), order, 1), ct)
    y = RNG.normal(size=(3, 4)).astype(np.float32)
    moved = gradix.jvp(lambda y: lax.sort((x, y), 1)[1], (y,), (t,))[1]
    np.testing.assert_array_equal(moved, np.take_along_axis(t, order, 1))
    (back,) = gradix.vjp(lambda x: lax.top_k(x, 2)[0], x)[1](ct[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(np.asarray(back), order[:, ::-1][:, :2], 1), ct[:, :2])


def test_derivatives_of_empty_rows_have_the_shape_of_what_is_taken():
    x = np.zeros((4, 0, 3), np.float32)
    y, back = gradix.vjp(lambda x: lax.top_k(x, 1, axis=0)[0], x)
    assert y.shape == (1, 0, 3) and back(y)[0].shape == x.shape
    assert gradix.jvp(lambda x: lax.top_k(x, 1, axis=0)[0], (x,), (x,))[1].shape == (1, 0, 3)


@pytest.mark.parametrize("in_axes", [(0, None), (1, None), (None, 1), (1, 0)])
def test_vmap(in_axes):
    shapes = [(4,) if i is None else (4, 3) if i else (3, 4) for i in in_axes]
    x, y = [mixed(s, np.float32) for s in shapes]
    got = gradix.vmap(lambda x, y: lax.sort((x, y), num_keys=2), in_axes=in_axes)(x, y)
    for k in range(3):
        row = [v if i is None else np.take(v, k, i) for v, i in zip((x, y), in_axes)]
        for a, b in zip(got, lax.sort(row, num_keys=2)):
            np.testing.assert_array_equal(a[k], b)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: lax.sort(x, 1), ValueError, "out of bounds"),
        (lambda x: lax.sort((x, x), num_keys=3), ValueError, "num_keys"),
        (lambda x: lax.sort((x, x), num_keys=0), ValueError, "num_keys"),
        (lambda x: lax.sort(()), TypeError, "at least one"),
        (lambda x: lax.sort((x, x[:2])), TypeError, "equal shapes"),
        (lambda x: lax.top_k(x, 6), ValueError, "no larger"),
        (lambda x: lax.top_k(x, -1), ValueError, "nonnegative"),
        (lambda x: lax.top_k(x, 1, axis=1), ValueError, "axis 1"),
        (lambda x: lax.top_k(x.astype(complex), 1), ValueError, "complex"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(np.arange(5, dtype=np.float32))
