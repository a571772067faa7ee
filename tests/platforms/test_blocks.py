"""Compiled reductions of large arrays, which are made block by block, give what NumPy gives."""

import functools

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._platforms.cpu import blocks, sums
from gradix.experimental import enable_x64

SHAPES = [
    ((5000,), (0,)),
    ((4099,), (0,)),
    ((70001,), (0,)),
    ((1_000_003,), (0,)),
    ((73, 1021), (1,)),
    ((1021, 73), (0,)),
    ((300, 17), (0,)),
    ((17, 300), (0,)),
    ((300, 17), (1,)),
    ((2000, 3), (0,)),
    ((3, 2000, 2), (1,)),
    ((12, 31, 19), (0, 2)),
    ((12, 31, 19), (1, 2)),
    ((12, 31, 19), (0, 1)),
    ((12, 31, 19), (1,)),
    ((12, 31, 19), (0, 1, 2)),
    ((5, 1, 1000), (0, 1)),
    ((64, 64), (1,)),
    ((4097, 1), (0,)),
    ((1, 4097), (0,)),
    ((8, 9, 10, 11), (0, 2)),
    ((2, 5000), (0,)),
    ((5000, 2), (1,)),
]


def values(shape, dtype):
    """Numbers of both signs with no order, each more than once."""
    n = int(np.prod(shape))
    whole = (np.arange(n, dtype=np.int64) * 7919 % 10007) % 2001 - 1000
    if np.dtype(dtype).kind == "b":
        return (whole > 990).reshape(shape)
    if np.dtype(dtype).kind == "u":
        whole += 1000
    return (whole % 100 if np.dtype(dtype).itemsize == 1 else whole).astype(dtype).reshape(shape)


@functools.cache
def compiled(name, axes):
    return gradix.jit(lambda a: getattr(lax, f"reduce_{name}")(a, axes))


def check(name, x, axes):
    got = compiled(name, axes)(jnp.asarray(x))
    ufunc = {"max": np.maximum, "min": np.minimum, "or": np.bitwise_or, "and": np.bitwise_and, "xor": np.bitwise_xor}[
        name
    ]
    np.testing.assert_array_equal(np.asarray(got), ufunc.reduce(x, axis=axes))
    assert got.dtype == x.dtype


@pytest.mark.parametrize("shape, axes", SHAPES, ids=str)
def test_extrema_with_the_infinities_and_a_nan_anywhere(shape, axes):
    x = values(shape, "float32")
    for name in ("max", "min"):
        check(name, x, axes)
        for place in (0, x.size // 2, x.size - 1):
            for bad in ([np.nan], [-np.nan], [np.inf, -np.inf, np.nan], [np.inf, -np.inf]):
                y = x.copy()
                y.flat[[(place + i) % x.size for i in range(len(bad))]] = bad
                check(name, y, axes)


@pytest.mark.parametrize("shape, axes", SHAPES, ids=str)
def test_extrema_of_integers(shape, axes):
    for name in ("max", "min"):
        check(name, values(shape, "int32"), axes)


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float64",
        ml_dtypes.bfloat16,
    ],
    ids=lambda d: np.dtype(d).name,
)
def test_extrema_of_every_dtype(dtype):
    with enable_x64():
        for shape, axes in SHAPES[4:6] + SHAPES[11:12]:
            x = values(shape, dtype)
            x.flat[[5, 11]] = (np.iinfo(dtype).min, np.iinfo(dtype).max) if x.dtype.kind in "iu" else (-np.inf, np.inf)
            check("max", x, axes)
            check("min", x, axes)


