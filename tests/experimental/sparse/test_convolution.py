"""Convolutions of sparse arrays against those of ordinary ones; functions on the parts of sparse arrays."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import sparse
from gradix.experimental.sparse import bcoo, bcsr, coo, csr, util

RNG = np.random.default_rng(3)


def _half_empty(*shape):
    return jnp.asarray((RNG.standard_normal(shape) * (RNG.random(shape) < 0.5)).astype("float32"))


@pytest.mark.parametrize(
    "x, kernel, options",
    [
        ((1, 1, 6), (1, 1, 3), {"padding": "SAME"}),
        (
            (2, 3, 6),
            (4, 3, 2),
            {"padding": [(2, 1)], "window_strides": (2,), "lhs_dilation": (2,), "rhs_dilation": (3,)},
        ),
        (
            (2, 5, 5, 3),
            (2, 2, 3, 4),
            {"padding": "SAME_LOWER", "window_strides": (2, 1), "dimension_numbers": ("NHWC", "HWIO", "NHWC")},
        ),
        ((1, 1, 0), (1, 1, 1), {"padding": "VALID"}),
    ],
)
def test_convolution(x, kernel, options):
    options = {"window_strides": (1,) * (len(x) - 2), **options}
    x, kernel = _half_empty(*x), _half_empty(*kernel)
    want = lax.conv_general_dilated(x, kernel, **options)
    for layout in ({}, {"n_batch": 1}, {"n_dense": 1}):
        got = sparse.bcoo_conv_general_dilated(
            sparse.BCOO.fromdense(x, **layout), sparse.BCOO.fromdense(kernel), **options
        )
        np.testing.assert_allclose(got.todense(), want, atol=1e-5)
    both = gradix.jit(lambda a, b: sparse.bcoo_conv_general_dilated(a, b, **options).todense())
    np.testing.assert_allclose(both(sparse.BCOO.fromdense(x), kernel), want, atol=1e-5)


def test_sparsify_convolves():
    x, k = _half_empty(6), _half_empty(3)
    out = sparse.sparsify(jnp.convolve)(sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(k))
    assert isinstance(out, sparse.BCOO)
    np.testing.assert_allclose(out.todense(), jnp.convolve(x, k), atol=1e-5)


def test_groups_are_refused():
    with pytest.raises(NotImplementedError, match="one by one"):
        sparse.bcoo_conv_general_dilated(
            jnp.ones((1, 2, 3)), jnp.ones((2, 1, 1)), window_strides=(1,), padding="VALID", feature_group_count=2
        )


def test_elementwise_maps_keep_the_order_of_bcsr():
    m = sparse.BCSR((jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0, 0]), jnp.array([0, 2, 3])), shape=(2, 3))
    for f in (lambda x: -x, jnp.real):
        out = sparse.sparsify(f)(m)
        assert isinstance(out, sparse.BCSR) and out.indices.tolist() == m.indices.tolist()
        np.testing.assert_allclose(out.todense(), f(m.todense()))


def test_shared_indices_stay_shared_when_sorted():
    m = sparse.BCOO((jnp.arange(6.0).reshape(2, 3), jnp.array([[[2], [0], [1]]])), shape=(2, 3))
    out = m.sort_indices()
    assert out.indices.shape == (1, 3, 1) and out.data.tolist() == [[1, 2, 0], [4, 5, 3]]


def test_functions_on_parts():
    x = jnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    m, c, v = coo.COO.fromdense(x), csr.CSR.fromdense(x), jnp.array([1.0, 10.0, 100.0])
    assert util._count_stored_elements(x) == 3 and util._count_stored_elements_per_batch(x, n_batch=1).tolist() == [
        1,
        2,
    ]
    assert [p.tolist() for p in coo._coo_fromdense(x, nse=3)] == [[1, 2, 3], [0, 1, 1], [1, 0, 2]]
    assert [p.tolist() for p in csr._csr_fromdense(x, nse=3)] == [[1, 2, 3], [1, 0, 2], [0, 1, 3]]
    assert (coo._coo_matvec(m.data, m.row, m.col, v, spinfo=m._info) == x @ v).all()
    assert (csr._csr_matvec(c.data, c.indices, c.indptr, v, shape=x.shape) == x @ v).all()
    assert (csr._csr_todense(c.data, c.indices, c.indptr, shape=x.shape) == x).all()
    assert [p.tolist() for p in util._csr_to_coo(c.indices, c.indptr)] == [[0, 1, 1], [1, 0, 2]]
    b = bcoo.BCOO.fromdense(x)
    assert (
        bcoo._bcoo_extract(b.indices, x).tolist() == [1, 2, 3]
        and (bcoo._bcoo_todense(b.data, b.indices, spinfo=b._info) == x).all()
    )
    indices, indptr = bcsr._bcoo_to_bcsr(b.indices, shape=x.shape, index_dtype="int32")
    assert bcsr._bcsr_to_bcoo(indices, indptr, shape=x.shape).tolist() == b.indices.tolist()
    assert m.T._sort_indices().row.tolist() == [0, 1, 2]
    assert (sparse.todense_p.bind(*gradix.tree.leaves(b), tree=gradix.tree.structure(b)) == x).all()
    with pytest.raises(AttributeError, match="_nothing"):
        bcoo._nothing


def test_products_under_strict_modes():
    x = _half_empty(3, 4)
    m = sparse.BCOO.fromdense(x)
    twice = sparse.BCOO((jnp.concatenate([m.data, m.data]), jnp.concatenate([m.indices, m.indices])), shape=m.shape)
    with gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict"):
        np.testing.assert_allclose(sparse.bcoo_multiply_sparse(twice, m).todense(), 2 * (x * x), rtol=1e-6)
        np.testing.assert_allclose(twice.sum_duplicates(nse=m.nse).todense(), 2 * x, rtol=1e-6)


@pytest.mark.x32
def test_the_gradient_of_spsolve():
    a = np.array([[4.0, 1, 0], [1, 3, 1], [0, 2, 2]], "float32")
    m = sparse.BCSR.fromdense(a)
    got = gradix.grad(lambda b: sparse.linalg.spsolve(m.data, m.indices, m.indptr, b).sum())(jnp.ones(3))
    np.testing.assert_allclose(got, np.linalg.solve(a.T, np.ones(3)), rtol=1e-5)
