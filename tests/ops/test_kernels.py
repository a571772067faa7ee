"""Kernels on arrays large enough to use them, against NumPy."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.lax.order import ranked

RNG = np.random.default_rng(0)
SHAPES = (((20_000,), 0), ((300, 200), 0), ((300, 200), 1), ((3, 5000), 1), ((4, 70, 30), 1))


def numbers(shape, dtype):
    """Numbers with repetitions; floats with NaN, infinities and zeros among them."""
    x = (RNG.standard_normal(shape) * 40).astype(dtype)
    if np.dtype(dtype).kind == "f":
        flat = x.reshape(-1)
        flat[::17], flat[1::31], flat[2::31], flat[3::13] = np.nan, np.inf, -np.inf, 0
    return x


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint16", "bool"])
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_sort(shape, axis, dtype):
    x = numbers(shape, dtype)
    np.testing.assert_array_equal(gradix.jit(lambda a: jnp.sort(a, axis))(x), np.sort(x, axis))
    np.testing.assert_array_equal(gradix.jit(lambda a: jnp.argsort(a, axis))(x), np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("shape, axis", SHAPES[:3])
def test_sort_by_several_keys_carries_the_rest(shape, axis):
    first, second, third = RNG.integers(0, 4, shape), numbers(shape, "float32"), numbers(shape, "float32")
    first = first.astype("int32")
    found = gradix.jit(lambda *a: lax.sort(a, dimension=axis, num_keys=2))(first, second, third)
    order = np.lexsort((second, first), axis=axis)
    for out, x in zip(found, (first, second, third)):
        np.testing.assert_array_equal(out, np.take_along_axis(x, order, axis))


def test_sort_keeps_zeros_of_both_signs_in_their_order():
    x = np.where(np.arange(5000) % 2, -0.0, 0.0).astype("float32")
    np.testing.assert_array_equal(gradix.jit(jnp.argsort)(x), np.arange(5000))


def test_sort_by_value_packed_with_its_key():
    key, value = RNG.integers(-5, 5, 9000).astype("int32"), RNG.standard_normal(9000).astype("float32")
    k, v = gradix.jit(lax.sort_key_val)(key, value)
    order = np.argsort(key, kind="stable")
    np.testing.assert_array_equal(k, key[order])
    np.testing.assert_array_equal(v, value[order])


def test_sort_inside_loops_and_maps():
    x = numbers((3, 4000), "float32")
    _, rows = gradix.jit(lambda a: lax.scan(lambda c, row: (c, jnp.sort(row)), 0, a))(x)
    np.testing.assert_array_equal(rows, np.sort(x, 1))
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(jnp.argsort))(x), np.argsort(x, 1, kind="stable"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
@pytest.mark.parametrize("rows, columns, m", [(20_000, 1, 1), (9000, 3, 2), (5000, 40, 2), (50_000, 1, 6)])
def test_ranked(rows, columns, m, dtype):
    x, ranks = numbers((rows, columns), dtype), RNG.integers(0, rows, (m, columns)).astype("int32")
    ranks[0, 0], ranks[-1, -1] = 0, rows - 1
    np.testing.assert_array_equal(gradix.jit(ranked)(x, ranks), np.take_along_axis(np.sort(x, 0), ranks, 0))


def test_median_and_its_gradient():
    x = RNG.standard_normal(20_001).astype("float32")
    assert gradix.jit(jnp.median)(x) == np.median(x)
    gradient = gradix.jit(gradix.grad(jnp.median))(x)
    np.testing.assert_array_equal(gradient, x == np.median(x))
    np.testing.assert_allclose(
        gradix.jit(lambda a: jnp.percentile(a, jnp.array([5.0, 95.0])))(x), np.percentile(x, [5, 95]), rtol=1e-5
    )


RUNNING = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((20_000,), 0),
        ((8193,), 0),
        ((9, 1025), 1),
        ((9001, 3), 0),
        ((3, 5000, 2), 1),
        ((800, 13), 1),
        ((90, 255), 1),
        ((40, 257), 1),
        ((2500, 3), 1),
    ],
)
def test_running(name, shape, axis, reverse):
    x = 1 + RNG.standard_normal(shape) * 0.01 if name == "cumprod" else RNG.standard_normal(shape)
    flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    wanted = flip(RUNNING[name].accumulate(flip(x), axis))
    found = gradix.jit(lambda a: getattr(lax, name)(a, axis, reverse))(x.astype("float32"))
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-3 if name == "cumsum" else 1e-6)


def test_running_integers_are_exact_and_nan_stays():
    x = RNG.integers(-50, 50, 30_000).astype("int32")
    np.testing.assert_array_equal(gradix.jit(jnp.cumsum)(x), np.cumsum(x))
    y = RNG.standard_normal(10_000).astype("float32")
    y[7000] = np.nan
    np.testing.assert_array_equal(gradix.jit(lax.cummax)(y), np.maximum.accumulate(y))


def test_running_log_sums_of_far_apart_numbers():
    x = RNG.standard_normal(9000).astype("float32") * 300
    x[:5], x[4000] = -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp.accumulate(x)
    np.testing.assert_allclose(gradix.jit(lambda a: lax.cumlogsumexp(a))(x), wanted, rtol=1e-6)
    z = x[5:3005] / 300 + 1j
    np.testing.assert_allclose(gradix.jit(lambda a: lax.cumlogsumexp(a))(z), np.log(np.cumsum(np.exp(z))), rtol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_meet_each_infinity_once(reverse):
    x = np.ones(3000, "float32")
    x[1000], x[2000] = np.inf, -np.inf
    flip = (lambda v: v[::-1]) if reverse else (lambda v: v)
    with np.errstate(invalid="ignore"):
        wanted = flip(np.cumsum(flip(x)))
    np.testing.assert_array_equal(gradix.jit(lambda a: lax.cumsum(a, reverse=reverse))(x), wanted)


def test_running_sums_are_as_accurate_as_those_of_a_tree():
    x = RNG.uniform(size=100_000).astype("float32")
    exact = np.cumsum(x.astype("float64"))
    np.testing.assert_allclose(gradix.jit(jnp.cumsum)(x), exact, rtol=2e-6)
