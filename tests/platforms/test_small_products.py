"""Stacks of products of very small matrices, which the CPU gets as sums of products of elements."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

pytestmark = pytest.mark.rewritten


def compiled(subscripts, *shapes, dtype="float32"):
    """The contraction of small whole numbers is NumPy's; whether XLA's product of matrices is in the program."""
    rng = np.random.default_rng(0)
    args = [rng.integers(-9, 10, shape).astype(dtype) for shape in shapes]
    lowered = gradix.jit(lambda *a: jnp.einsum(subscripts, *a)).lower(*args)
    found = lowered.compile()(*args)
    assert found.dtype == args[0].dtype
    np.testing.assert_array_equal(
        np.asarray(found).astype("float64"), np.einsum(subscripts, *[a.astype("float64") for a in args])
    )
    return "stablehlo.dot_general" in lowered.as_text()


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("bij,bjk->bik", ((100, 4, 4), (100, 4, 4))),
        ("bij,bjk->bik", ((64, 2, 7), (64, 7, 3))),
        ("bij,bj->bi", ((5000, 3, 3), (5000, 3))),
        ("bi,bi->b", ((4096, 7), (4096, 7))),
        ("bi,bij->bj", ((4200, 5), (4200, 5, 6))),
        ("ijab,jiac->ijbc", ((9, 8, 5, 2), (8, 9, 5, 3))),
        ("jbi,kjb->bik", ((6, 99, 7), (2, 6, 99))),
        ("bijk,bkl->bijl", ((64, 2, 3, 4), (64, 4, 5))),
        ("bik,bkj->bij", ((64, 3, 1), (64, 1, 3))),
    ],
    ids=str,
)
def test_are_sums_of_products(subscripts, shapes):
    assert not compiled(subscripts, *shapes)


@pytest.mark.parametrize(
    "subscripts, shapes, dtype",
    [
        ("bij,bjk->bik", ((63, 4, 4), (63, 4, 4)), "float32"),
        ("bij,bjk->bik", ((100, 8, 4), (100, 4, 4)), "float32"),
        ("bij,bjk->bik", ((100, 4, 9), (100, 9, 4)), "float32"),
        ("ij,jk->ik", ((4, 4), (4, 4)), "float32"),
        ("bij,bij->b", ((100, 2, 2), (100, 2, 2)), "float32"),
        ("bij,bj->bi", ((4095, 3, 3), (4095, 3)), "float32"),
        ("bi,bi->b", ((100, 7), (100, 7)), "float32"),
        ("bi,bij->bj", ((70, 5), (70, 5, 6)), "float32"),
        ("bij,bjk->bik", ((100, 4, 4), (100, 4, 4)), "int32"),
    ],
    ids=str,
)
def test_others_are_products_of_matrices(subscripts, shapes, dtype):
    assert compiled(subscripts, *shapes, dtype=dtype)


def test_float64_and_what_is_not_finite():
    with gradix.enable_x64(True):
        assert not compiled("bij,bjk->bik", (100, 4, 4), (100, 4, 4), dtype="float64")
    a, b = np.ones((100, 3, 3), "float32"), np.ones((100, 3, 3), "float32")
    a[7, 1, 2], b[9, 0, 0] = np.nan, np.inf
    a[9, 1, 0] = 0
    with np.errstate(invalid="ignore"):
        wanted = np.matmul(a, b)
    np.testing.assert_array_equal(gradix.jit(jnp.matmul)(a, b), wanted)


def test_derivatives_and_maps():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((100, 4, 4)).astype("float32") for _ in range(2))

    def loss(a, b):
        return jnp.sum(jnp.sin(a @ b))

    cotangent = np.cos(a @ b)
    wanted = cotangent @ b.transpose(0, 2, 1), a.transpose(0, 2, 1) @ cotangent
    for found, slope in zip(gradix.jit(gradix.grad(loss, (0, 1)))(a, b), wanted):
        np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradix.jit(gradix.vmap(jnp.dot))(a, b), a @ b, rtol=1e-4, atol=1e-5)
