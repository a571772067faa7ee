"""Functions on the parts of sparse arrays, as tests of other libraries call them.

Each takes or returns data and indices one by one, where the public function has them in an object.
The modules of the formats hold them under the names that begin with an underscore.
"""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_products import bcoo_dot_general
from gradix.experimental.sparse._bcoo_storage import bcoo_extract, bcoo_fromdense
from gradix.experimental.sparse.bcsr import BCSR, bcsr_fromdense
from gradix.experimental.sparse.coo import COO, coo_fromdense, coo_matmat, coo_matvec
from gradix.experimental.sparse.csr import CSR, csr_fromdense, csr_matmat, csr_matvec

# -- BCOO and BCSR ---------------------------------------------------------------------------------


def _bcoo_fromdense(mat, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype=np.int32) -> tuple:
    made = bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return made.data, made.indices


def _bcoo_todense(data, indices, *, spinfo):
    return BCOO((data, indices), **spinfo._asdict()).todense()


def _bcoo_extract(indices, arr, *, assume_unique: bool = True):
    """The elements of an array at indices; those out of bounds are zero."""
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    data = jnp.zeros((*indices.shape[:-1], *arr.shape[n_batch + n_sparse :]), arr.dtype)
    return bcoo_extract(BCOO((data, indices), shape=arr.shape), arr, assume_unique=assume_unique).data


def _bcoo_dot_general(lhs_data, lhs_indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
    mat = BCOO((lhs_data, lhs_indices), **lhs_spinfo._asdict())
    return bcoo_dot_general(
        mat, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def _bcsr_fromdense(mat, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype=np.int32) -> tuple:
    made = bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return made.data, made.indices, made.indptr


def _bcsr_todense(data, indices, indptr, *, spinfo):
    return BCSR((data, indices, indptr), **spinfo._asdict()).todense()


def _bcsr_to_bcoo(indices, indptr, *, shape):
    data = jnp.zeros((*indices.shape, *shape[indices.ndim + 1 :]))
    return BCSR((data, indices, indptr), shape=shape).to_bcoo().indices


def _bcoo_to_bcsr(indices, *, shape, index_dtype) -> tuple:
    data = jnp.zeros((*indices.shape[:-1], *shape[indices.ndim :]))
    made = BCSR.from_bcoo(BCOO((data, indices), shape=shape))
    return made.indices.astype(index_dtype), made.indptr.astype(index_dtype)


# -- COO and CSR -----------------------------------------------------------------------------------


def _coo_fromdense(mat, *, nse: int, index_dtype=np.int32) -> tuple:
    made = coo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return made.data, made.row, made.col


def _coo_todense(data, row, col, *, spinfo):
    return COO((data, row, col), **spinfo._asdict()).todense()


def _coo_matvec(data, row, col, v, *, spinfo, transpose: bool = False):
    return coo_matvec(COO((data, row, col), **spinfo._asdict()), v, transpose)


def _coo_matmat(data, row, col, B, *, spinfo, transpose: bool = False):
    return coo_matmat(COO((data, row, col), **spinfo._asdict()), B, transpose=transpose)


def _csr_fromdense(mat, *, nse: int, index_dtype=np.int32) -> tuple:
    made = csr_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return made.data, made.indices, made.indptr


def _csr_to_coo(indices, indptr) -> tuple:
    places = _bcsr_to_bcoo(indices, indptr, shape=(indptr.size - 1, np.iinfo(np.int32).max))
    return places[:, 0], places[:, 1]


def _csr_extract(indices, indptr, mat):
    """The elements of a matrix at the places of those of a CSR matrix."""
    return _coo_extract(*_csr_to_coo(indices, indptr), mat)


def _coo_extract(row, col, mat):
    """The elements of a matrix at rows and columns."""
    return mat[row, col]


def _csr_todense(data, indices, indptr, *, shape):
    return CSR((data, indices, indptr), shape=shape).todense()


def _csr_matvec(data, indices, indptr, v, *, shape, transpose: bool = False):
    return csr_matvec(CSR((data, indices, indptr), shape=shape), v, transpose)


def _csr_matmat(data, indices, indptr, B, *, shape, transpose: bool = False):
    return csr_matmat(CSR((data, indices, indptr), shape=shape), B, transpose=transpose)
