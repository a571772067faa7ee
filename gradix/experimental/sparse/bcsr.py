"""`BCSR`: sparse matrices stored by compressed rows, with batch axes and dense axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import numpy as jnp
from gradix._api.mapping.vmap import vmap
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import register_pytree_node_class as _register
from gradix._ops.linalg.sparse_product import sparse_product
from gradix.experimental.sparse._array import JAXSparse, as_arrays
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_moving import bcoo_broadcast_in_dim, bcoo_concatenate
from gradix.experimental.sparse._bcoo_products import _with_dense, canonical_numbers, matmul
from gradix.experimental.sparse._bcoo_storage import (
    bcoo_eliminate_zeros,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
)
from gradix.experimental.sparse._layout import fitting_shape, in_bounds, or_zero, whole_parts
from gradix.experimental.sparse.util import SparseInfo

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.operators import Array
    from gradix._core.sharding import PartitionSpec
    from gradix._ops.precision import PrecisionLike

_parts = _lazy_module("gradix.experimental.sparse._parts")


@_register
class BCSR(JAXSparse):
    """A sparse matrix stored by compressed rows, or a batch of them; elements may have dense axes.

    Args:
        args: `(data, indices, indptr)`: data of shape (*batch, nse, *dense), indices (the columns)
            of shape (*batch, nse), and indptr of shape (*batch, rows + 1). Row i has the elements
            from `indptr[i]` up to `indptr[i + 1]`. Elements after the last row are ignored.
        shape: the shape of the whole array.
        indices_sorted: whether the columns of each row are sorted.
        unique_indices: whether the columns of each row differ.

    Raises:
        ValueError: the shapes of the parts do not fit each other.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> m = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]))
        >>> m.indices, m.indptr
        (Array([1, 0, 2], dtype=int32), Array([0, 1, 3], dtype=int32))
        >>> m @ jnp.ones(3)
        Array([2., 5.], dtype=float32)
    """

    def __init__(self, args, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices, self.indptr = as_arrays(args)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        super().__init__(args, shape=shape)
        _check(self)

    def tree_flatten(self):
        return (self.data, self.indices, self.indptr), {
            "shape": self.shape,
            "indices_sorted": self.indices_sorted,
            "unique_indices": self.unique_indices,
        }

    def _set(self, children, shape, indices_sorted, unique_indices) -> None:
        self.data, self.indices, self.indptr = children
        self.shape, self.indices_sorted, self.unique_indices = shape, indices_sorted, unique_indices
        if hasattr(self.indices, "ndim") and hasattr(self.data, "shape") and self.indices.ndim:
            self.shape = fitting_shape(self.data.shape, (*self.indices.shape, 2), tuple(shape))

    _info = property(lambda self: SparseInfo(tuple(self.shape), self.indices_sorted, self.unique_indices))
    nse = property(lambda self: self.indices.shape[-1])
    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)

    # -- conversion from other arrays --------------------------------------------------------------

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0) -> BCSR:
        """The nonzero elements of an ordinary array; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The BCSR array of a BCOO array with two sparse axes."""
        if arr.n_sparse != 2:
            raise NotImplementedError(
                f"BCSR.from_bcoo requires an array with n_sparse == 2, got {arr!r} with {arr.n_sparse}. "
                "Call update_layout on it first."
            )
        if not arr.indices_sorted:
            arr = bcoo_sort_indices(arr)
        rows, count = arr.indices[..., 0], arr.shape[arr.n_batch]
        valid, lead = in_bounds(arr), rows.shape[:-1]
        rows = jnp.where(valid, rows, count)

        def starts(rows):
            return jnp.searchsorted(rows, jnp.arange(count + 1, dtype=rows.dtype)).astype(rows.dtype)

        indptr = vmap(starts)(rows.reshape(math.prod(lead), -1)).reshape(*lead, count + 1) if lead else starts(rows)
        whole = arr.data.shape[: arr.n_batch]
        if whole != lead:
            arr = BCOO(whole_parts(arr), shape=arr.shape, unique_indices=arr.unique_indices)
            indptr = jnp.broadcast_to(indptr, (*arr.shape[: arr.n_batch], count + 1))
        return cls(
            (arr.data, arr.indices[..., 1], indptr),
            shape=arr.shape,
            indices_sorted=True,
            unique_indices=arr.unique_indices,
        )

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0) -> BCSR:
        """The BCSR array of one of SciPy's sparse matrices."""
        if n_dense or n_batch:
            raise NotImplementedError(
                f"BCSR.from_scipy_sparse: n_dense and n_batch must be 0, got {n_dense} and {n_batch}."
            )
        mat = mat.tocsr()
        indices, indptr = [x if index_dtype is None else x.astype(index_dtype) for x in (mat.indices, mat.indptr)]
        return cls((mat.data, indices, indptr), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
    ) -> BCSR:
        shape = tuple(shape)
        if len(shape) - n_dense - n_batch != 2 or min(n_dense, n_batch, nse) < 0:
            raise ValueError(
                "sparse.empty: shape must have two axes besides n_batch and n_dense ones for a BCSR "
                f"array, and no number may be negative; got {shape=}, {n_dense=}, {n_batch=}, {nse=}."
            )
        lead, dense = shape[:n_batch], shape[n_batch + 2 :]
        return cls(
            (
                jnp.zeros((*lead, nse, *dense), dtype),
                jnp.full((*lead, nse), shape[n_batch + 1], index_dtype),
                jnp.zeros((*lead, shape[n_batch] + 1), index_dtype),
            ),
            shape=shape,
        )

    @classmethod
    def _eye(cls, N, M, k, **options) -> BCSR:
        return cls.from_bcoo(BCOO._eye(N, M, k, **options))

    # -- methods -----------------------------------------------------------------------------------

    def to_bcoo(self) -> BCOO:
        """The array as BCOO."""
        rows = _rows(self)
        rows, columns = jnp.broadcast_arrays(rows, self.indices)
        return BCOO(
            (self.data, jnp.stack([rows, columns], -1)),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self):
        """The ordinary array of the sparse one."""
        return bcsr_todense(self)

    def transpose(self, *args, **kwargs):
        """The array with its axes permuted; by default in reverse order."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(*args, **kwargs))

    def sum(self, *args, **kwargs):
        """Sums over axes, as an ordinary array or BCOO."""
        return self.to_bcoo().sum(*args, **kwargs)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same array with sorted, unique indices; by default without elements that are zero."""
        return bcsr_eliminate_zeros(self, nse) if remove_zeros else bcsr_sum_duplicates(self, nse)

    def _with(self, *, data) -> BCSR:
        return BCSR(
            (data, self.indices, self.indptr),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def __neg__(self):
        return self._with(data=-self.data)

    def __matmul__(self, other):
        if isinstance(other, JAXSparse):
            return matmul(self.to_bcoo(), other if isinstance(other, BCOO) else other.to_bcoo())
        other = jnp.asarray(other)
        if self.ndim == 2 and other.ndim in (1, 2):
            return bcsr_dot_general(self, other, dimension_numbers=(((1,), (0,)), ((), ())))
        return matmul(self.to_bcoo(), other)

    def __rmatmul__(self, other):
        return matmul(other, self.to_bcoo())

    def __mul__(self, other):
        return _compressed(self.to_bcoo() * _as_bcoo(other))

    def __rmul__(self, other):
        return _compressed(_as_bcoo(other) * self.to_bcoo())

    def __truediv__(self, other):
        return _compressed(self.to_bcoo() / other)

    def __add__(self, other):
        return _compressed(self.to_bcoo() + _as_bcoo(other))

    def __radd__(self, other):
        return _compressed(_as_bcoo(other) + self.to_bcoo())

    def __sub__(self, other):
        return _compressed(self.to_bcoo() - _as_bcoo(other))

    def __rsub__(self, other):
        return _compressed(_as_bcoo(other) - self.to_bcoo())

    def __getitem__(self, item):
        return _compressed(self.to_bcoo()[item])


def _as_bcoo(x: Any):
    return x.to_bcoo() if isinstance(x, BCSR) else x


def _compressed(x: Any):
    return BCSR.from_bcoo(x) if isinstance(x, BCOO) and x.n_sparse == 2 else x


def _check(mat: BCSR) -> None:
    data, indices, indptr, shape = mat.data, mat.indices, mat.indptr, mat.shape
    n = indices.ndim - 1
    problem = None
    if n < 0 or len(shape) != data.ndim + 1 or data.ndim < indices.ndim:
        problem = "the axes of data, indices and shape do not fit"
    elif data.shape[n] != indices.shape[n]:
        problem = f"data holds {data.shape[n]} elements and the indices {indices.shape[n]}"
    elif indptr.ndim != n + 1 or indptr.shape[-1] != shape[n] + 1:
        problem = f"indptr must have an element more than there are rows, {shape[n]}"
    elif data.shape[n + 1 :] != tuple(shape[n + 2 :]) or any(a not in (1, m) for a, m in zip(data.shape[:n], shape)):
        problem = "the batch and dense axes of data must be those of the array"
    if problem:
        raise ValueError(
            f"Invalid BCSR array: {problem}; got data of shape {data.shape}, indices of shape "
            f"{indices.shape}, indptr of shape {indptr.shape} and shape={tuple(shape)}."
        )


def _rows(mat: BCSR):
    """The row of each element; the number of rows for elements after the last row."""
    count, lead = mat.shape[mat.n_batch], mat.indptr.shape[:-1]

    def rows(indptr):
        at = jnp.arange(mat.nse, dtype=indptr.dtype)
        marks = jnp.zeros(mat.nse + 1, indptr.dtype).at[indptr[1:]].add(1, mode="drop")
        return jnp.where(at < indptr[-1], jnp.cumsum(marks[:-1], dtype=indptr.dtype), count)

    if not lead:
        return rows(mat.indptr)
    return vmap(rows)(mat.indptr.reshape(math.prod(lead), count + 1)).reshape(*lead, mat.nse)


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32
) -> BCSR:
    """The nonzero elements of an array as a BCSR array; arguments as for `bcoo_fromdense`.

    Raises:
        ValueError: the number of sparse axes is not two.
        ConcretizationTypeError: `nse` is left out and the array is traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcsr_fromdense(jnp.eye(2)).indptr
        Array([0, 1, 2], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if mat.ndim != n_batch + n_dense + 2:
        raise ValueError(
            f"bcsr_fromdense: there must be two sparse axes; an array of shape {mat.shape} has "
            f"{mat.ndim - n_batch - n_dense} with {n_batch=} and {n_dense=}."
        )
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """The ordinary array of the sparse one.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcsr_todense(bcsr_fromdense(jnp.eye(2)))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return mat.to_bcoo().todense()


