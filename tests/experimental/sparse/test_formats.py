"""The other formats: compressed rows, and simple matrices; what makes them, and random ones."""

import numpy as np
import pytest
import scipy.sparse

import gradix
from gradix import numpy as jnp, random
from gradix.experimental import sparse
from tests.experimental.sparse.cases import array, same

WHOLE = array((3, 4), nse=8)[1]
MATRICES = [sparse.COO, sparse.CSR, sparse.CSC, sparse.BCSR, sparse.BCOO]
B = np.arange(8, dtype="f").reshape(4, 2)


@pytest.mark.parametrize("form", MATRICES)
def test_matrices(form):
    m = form.fromdense(WHOLE)
    same(m, WHOLE)
    same(m.T, WHOLE.T)
    same(m @ B, WHOLE @ B)
    same(m @ B[:, 0], WHOLE @ B[:, 0])
    same(B.T @ m.T, B.T @ WHOLE.T)
    same(m + m, 2 * WHOLE)
    same(m - WHOLE, 0 * WHOLE)
    same(-(m * 2), -2 * WHOLE)
    same(m[1], WHOLE[1])
    same(m.sum(0), WHOLE.sum(0))
    same(gradix.jit(lambda m: m @ B)(m), WHOLE @ B)
    same(form.fromdense(WHOLE, nse=11) @ B, WHOLE @ B)
    same(form.fromdense(WHOLE, nse=11).T, WHOLE.T)
    by_data = sparse.grad(lambda m: jnp.sin(m @ B).sum())(m)
    assert type(by_data) is form
    same(by_data, np.where(WHOLE != 0, gradix.grad(lambda w: jnp.sin(w @ B).sum())(jnp.asarray(WHOLE)), 0))
    same(
        gradix.grad(lambda b: jnp.sin(m @ b).sum())(B), gradix.grad(lambda b: jnp.sin(jnp.asarray(WHOLE) @ b).sum())(B)
    )
    assert len(gradix.tree.leaves(m)) in (2, 3) and "nse=" in repr(m)
    with pytest.raises(TypeError, match="contracting dimensions"):
        m @ jnp.ones(3)


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_functions_of_matrices(name):
    f = {k: getattr(sparse, f"{name}_{k}") for k in ("fromdense", "todense", "matvec", "matmat")}
    m = f["fromdense"](WHOLE)
    same(f["todense"](m), WHOLE)
    same(f["matvec"](m, B[:, 0]), WHOLE @ B[:, 0])
    same(f["matvec"](m, B[:3, 0], True), WHOLE.T @ B[:3, 0])
    same(f["matmat"](m, B), WHOLE @ B)
    same(f["matmat"](m, B[:3], transpose=True), WHOLE.T @ B[:3])
    with pytest.raises(ValueError, match="vector"):
        f["matvec"](m, B)


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)])
def test_compressed_rows_with_batches_and_dense_axes(n_batch, n_dense):
    shape = (*(2, 3)[:n_batch], 3, 4, *(2,)[:n_dense])
    _, whole = array(shape, n_batch, n_dense)
    m = sparse.BCSR.fromdense(whole, n_batch=n_batch, n_dense=n_dense)
    assert (m.n_batch, m.n_dense, m.n_sparse) == (n_batch, n_dense, 2)
    same(m, whole)
    same(m.to_bcoo(), whole)
    same(sparse.BCSR.from_bcoo(m.to_bcoo()), whole)
    same(m.sum_duplicates(), whole)
    other = np.arange(1.0, whole.size + 1, dtype="f").reshape(shape)
    np.testing.assert_array_equal(
        m._with(data=sparse.bcsr_extract(m.indices, m.indptr, other)).todense(),
        other * (m._with(data=jnp.ones_like(m.data)).todense() != 0),
    )
    for axis in range(n_batch, n_batch + 2):
        same(sparse.bcsr_concatenate([m, m], dimension=axis), np.concatenate([whole, whole], axis))
    wide = sparse.bcsr_broadcast_in_dim(m, shape=(2, *shape), broadcast_dimensions=range(1, len(shape) + 1))
    same(wide, np.broadcast_to(whole, (2, *shape)))
    contracted = n_batch + 1
    rhs = np.arange(8, dtype="f").reshape(4, 2)
    got = sparse.bcsr_dot_general(m, rhs, dimension_numbers=(((contracted,), (0,)), ((), ())))
    same(got, np.tensordot(whole, rhs, (contracted, 0)))
    if n_batch == 1:
        same(gradix.vmap(lambda m: m.to_bcoo())(m), whole)
        same(gradix.vmap(lambda m: m._with(data=2 * m.data))(m), 2 * whole)


