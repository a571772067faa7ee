"""Compiled products of complex matrices as products of their parts, in every arrangement of operands."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._platforms.cpu import products
from gradix.experimental import enable_x64

pytestmark = pytest.mark.rewritten


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(products, "_LEAST_COMPLEX", 2)
    monkeypatch.setattr(products, "_WORK", 8)


def whole(shape, dtype="complex64", seed=0):
    """Small whole numbers, whose products are exact in every format."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)).astype(dtype)


@pytest.mark.parametrize("left", ["", "T", "H"])
@pytest.mark.parametrize("right", ["", "T", "H"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_products_of_matrices_and_their_transposes(left, right, dtype):
    turn = {"": lambda x: x, "T": lambda x: x.T, "H": lambda x: x.conj().T}
    x, y = whole((30, 20) if left else (20, 30), dtype, 1), whole((40, 30) if right else (30, 40), dtype, 2)
    with enable_x64(True):
        found = gradix.jit(lambda x, y: turn[left](x) @ turn[right](y))(x, y)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, turn[left](x) @ turn[right](y))


@pytest.mark.parametrize(
    "subscripts, first, second",
    [
        ("bij,bjk->bik", (3, 4, 5), (3, 5, 6)),
        ("bji,bkj->bik", (3, 5, 4), (3, 6, 5)),
        ("aij,jb->iab", (2, 3, 4), (4, 5)),
        ("ijkl,klmn->ijmn", (2, 3, 4, 5), (4, 5, 3, 2)),
        ("ij,j->i", (9, 8), (8,)),
        ("ij,jk->ik", (5, 0), (0, 4)),
        ("ij,jk->ik", (1, 7), (7, 1)),
    ],
)
def test_other_contractions(subscripts, first, second):
    x, y = whole(first), whole(second, seed=3)
    np.testing.assert_array_equal(
        gradix.jit(lambda x, y: jnp.einsum(subscripts, x, y))(x, y), np.einsum(subscripts, x, y)
    )


def test_operands_of_two_dtypes_and_other_results():
    x, y = whole((6, 7)), whole((7, 8), seed=4)
    found = gradix.jit(lambda x, y: x @ y)(x.real, y)
    np.testing.assert_array_equal(found, x.real @ y)
    with enable_x64(True):
        wide = gradix.jit(lambda x, y: lax.dot(x, y, preferred_element_type="complex128"))(x, y)
        assert wide.dtype == np.complex128
        np.testing.assert_array_equal(wide, x @ y)


def test_what_is_not_finite():
    x, y = whole((4, 5)), whole((5, 6), seed=5)
    x[0, 1], x[1, 2], y[3, 4] = np.nan, np.inf, complex(0, np.inf)
    with np.errstate(invalid="ignore"):
        wanted = sum(x.real[:, i, None] * y.real[i] - x.imag[:, i, None] * y.imag[i] for i in range(5))
    np.testing.assert_array_equal(gradix.jit(lambda x, y: (x @ y).real)(x, y), wanted)


def test_derivatives_and_mapped_axes():
    x, y = whole((4, 5)), whole((5, 6), seed=6)
    by_x, by_y = gradix.jit(gradix.grad(lambda x, y: (x @ y).real.sum(), (0, 1)))(x, y)
    np.testing.assert_array_equal(by_x, np.broadcast_to(y.sum(1), x.shape))
    np.testing.assert_array_equal(by_y, np.broadcast_to(x.sum(0)[:, None], y.shape))
    stack = whole((3, 4, 5), seed=7)
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(lambda x: x @ y))(stack), stack @ y)


def test_only_large_products_are_taken_apart(monkeypatch):
    monkeypatch.undo()

    def dots(n):
        aval = gradix.ShapeDtypeStruct((n, n), "complex64")
        return gradix.jit(lambda x, y: x @ y).lower(aval, aval).as_text().count("stablehlo.dot_general")

    assert dots(100) == 1 and dots(512) == 4
