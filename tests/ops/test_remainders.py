"""Remainders of large float arrays, to the bit: those of a formula, and those that the C library is asked for."""

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
N = 20_000
DTYPES = ["float16", ml_dtypes.bfloat16, "float32", "float64"]


def fmod(x, y):
    return np.fmod(x, y) if x.dtype.kind == "f" else np.fmod(x.astype("float32"), y.astype("float32")).astype(x.dtype)


def any_bits(rng, dtype):
    """Numbers of every exponent, infinities, NaN; no denormal ones, which the C library takes for zero inside a program."""
    word = f"u{dtype.itemsize}"
    x = rng.integers(0, np.iinfo(word).max, N, dtype=word, endpoint=True).view(dtype)
    return np.where(abs(x) < ml_dtypes.finfo(dtype).tiny, np.zeros((), dtype), x)


def operands(kind, dtype):
    """Two arrays: of any bits, of quotients up to 2⁴⁰, of near multiples, or of special values."""
    rng = np.random.default_rng(3)
    if kind == "any bits":
        return any_bits(rng, dtype), any_bits(rng, dtype)
    if kind == "quotients":
        x, y = [rng.standard_normal(N) * np.exp2(s * rng.integers(0, 20, N)) for s in (1, -1)]
        return x.astype(dtype), y.astype(dtype)
    if kind == "multiples":
        y = (rng.integers(1, 200, N) / 8).astype(dtype)
        x = (y.astype("float64") * rng.integers(0, 1 << 12, N) * rng.choice([1, -1], N)).astype(dtype)
        return (x.view(f"i{dtype.itemsize}") + rng.integers(0, 2, N).astype(f"i{dtype.itemsize}")).view(dtype), y
    special = np.array([0, -0.0, 1, -1, 3, 1.5, np.inf, -np.inf, np.nan, 1e-3, 3e4, ml_dtypes.finfo(dtype).tiny], dtype)
    return rng.choice(special, N), rng.choice(special, N)


def assert_same_bits(found, wanted):
    found = np.asarray(found)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    word = f"u{wanted.dtype.itemsize}"
    np.testing.assert_array_equal(
        np.where(np.isnan(found), 0, found.view(word)), np.where(np.isnan(wanted), 0, wanted.view(word))
    )


@pytest.mark.parametrize("kind", ["any bits", "quotients", "multiples", "special"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_remainders_are_exact(dtype, kind):
    x, y = operands(kind, np.dtype(dtype))
    wanted = fmod(x, y)
    normal = ~((wanted != 0) & (abs(wanted) < ml_dtypes.finfo(x.dtype).tiny) & (abs(x) != abs(wanted)))
    with gradix.enable_x64(True):
        found = np.asarray(gradix.jit(lax.rem)(x, y))
    assert_same_bits(found[normal], wanted[normal])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_large_quotient_leaves_the_others_as_they_are(dtype):
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(N) * 50).astype(dtype), (rng.uniform(0.5, 2, N)).astype(dtype)
    x[77], y[77], y[78] = 1e30, 0.37, 1e-306 if dtype == "float64" else 3e-38
    with gradix.enable_x64(True):
        assert_same_bits(gradix.jit(lax.rem)(x, y), np.fmod(x, y))


@pytest.mark.parametrize("shape", [(N,), (100, 200), (2, 3, 5000), (0, 20_000), (1,)])
def test_shapes_and_operators(shape):
    rng = np.random.default_rng(5)
    x, y = rng.integers(-40, 41, shape).astype("float32") / 4, rng.choice([-3, -1.25, 0.5, 7], shape).astype("float32")
    np.testing.assert_array_equal(gradix.jit(jnp.remainder)(x, y), np.remainder(x, y))
    np.testing.assert_array_equal(gradix.jit(jnp.floor_divide)(x, y), np.floor_divide(x, y))
    np.testing.assert_array_equal(gradix.jit(lambda x: x % 0.75)(x), np.remainder(x, np.float32(0.75)))
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(lax.rem))(x, y), np.fmod(x, y))


def test_derivatives_and_loops():
    rng = np.random.default_rng(6)
    x, y = rng.uniform(-9, 9, N).astype("float32"), rng.uniform(1, 2, N).astype("float32")
    by_x, by_y = gradix.jit(gradix.grad(lambda x, y: lax.rem(x, y).sum(), (0, 1)))(x, y)
    np.testing.assert_array_equal(by_x, np.ones(N))
    np.testing.assert_array_equal(by_y, -np.trunc(x / y))
    found, _ = gradix.jit(lambda x, y: lax.scan(lambda c, _: (lax.rem(c * 3, y), None), x, None, length=3))(x, y)
    wanted = x
    for _ in range(3):
        wanted = np.fmod(wanted * np.float32(3), y)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.rewritten
def test_only_large_arrays_pay_for_the_formula():
    def program(n, dtype="float32"):
        return gradix.jit(lax.rem).lower(np.ones(n, dtype), np.ones(n, dtype)).as_text()

    assert "while" in program(N) and "while" not in program(100) and "while" not in program(N, "int32")
