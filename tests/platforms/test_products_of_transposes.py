"""Compiled products of transposed matrices, and of narrow integers, in all forms that lowering chooses between."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._platforms.cpu import products
from gradix.experimental import enable_x64

SIZES = [
    (1, 1, 1),
    (3, 5, 2),
    (64, 64, 64),
    (64, 65, 70),
    (128, 20, 90),
    (200, 100, 64),
    (70, 300, 8),
    (300, 65, 1),
    (9, 130, 140),
]


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    """Products of matrices of this file take the form of large ones."""
    monkeypatch.setattr(products, "_LEAST", 64)


def whole(shape, dtype, seed):
    """Small whole numbers, whose products are exact in every format."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@functools.cache
def compiled(left: bool, right: bool):
    return gradix.jit(lambda a, b: (a.T if left else a) @ (b.T if right else b))


@pytest.mark.parametrize("terms, rows, columns", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_transposed_operands(terms, rows, columns, dtype):
    with enable_x64():
        for left in (False, True):
            for right in (False, True):
                a = whole((terms, rows) if left else (rows, terms), dtype, 0)
                b = whole((columns, terms) if right else (terms, columns), dtype, 1)
                expected = (a.T if left else a) @ (b.T if right else b)
                got = compiled(left, right)(jnp.asarray(a), jnp.asarray(b))
                np.testing.assert_array_equal(np.asarray(got), expected)
                np.testing.assert_array_equal(
                    np.asarray(
                        gradix.jit(
                            lambda a, b: lax.dot_general(a, b, (((0 if left else 1,), (1 if right else 0,)), ((), ())))
                        )(a, b)
                    ),
                    expected,
                )


@pytest.mark.parametrize("shape", [(100, 70), (70, 100), (1, 300), (300, 1)])
def test_transposed_matrices_and_vectors(shape):
    a, v, w = whole(shape, "float32", 0), whole(shape[0], "float32", 1), whole(shape[1], "float32", 2)
    for f in (
        lambda a, v, w: a.T @ v,
        lambda a, v, w: w @ a.T,
        lambda a, v, w: a @ w,
        lambda a, v, w: v @ a,
        lambda a, v, w: (a.T + 0) @ v,
    ):
        np.testing.assert_array_equal(np.asarray(gradix.jit(f)(a, v, w)), f(a, v, w))
    np.testing.assert_array_equal(np.asarray(gradix.jit(lambda a, v: jnp.einsum("ij,i->j", a, v))(a, v)), a.T @ v)


def test_infinities_and_nan_of_transposed_products():
    a, b = whole((70, 80), "float32", 0), whole((70, 90), "float32", 1)
    a[3, 5], a[69, 79], b[10, 7] = np.nan, np.inf, -np.inf
    a[10, 6] = 0
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(compiled(True, False)(a, b)), a.T @ b)
        np.testing.assert_array_equal(np.asarray(compiled(True, True)(a, np.ascontiguousarray(b.T))), a.T @ b)


def test_products_of_transposes_under_every_transformation():
    x, w, y = whole((96, 80), "float32", 0), whole((80, 72), "float32", 1), whole((96, 72), "float32", 2)
    got = gradix.jit(gradix.grad(lambda x, w: ((x @ w) * y).sum(), (0, 1)))(x, w)
    for value, expected in zip(got, (y @ w.T, x.T @ y)):
        np.testing.assert_array_equal(np.asarray(value), expected)
    stack = whole((3, 96, 80), "float32", 3)
    mapped = gradix.jit(gradix.vmap(lambda x: x.T @ y))(stack)
    np.testing.assert_array_equal(np.asarray(mapped), np.swapaxes(stack, 1, 2) @ y)
    shared = gradix.jit(gradix.vmap(lambda x, y: x.T @ y, (None, 0)))(x, np.stack([y, 2 * y]))
    np.testing.assert_array_equal(np.asarray(shared), np.stack([x.T @ y, 2 * (x.T @ y)]))
    v = whole(80, "float32", 4)
    looped = gradix.jit(lambda x, v: lax.fori_loop(0, 2, lambda i, v: (x.T @ (x @ v)) % 7, v))(x, v)
    for _ in range(2):
        v = (x.T @ (x @ v)) % 7
    np.testing.assert_array_equal(np.asarray(looped), v)
    turned = x.T
    branched = gradix.jit(lambda p, x: lax.cond(p, lambda t: t @ y, lambda t: t @ (y + 1), x.T))
    np.testing.assert_array_equal(np.asarray(branched(True, x)), turned @ y)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (40, 300, 50), (1, 1, 1), (5, 0, 3)])
def test_products_of_integers_wrap(dtype, shape):
    rows, terms, columns = shape
    info = np.iinfo(dtype)
    rng = np.random.default_rng(5)
    a, b = (rng.integers(info.min, info.max, s, dtype, True) for s in ((rows, terms), (terms, columns)))
    expected = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    np.testing.assert_array_equal(np.asarray(gradix.jit(jnp.matmul)(a, b)), expected)
    stacked = gradix.jit(gradix.vmap(jnp.matmul))(np.stack([a, a]), np.stack([b, b]))
    np.testing.assert_array_equal(np.asarray(stacked), np.stack([expected, expected]))
    wide = gradix.jit(lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type="int32"))
    np.testing.assert_array_equal(np.asarray(wide(a, b)), (a.astype("int64") @ b.astype("int64")).astype("int32"))
    real = gradix.jit(lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type="float32"))
    np.testing.assert_allclose(
        np.asarray(real(a, b)),
        a.astype("float64") @ b.astype("float64"),
        rtol=1e-5,
        atol=1e-5 * terms * float(info.max) ** 2,
    )
