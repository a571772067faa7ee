"""Small captured arrays of whole numbers are written into the program; others are hidden arguments."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

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