def bcsr_extract(indices: Array, indptr: Array, mat: Array) -> Array:
    """The elements of an ordinary array at the given indices, of shape (*batch, nse, *dense).

    Args:
        indices: columns, of shape (*batch, nse).
        indptr: where each row starts, of shape (*batch, rows + 1).
        mat: an ordinary array of shape (*batch, rows, columns, *dense).

    Example:
        >>> import gradix.numpy as jnp
        >>> bcsr_extract(jnp.array([1]), jnp.array([0, 0, 1]), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array([4.], dtype=float32)
    """
    mat, indices, indptr = jnp.asarray(mat), jnp.asarray(indices), jnp.asarray(indptr)
    n = indices.ndim - 1
    zeros = jnp.zeros((*indices.shape, *mat.shape[n + 2 :]), mat.dtype)
    made = BCSR((zeros, indices, indptr), shape=mat.shape)
    return bcoo_extract(made.to_bcoo(), mat, assume_unique=True).data


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any:
    """A contraction of a BCSR array and an ordinary one, as an ordinary array.

    Args:
        lhs: a BCSR array.
        rhs: an ordinary array.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, as for
            `lax.dot_general`.
        precision, out_sharding: not used.
        preferred_element_type: the dtype of the result; by default that of the product.

    Raises:
        NotImplementedError: `lhs` is not a BCSR array, or `rhs` is sparse.
        TypeError: the sizes of contracted or batch axes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcsr_dot_general(bcsr_fromdense(jnp.eye(2)), jnp.arange(2.0), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([0., 1.], dtype=float32)
    """
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        raise NotImplementedError(
            "bcsr_dot_general: lhs must be a BCSR array and rhs an ordinary array, got a "
            f"{type(lhs).__name__} and a {type(rhs).__name__}. Convert sparse arrays by to_bcoo() and "
            "call bcoo_dot_general."
        )
    rhs = jnp.asarray(rhs)
    numbers = canonical_numbers("bcsr_dot_general", lhs, rhs, dimension_numbers)
    # The rows of one matrix are always sorted, which is all that a product needs.
    ordered = lhs.indices_sorted or not (lhs.n_batch or lhs.n_dense)
    if lhs.ndim == 2 and numbers == (((1,), (0,)), ((), ())):
        out = _product(lhs, rhs)
    else:
        out = _with_dense(lhs.to_bcoo(), rhs, numbers, ordered and numbers[0][0] == (lhs.n_batch + 1,))
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _product(mat: BCSR, dense):
    """The product of one matrix and a vector or matrix."""
    (height, width), dtype = mat.shape, jnp.result_type(mat, dense)
    flat = dense.reshape(width, -1)
    shape = (height, *dense.shape[1:])
    if not mat.nse or not flat.size or not height or dtype.kind == "b":
        return _with_dense(mat.to_bcoo(), dense, (((1,), (0,)), ((), ())), True)
    # Elements out of bounds are ignored, whatever their data are.
    starts = jnp.clip(mat.indptr, 0, mat.nse)
    inside = (jnp.arange(mat.nse) < starts[-1]) & (mat.indices >= 0) & (mat.indices < width)
    data = or_zero(inside, mat.data).astype(dtype)
    columns = jnp.clip(mat.indices, 0, width - 1)
    rows = jnp.clip(_rows(mat), 0, height - 1)
    return sparse_product(data, rows, columns, flat.astype(dtype), height, ordered=True, starts=starts).reshape(shape)


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """The array repeated along new axes and axes of size 1; see `bcoo_broadcast_in_dim`.

    Example:
        >>> from gradix.experimental import sparse
        >>> import gradix.numpy as jnp
        >>> x = sparse.BCSR.fromdense(jnp.eye(2))
        >>> sparse.bcsr_broadcast_in_dim(x, shape=(3, 2, 2), broadcast_dimensions=(1, 2)).shape
        (3, 2, 2)
    """
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """The concatenation of arrays along the axis `dimension`; see `bcoo_concatenate`.

    Example:
        >>> from gradix.experimental import sparse
        >>> import gradix.numpy as jnp
        >>> x = sparse.BCSR.fromdense(jnp.eye(2))
        >>> sparse.bcsr_concatenate([x, x], dimension=0).todense().shape
        (4, 2)
    """
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array with sorted, unique indices; `nse` as for `bcoo_sum_duplicates`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.BCSR((jnp.array([1.0, 2.0]), jnp.array([0, 0]), jnp.array([0, 2])), shape=(1, 3))
        >>> y = sparse.bcsr_sum_duplicates(x)
        >>> y.nse, y.todense()
        (1, Array([[3., 0., 0.]], dtype=float32))
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array with sorted, unique indices and without elements that are zero.

    Example:
        >>> from gradix.experimental import sparse
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse import bcsr
        >>> x = sparse.BCSR((jnp.array([1.0, 0.0]), jnp.array([0, 1]), jnp.array([0, 2])), shape=(1, 3))
        >>> x.nse, bcsr.bcsr_eliminate_zeros(x).nse
        (2, 1)
    """
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse))


def __getattr__(name: str):
    if name.startswith(("_bcsr_", "_bcoo_to_bcsr")):
        return getattr(_parts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _own_names(__name__, "BCSR")
