"""`CSR` and `CSC`: sparse matrices stored by compressed rows and by compressed columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import register_pytree_node_class as _register
from gradix.experimental.sparse._array import as_arrays
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_storage import bcoo_fromdense
from gradix.experimental.sparse._matrices import Matrix, check_rank, product
from gradix.experimental.sparse.bcsr import BCSR

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.operators import Array

_parts = _lazy_module("gradix.experimental.sparse._parts")


class _Compressed(Matrix):
    """Elements, their indices along one axis, and where each row or column starts."""

    def __init__(self, args, *, shape):
        self.data, self.indices, self.indptr = as_arrays(args)
        super().__init__(args, shape=shape)

    nse = property(lambda self: self.data.size)

    def tree_flatten(self):
        return (self.data, self.indices, self.indptr), {"shape": self.shape}

    def _set(self, children, shape) -> None:
        self.data, self.indices, self.indptr = children
        self.shape = tuple(shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        if len(tuple(shape)) != 2:
            raise ValueError(
                f"sparse.empty: shape must have two axes for a {cls.__name__} matrix, got shape={tuple(shape)}."
            )
        return cls.fromdense(jnp.zeros(shape, dtype), nse=0, index_dtype=index_dtype)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        made = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        return cls._of(made)

    @classmethod
    def _of(cls, mat: BCOO):
        """The matrix in this format, of a BCOO array."""
        raise NotImplementedError


@_register
class CSR(_Compressed):
    """A sparse matrix stored by compressed rows; BCSR adds batches and dense axes.

    Args:
        args: `(data, indices, indptr)`: the elements and their columns, each of shape (nse,), and
            where each row starts, of shape (rows + 1,).
        shape: the shape of the whole matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])) @ jnp.array([1.0, 10.0])
        Array([20.,  1.], dtype=float32)
    """

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32) -> CSR:
        """The nonzero elements of an ordinary matrix; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _of(cls, mat: BCOO) -> CSR:
        made = BCSR.from_bcoo(mat)
        return cls((made.data, made.indices, made.indptr), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        made = BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()
        made.indices_sorted = True  # Products ask for sorted rows only.
        return made

    def transpose(self, axes=None) -> CSC:
        """The transposed matrix, of the same elements."""
        _check_axes(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@_register
class CSC(_Compressed):
    """A sparse matrix stored by compressed columns: the transpose of a CSR matrix.

    Args:
        args: `(data, indices, indptr)`: the elements and their rows, each of shape (nse,), and
            where each column starts, of shape (columns + 1,).
        shape: the shape of the whole matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> sparse.CSC.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])).indices
        Array([1, 0], dtype=int32)
    """

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32) -> CSC:
        """The nonzero elements of an ordinary matrix; `nse` as for `bcoo_fromdense`."""
        check_rank("CSC.fromdense", mat, 2)
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _of(cls, mat: BCOO) -> CSC:
        return CSR._of(mat.T).T

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        made = self.T.to_bcoo().T
        made.indices_sorted = False
        return made

    def transpose(self, axes=None) -> CSR:
        """The transposed matrix, of the same elements."""
        _check_axes(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def _check_axes(axes) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        raise NotImplementedError(f"transpose: axes must be None or (1, 0), got {axes}.")


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The nonzero elements of an ordinary matrix, as a CSR matrix.

    Args:
        mat: a matrix.
        nse: how many elements to store; by default as many as are not zero, which must be known.
        index_dtype: the dtype of `indices` and `indptr`.

    Example:
        >>> import gradix.numpy as jnp
        >>> csr_fromdense(jnp.eye(2)).indptr
        Array([0, 1, 2], dtype=int32)
    """
    check_rank("csr_fromdense", mat, 2)
    return CSR._of(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))


def csr_todense(mat: CSR) -> Array:
    """The ordinary array of the matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> csr_todense(csr_fromdense(jnp.eye(2)))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return mat.todense()


def csr_matvec(mat: CSR, v: Array, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose, and a vector `v`.

    Example:
        >>> import gradix.numpy as jnp
        >>> csr_matvec(csr_fromdense(jnp.eye(2)), jnp.arange(2.0))
        Array([0., 1.], dtype=float32)
    """
    check_rank("csr_matvec", v, 1)
    return product(mat, v, transpose)


def csr_matmat(mat: CSR, B: Array, *, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose, and an ordinary matrix `B`.

    Example:
        >>> import gradix.numpy as jnp
        >>> csr_matmat(csr_fromdense(jnp.eye(2)), jnp.ones((2, 1))).shape
        (2, 1)
    """
    check_rank("csr_matmat", B, 2)
    return product(mat, B, transpose)


def __getattr__(name: str):
    if name.startswith("_csr_"):
        return getattr(_parts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _own_names(__name__, "CSC", "CSR")