@pytest.mark.parametrize("name", ["or", "and", "xor"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32"])
def test_truths_and_bits(name, dtype):
    for shape, axes in SHAPES[1:2] + SHAPES[4:9] + SHAPES[10:12] + SHAPES[-3:]:
        x = values(shape, dtype)
        check(name, x, axes)
        check(name, ~x, axes)
        check(name, np.zeros(shape, dtype), axes)


@pytest.mark.parametrize(
    "shape, axis", [((5001,), 0), ((73, 1021), 1), ((1021, 73), 0), ((300, 17), 1), ((12, 31, 19), 1)]
)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_place_is_that_of_the_first_extremum_or_nan(name, shape, axis):
    for dtype in ("float32", "int32", "bool"):
        x = values(shape, dtype)
        find = gradix.jit(lambda a: getattr(jnp, name)(a, axis=axis))
        np.testing.assert_array_equal(np.asarray(find(jnp.asarray(x))), getattr(np, name)(x, axis=axis))
        if dtype == "float32":
            for places in ([0], [x.size - 1], [x.size // 3, x.size // 2]):
                y = x.copy()
                y.flat[places] = np.nan
                np.testing.assert_array_equal(np.asarray(find(jnp.asarray(y))), getattr(np, name)(y, axis=axis))
            assert np.all(np.asarray(find(jnp.full(shape, -np.inf))) == 0)


def test_extrema_of_what_was_computed_under_every_transformation():
    x = values((3, 80, 70), "float32")
    f = gradix.jit(lambda a: jnp.max(abs(a), axis=1))
    np.testing.assert_array_equal(np.asarray(f(x)), abs(x).max(1))
    mapped = gradix.jit(gradix.vmap(lambda a: jnp.max(abs(a), axis=0)))
    np.testing.assert_array_equal(np.asarray(mapped(x)), abs(x).max(1))
    y = np.random.default_rng(0).permutation(16800).reshape(80, 210).astype("float32")
    slope = gradix.jit(gradix.grad(lambda a: jnp.max(a, axis=1).sum()))(y)
    np.testing.assert_array_equal(np.asarray(slope), y == y.max(1, keepdims=True))
    looped = gradix.jit(lambda a: lax.fori_loop(0, 3, lambda i, s: s + jnp.max(s) - jnp.min(s, axis=0), a))
    expected = x[0]
    for _ in range(3):
        expected = expected + expected.max() - expected.min(0)
    np.testing.assert_array_equal(np.asarray(looped(x[0])), expected)


@pytest.fixture
def small_arrays_too(monkeypatch):
    monkeypatch.setattr(blocks, "_LEAST_ONCE", 1 << 12)
    monkeypatch.setattr(sums, "_LONG", 1)


@pytest.mark.parametrize("shape, axes", SHAPES, ids=str)
def test_sums_give_each_element_once(shape, axes, small_arrays_too):
    whole = values(shape, "int32")
    for x in (whole, whole.astype("int16"), whole.astype("uint8"), whole > 0):
        out = x.dtype if x.dtype.itemsize > 1 else "int32"
        found = gradix.jit(lambda x, out=out: jnp.sum(x, axes, dtype=out))(x)
        np.testing.assert_array_equal(found, x.sum(axes, dtype=out))
    half = (whole % 9 - 4).astype("float16")  # float32 holds such sums exactly
    found = gradix.jit(lambda x: jnp.sum(x, axes))(half)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, half.sum(axes, dtype="float64").astype("float16"))


@pytest.mark.x32
@pytest.mark.parametrize("shape, axes", SHAPES, ids=str)
def test_products_give_each_element_once(shape, axes, small_arrays_too):
    whole = values(shape, "int32")
    factors = np.where(whole % 50 == 3, 2.0, np.where(whole % 50 == 7, 0.5, np.where(whole % 2, 1.0, -1.0)))
    for dtype in ("float32", "float16", ml_dtypes.bfloat16):  # powers of two, of which few are not one
        x = factors.astype(dtype)
        found, wanted = np.asarray(gradix.jit(lambda x: jnp.prod(x, axes))(x)), factors.prod(axes)
        assert found.dtype == dtype
        inside = (abs(wanted) > 2.0**-14) & (abs(wanted) < 2.0**15)
        np.testing.assert_array_equal(np.where(inside, found, 0), np.where(inside, wanted, 0))
    odd = whole | 1
    np.testing.assert_array_equal(gradix.jit(lambda x: jnp.prod(x, axes))(odd), odd.prod(axes, dtype="int32"))


def test_sums_and_products_of_what_is_not_finite(small_arrays_too):
    sums, products = gradix.jit(lambda x: jnp.sum(x, axis=1)), gradix.jit(lambda x: jnp.prod(x, axis=1))
    x = np.ones((6, 1021), "float16")
    x[0, 3], x[1, 1020], x[2, [0, 500]], x[3, 77], x[4] = np.nan, np.inf, (np.inf, -np.inf), -np.inf, 100
    wanted = np.array([np.nan, np.inf, np.nan, -np.inf, np.inf, 1021], "float16")  # of 100: more than float16 holds
    np.testing.assert_array_equal(sums(x), wanted)
    x[4], x[5, 9] = 1, 0
    for dtype in ("float16", "float32"):
        np.testing.assert_array_equal(products(x.astype(dtype)), [np.nan, np.inf, -np.inf, -np.inf, 1, 0])


@pytest.mark.x32
def test_sums_and_products_under_every_transformation(small_arrays_too):
    x = values((3, 80, 70), "int32")
    for name in ("sum", "prod"):
        mapped = gradix.jit(gradix.vmap(lambda a: getattr(jnp, name)(a, axis=1)))
        np.testing.assert_array_equal(mapped(x), getattr(x, name)(2, dtype="int32"))
    half = (x % 9 - 4).astype("float16")
    np.testing.assert_array_equal(gradix.jit(gradix.grad(lambda a: jnp.sum(a)))(half), np.ones_like(half))
    single = 1 + np.random.default_rng(1).standard_normal((2, 5000)) * 1e-2
    slope = gradix.jit(gradix.grad(lambda a: jnp.prod(a, axis=1).sum()))(single.astype("float32"))
    np.testing.assert_allclose(slope, single.prod(1, keepdims=True) / single, rtol=1e-4)
    counted = gradix.jit(lambda a: lax.fori_loop(0, 3, lambda i, n: n + jnp.sum(a > n, dtype="int32"), 0))
    n = 0
    for _ in range(3):
        n += (x > n).sum()
    assert int(counted(x)) == n


@pytest.mark.parametrize("n", [0, 1])
def test_sums_and_products_of_nothing_and_one(n, small_arrays_too):
    for shape in ((n,), (5000, n), (n, 5000)):
        for dtype in ("int32", "float16"):
            x = np.full(shape, -1, dtype)
            np.testing.assert_array_equal(gradix.jit(lambda a: jnp.sum(a, axis=0))(x), x.sum(0, dtype=dtype))
            np.testing.assert_array_equal(gradix.jit(lambda a: jnp.prod(a, axis=-1))(x), x.prod(-1, dtype=dtype))