def test_wrong_compressed_rows():
    with pytest.raises(ValueError, match="indptr"):
        sparse.BCSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(3, int)), shape=(3, 4))
    with pytest.raises(NotImplementedError, match="two sparse|n_sparse"):
        sparse.BCSR.from_bcoo(array((3,))[0])
    with pytest.raises(NotImplementedError, match="to_bcoo"):
        sparse.bcsr_dot_general(B, sparse.BCSR.fromdense(WHOLE), dimension_numbers=(((1,), (0,)), ((), ())))


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_empty_and_eye(name):
    same(sparse.empty((3, 4), sparse_format=name), np.zeros((3, 4), "f"))
    assert sparse.empty((3, 4), "int32", sparse_format=name).dtype == np.int32
    for n, m, k in ((3, None, 0), (3, 5, 1), (4, 3, -2), (2, 2, 5)):
        same(sparse.eye(n, m, k, sparse_format=name), np.eye(n, m, k, dtype="f"))


def test_arguments_of_makers():
    same(sparse.eye(3, n_batch=1), np.eye(3, dtype="f"))
    assert sparse.empty((2, 3, 4), n_batch=1, n_dense=1, nse=2).nse == 2
    with pytest.raises(KeyError, match="sparse_format must be one of"):
        sparse.eye(3, sparse_format="dia")
    assert sparse.todense(3) == 3


def test_scipys_matrices():
    theirs = scipy.sparse.random(6, 5, 0.3, random_state=0, dtype=np.float32)
    for form in (sparse.BCOO, sparse.BCSR):
        same(form.from_scipy_sparse(theirs), theirs.toarray())
        assert form.from_scipy_sparse(theirs.tocsc(), index_dtype="int32").indices.dtype == np.int32


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("nse", [3, 0.5])
def test_random_arrays(n_batch, n_dense, nse):
    m = sparse.random_bcoo(random.key(0), (2, 3, 4), nse=nse, n_batch=n_batch, n_dense=n_dense, sorted_indices=True)
    total = int(np.prod((2, 3, 4)[n_batch : 3 - n_dense]))
    assert (
        m.nse == (nse if nse == 3 else -(-total // 2))
        and m.shape == (2, 3, 4)
        and (m.n_batch, m.n_dense) == (n_batch, n_dense)
    )
    assert m.sum_duplicates(remove_zeros=False).nse == m.nse and m.indices_sorted and m.unique_indices
    same(m.sort_indices(), m.todense())
    drawn = sparse.random_bcoo(random.key(1), (50, 50), nse=0.3, generator=random.normal, dtype="float32")
    assert abs(float(drawn.data.mean())) < 0.15 and 0.85 < float(drawn.data.std()) < 1.15
    with pytest.raises(ValueError, match="nse"):
        sparse.random_bcoo(random.key(0), (2, 2), nse=5)


@pytest.mark.parametrize("n, m, k", [(3, 3, 0), (5, 4, -2), (3, 4, 2), (3, 3, 4), (4, 2, -5)])
def test_diagonals_by_batches_store_one_element_each(n, m, k):
    whole = np.eye(n, m, k, dtype="f")
    for n_batch, n_dense in [(0, 0), (1, 0), (2, 0), (1, 1), (0, 1), (0, 2)]:
        made = sparse.eye(n, m, k, n_batch=n_batch, n_dense=n_dense)
        same(made, whole)
        assert (made.n_batch, made.n_dense) == (n_batch, n_dense)
        assert made.nse == sparse.BCOO.fromdense(whole, n_batch=n_batch, n_dense=n_dense).nse
    with pytest.raises(ValueError, match="n_batch=1 and n_dense=2"):
        sparse.eye(3, n_batch=1, n_dense=2)
