"""`COO`: sparse matrices stored as elements with their rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import register_pytree_node_class as _register
from gradix.experimental.sparse._array import as_arrays
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_storage import bcoo_fromdense
from gradix.experimental.sparse._matrices import Matrix, check_rank, product

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.operators import Array

_parts = _lazy_module("gradix.experimental.sparse._parts")


class COOInfo(NamedTuple):
    """The shape of a COO matrix, and whether its rows or columns are sorted.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.COO.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
        >>> x._info
        COOInfo(shape=(2, 2), rows_sorted=True, cols_sorted=False)
    """

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@_register
class COO(Matrix):
    """A sparse matrix stored as elements with their rows and columns; BCOO adds batches and axes.

    Args:
        args: `(data, row, col)`, each of shape (nse,). Elements of equal row and column are added.
        shape: the shape of the whole matrix.
        rows_sorted, cols_sorted: whether the rows, or the columns, never decrease.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> sparse.COO.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]])) @ jnp.array([1.0, 10.0])
        Array([20.,  1.], dtype=float32)
    """

    def __init__(self, args, *, shape, rows_sorted: bool = False, cols_sorted: bool = False):
        self.data, self.row, self.col = as_arrays(args)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)
        super().__init__(args, shape=shape)

    nse = property(lambda self: self.data.size)
    _info = property(lambda self: COOInfo(self.shape, self._rows_sorted, self._cols_sorted))

    def tree_flatten(self) -> tuple[tuple, dict[str, Any]]:
        return (self.data, self.row, self.col), self._info._asdict()

    def _set(self, children, shape, rows_sorted, cols_sorted) -> None:
        self.data, self.row, self.col = children
        self.shape, self._rows_sorted, self._cols_sorted = tuple(shape), rows_sorted, cols_sorted

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype=np.int32) -> COO:
        """The nonzero elements of an ordinary matrix; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32") -> COO:
        _check_matrix("empty", shape)
        none = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), none, none), shape=tuple(shape), rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32") -> COO:
        made = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        return cls(
            (made.data, made.indices[:, 0], made.indices[:, 1]), shape=(N, M), rows_sorted=True, cols_sorted=True
        )

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        # Products ask for sorted rows only, so the order of columns does not matter here.
        return BCOO((self.data, jnp.stack([self.row, self.col], 1)), shape=self.shape, indices_sorted=self._rows_sorted)

    def _sort_indices(self) -> COO:
        """The same matrix with its elements sorted by rows, and by columns within a row."""
        row, col, data = lax.sort([self.row, self.col, self.data], num_keys=2)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    def transpose(self, axes: tuple[int, ...] | None = None) -> COO:
        """The transposed matrix, of the same elements."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"transpose: axes must be None or (1, 0), got {axes}.")
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )


def _check_matrix(name: str, shape) -> None:
    if len(tuple(shape)) != 2:
        raise ValueError(f"sparse.{name}: shape must have two axes for a COO matrix, got shape={tuple(shape)}.")


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32) -> COO:
    """The nonzero elements of an ordinary matrix, as a COO matrix.

    Args:
        mat: a matrix.
        nse: how many elements to store; by default as many as are not zero, which must be known.
        index_dtype: the dtype of rows and columns.

    Example:
        >>> import gradix.numpy as jnp
        >>> coo_fromdense(jnp.eye(2)).row
        Array([0, 1], dtype=int32)
    """
    check_rank("coo_fromdense", mat, 2)
    made = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return COO((made.data, made.indices[:, 0], made.indices[:, 1]), shape=made.shape, rows_sorted=True)


def coo_todense(mat: COO) -> Array:
    """The ordinary array of the matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> coo_todense(coo_fromdense(jnp.eye(2)))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return mat.todense()


def coo_matvec(mat: COO, v: Array, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose, and a vector `v`.

    Example:
        >>> import gradix.numpy as jnp
        >>> coo_matvec(coo_fromdense(jnp.eye(2)), jnp.arange(2.0))
        Array([0., 1.], dtype=float32)
    """
    check_rank("coo_matvec", v, 1)
    return product(mat, v, transpose)


def coo_matmat(mat: COO, B: Array, *, transpose: bool = False) -> Array:
    """The product of a matrix, or of its transpose, and an ordinary matrix `B`.

    Example:
        >>> import gradix.numpy as jnp
        >>> coo_matmat(coo_fromdense(jnp.eye(2)), jnp.ones((2, 1))).shape
        (2, 1)
    """
    check_rank("coo_matmat", B, 2)
    return product(mat, B, transpose)


def __getattr__(name: str):
    if name.startswith("_coo_"):
        return getattr(_parts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _own_names(__name__, "COO")
