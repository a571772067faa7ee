"""`BCOO`: sparse arrays of any rank as elements and indices, with batch axes and dense axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._base.lazy import lazy_module
from gradix._base.tree import register_pytree_node_class as _register
from gradix.experimental.sparse._array import JAXSparse, as_arrays
from gradix.experimental.sparse._layout import Layout, fitting_shape, holding, layout_of
from gradix.experimental.sparse.util import SparseInfo

_bcoo: Any = lazy_module("gradix.experimental.sparse.bcoo")
_transform: Any = lazy_module("gradix.experimental.sparse.transform")


@_register
class BCOO(JAXSparse):
    """A sparse array, stored as its specified elements and the index vector of each element.

    Its axes are, in this order: batch axes, where each batch has its own elements and indices;
    sparse axes, along which the indices say where an element is; and dense axes, along which every
    element is an array. Elements with equal indices are added. Elements whose indices are out of
    bounds are ignored: they pad a batch with fewer elements than `nse`.

    It is a pytree, so `jit`, `vmap` (over batches), `grad` (with respect to the data) and loops take
    it. `sparsify` makes functions of ordinary arrays accept it, as its operators do.

    Args:
        args: data of shape (*batch, nse, *dense), and indices of shape (*batch, nse, n_sparse).
            A batch axis of size 1 in either is shared by all batches.
        shape: the shape of the whole array.
        indices_sorted: whether the indices of each batch are in row-major order.
        unique_indices: whether all indices of a batch differ.

    Raises:
        ValueError: the shapes of data, indices and the array do not fit each other.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]))
        >>> m
        BCOO(float32[2, 3], nse=3)
        >>> m @ jnp.ones(3)
        Array([2., 5.], dtype=float32)
        >>> (2 * m.T).todense()
        Array([[0., 2.],
               [4., 0.],
               [0., 8.]], dtype=float32)
    """

    def __init__(self, args, *, shape, indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices = as_arrays(args)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        super().__init__(args, shape=shape)
        self.indices = holding(self.indices, self.shape)
        layout_of(self.data, self.indices, self.shape)

    # -- parts and layout --------------------------------------------------------------------------

    def tree_flatten(self):
        return (self.data, self.indices), {
            "shape": self.shape,
            "indices_sorted": self.indices_sorted,
            "unique_indices": self.unique_indices,
        }

    def _set(self, children, shape, indices_sorted, unique_indices) -> None:
        self.data, self.indices = children
        self.shape, self.indices_sorted, self.unique_indices = shape, indices_sorted, unique_indices
        if hasattr(self.indices, "ndim") and hasattr(self.data, "shape") and self.indices.ndim >= 2:
            self.shape = fitting_shape(self.data.shape, self.indices.shape, tuple(shape))

    @property
    def _layout(self) -> Layout:
        return layout_of(self.data, self.indices, self.shape)

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(tuple(self.shape), self.indices_sorted, self.unique_indices)

    @property
    def nse(self) -> int:
        """The number of specified elements of each batch."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - 1 - self.n_batch

    def _with(self, *, data):
        """The array with other elements at the same indices."""
        return BCOO(
            (data, self.indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    # -- conversion from other arrays --------------------------------------------------------------

    @classmethod
    def fromdense(
        cls, mat, *, nse: int | None = None, index_dtype=np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The nonzero elements of an ordinary array; see `bcoo_fromdense`."""
        return _bcoo.bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The BCOO array of one of SciPy's sparse matrices."""
        if n_dense or n_batch:
            raise NotImplementedError(
                f"BCOO.from_scipy_sparse: n_dense and n_batch must be 0, got {n_dense} and {n_batch}. "
                "Call update_layout on the result."
            )
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], 1)
        indices = indices if index_dtype is None else indices.astype(index_dtype)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
    ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(
                f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}; no number may be negative, "
                "and n_dense + n_batch must not exceed the number of axes."
            )
        lead, dense = shape[:n_batch], shape[n_batch + n_sparse :]
        outside = jnp.array(shape[n_batch : n_batch + n_sparse], index_dtype)
        return cls(
            (jnp.zeros((*lead, nse, *dense), dtype), jnp.broadcast_to(outside, (*lead, nse, n_sparse))),
            shape=shape,
            indices_sorted=True,
            unique_indices=True,
        )

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype=None, index_dtype="int32", n_batch: int = 0, n_dense: int = 0
    ) -> BCOO:
        count = max(min(N, M - k) if k >= 0 else min(N + k, M), 0)
        if (n_batch, n_dense) in ((1, 0), (1, 1), (2, 0), (0, 2)):  # each batch holds at most one element
            if n_batch + n_dense == 2:
                data, places = jnp.eye(N, M, k, dtype=dtype), jnp.zeros((*(N, M)[:n_batch], 1, 0), index_dtype)
            else:
                data, places = _one_for_each_row(N, M, k, dtype, index_dtype)
            stored = (*[slice(None)] * n_batch, slice(min(count, 1)))
            parts = jnp.expand_dims(data, n_batch)[stored], places[stored]
            return cls(parts, shape=(N, M), indices_sorted=True, unique_indices=True)
        rows = jnp.arange(count, dtype=index_dtype)
        indices = jnp.stack([rows - min(k, 0), rows + max(k, 0)], 1)
        made = cls((jnp.ones(count, dtype), indices), shape=(N, M), indices_sorted=True, unique_indices=True)
        return made.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None) if n_batch or n_dense else made

    # -- methods -----------------------------------------------------------------------------------

    def todense(self):
        """The ordinary array of the sparse one."""
        return _bcoo.bcoo_todense(self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same array with other numbers of batch and dense axes; see `bcoo_update_layout`."""
        return _bcoo.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array with sorted, unique indices; by default without elements that are zero."""
        return (_bcoo.bcoo_eliminate_zeros if remove_zeros else _bcoo.bcoo_sum_duplicates)(self, nse=nse)

    def sort_indices(self) -> BCOO:
        """The same array with its indices in row-major order."""
        return _bcoo.bcoo_sort_indices(self)

    def transpose(self, axes=None) -> BCOO:
        """The array with its axes permuted; by default in reverse order."""
        axes = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return _bcoo.bcoo_transpose(self, permutation=axes)

    def sum(self, *args, **kwargs):
        """Sums over axes, as by `numpy.sum`; the sum over all axes is an ordinary array."""
        return _transform.sparsified(jnp.sum, *args, **kwargs)(self)

    def reshape(self, *args, **kwargs):
        """The array in another shape, as by `numpy.reshape`."""
        shape = args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args
        return _transform.sparsified(jnp.reshape, tuple(shape) if not isinstance(shape, int) else shape, **kwargs)(self)

    def astype(self, *args, **kwargs):
        """The array in another dtype."""
        return self._with(data=self.data.astype(*args, **kwargs))

    # -- operators ---------------------------------------------------------------------------------

    def __neg__(self):
        return self._with(data=-self.data)

    def __abs__(self):
        return _binary(jnp.abs, self)

    def __matmul__(self, other):
        return _bcoo.matmul(self, other)

    def __rmatmul__(self, other):
        return _bcoo.matmul(other, self)

    def __mul__(self, other):
        return _binary(jnp.multiply, self, other)

    def __rmul__(self, other):
        return _binary(jnp.multiply, other, self)

    def __truediv__(self, other):
        return _binary(jnp.divide, self, other)

    def __rtruediv__(self, other):
        return _binary(jnp.divide, other, self)

    def __add__(self, other):
        return _binary(jnp.add, self, other)

    def __radd__(self, other):
        return _binary(jnp.add, other, self)

    def __sub__(self, other):
        return _binary(jnp.subtract, self, other)

    def __rsub__(self, other):
        return _binary(jnp.subtract, other, self)

    def __pow__(self, other):
        return _transform.sparsified(_power, other)(self) if isinstance(other, int) else _binary(jnp.power, self, other)

    def __rpow__(self, other):
        return _binary(jnp.power, other, self)

    def __eq__(self, other):
        return _binary(jnp.equal, self, other)

    def __gt__(self, other):
        return _binary(jnp.greater, self, other)

    def __ge__(self, other):
        return _binary(jnp.greater_equal, self, other)

    def __lt__(self, other):
        return _binary(jnp.less, self, other)

    def __le__(self, other):
        return _binary(jnp.less_equal, self, other)

    def __getitem__(self, item):
        return _transform.sparsified(_at, item)(self)

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d sparse array")
        return (self[i] for i in range(self.shape[0]))


def _power(x, n: int):
    return x**n


def _at(x, item):
    return x[item]


def _binary(function, *args):
    return _transform.sparsify(function)(*args)


def _one_for_each_row(N: int, M: int, k: int, dtype, index_dtype) -> tuple:
    """The elements of a diagonal and their columns, one for each row; out of bounds where a row has none."""
    columns = jnp.arange(N, dtype=index_dtype) + k
    inside = (columns >= 0) & (columns < M)
    return inside.astype(dtype), jnp.where(inside, columns, M)[:, None, None]
