"""Small captured arrays of whole numbers are written into the program; others are hidden arguments."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

DTYPES = ["int32", "int8", "bool", "uint32", "float32", "complex64"]
WRITTEN = {"int32", "int8", "bool"}


def _arguments(f, *args) -> int:
    head = f.lower(*args).as_text().partition("func.func public @main(")[2].partition(") ->")[0]
    return head.count("%arg")


@pytest.mark.parametrize("size", [0, 1, 16, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_and_what_is_an_argument(dtype, size):
    captured = np.arange(size).astype(dtype)
    f = gradix.jit(lambda x: x * captured)
    x = np.float32(2)
    np.testing.assert_allclose(f(x), x * captured)
    is_written = dtype in WRITTEN and captured.nbytes <= 64
    assert _arguments(f, x) == (1 if is_written else 2)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.grad, gradix.vmap], ids=["plain", "grad", "vmap"])
def test_written_indices_beside_hidden_arguments_donations_and_statics(transform):
    i, scale = np.array([2, -1, 0]), np.arange(3, dtype=np.float32)

    @gradix.jit
    def f(x):
        taken = x[i] * scale
        return taken.sum(-1) if x.ndim == 1 else taken

    x = np.arange(4, dtype=np.float32)
    x = np.stack([x, x + 1]) if transform is gradix.vmap else x
    whole = transform(lambda x: (x[i] * scale).sum())
    np.testing.assert_allclose(transform(f)(x), whole(x))
    g = gradix.jit(lambda n, unused, x, y: x.at[i].add(n * y), static_argnums=0, donate_argnums=2, keep_unused=True)
    given = jnp.arange(4.0)
    np.testing.assert_allclose(g(2, jnp.ones(3), given, jnp.ones(3)), [2, 1, 4, 5])
    assert given.is_deleted()


def test_functions_made_anew_around_other_indices_have_their_own():
    x = jnp.arange(5.0)
    for k in range(5):
        i = np.array([k, 0])
        np.testing.assert_allclose(gradix.jit(lambda x: x[i] + 1)(x), [k + 1, 1])  # noqa: B023
    held = {"i": np.array([1, 2])}
    f = gradix.jit(lambda x: x[held["i"]])
    np.testing.assert_allclose(f(x), [1, 2])
    held["i"] = np.array([3, 4])
    np.testing.assert_allclose(gradix.jit(lambda x: x[held["i"]])(x), [3, 4])


def test_arrays_of_the_same_few_floats_are_one_argument():
    def fit(y):
        start = jnp.array([1.0, 1.0])
        return lax.while_loop(lambda c: c[1] < 50, lambda c: (c[0] - 0.1 * (c[0] - y), c[1] + 1), (start, 0))[0]

    f, y = gradix.jit(lambda y: (fit(y), fit(y))), np.array([3, 4], np.float32)
    assert _arguments(f, y) == 2 and f.lower(y).as_text().count("stablehlo.while") == 1
    first, second = f(y)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, y - 0.9**50 * (y - 1), rtol=1e-5)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.grad, gradix.checkpoint], ids=["plain", "grad", "remat"])
@pytest.mark.parametrize("a, b, one", [(2, 2, True), (2, 3, False), (0.0, -0.0, False), (np.nan, np.nan, True)])
def test_arrays_of_other_bits_are_arguments_of_their_own(transform, a, b, one):
    a, b = np.array([a, 1], np.float32), np.array([b, 1], np.float32)

    def f(x):
        return (x * a + jnp.copysign(1, b) * jnp.sin(x) + b).sum()

    x = np.array([3, 4], np.float32)
    jitted = gradix.jit(transform(f))
    np.testing.assert_array_equal(jitted(x), gradix.jit(transform(lambda x, a=a, b=b: f(x)))(x))
    np.testing.assert_allclose(jitted(x), transform(f)(x), rtol=1e-6)
    if transform is not gradix.grad:
        assert _arguments(jitted, x) == (2 if one else 3)


def test_functions_made_anew_around_other_equal_floats_have_their_own():
    for a, b in [(1, 1), (1, 2), (2, 2), (2, 1)]:
        p, q = np.array([a], np.float32), np.array([b], np.float32)
        np.testing.assert_array_equal(gradix.jit(lambda x: x * p - q)(3.0), [3 * a - b])  # noqa: B023
