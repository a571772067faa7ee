"""`BCOO`: sparse arrays of any number of axes, as elements and their indices, with batches and dense axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._base.lazy import lazy_module
from gradix._base.tree import register_pytree_node_class as _register
from gradix.experimental.sparse._array import JAXSparse, as_arrays
from gradix.experimental.sparse._layout import Layout, layout_of

_bcoo: Any = lazy_module("gradix.experimental.sparse.bcoo")
_transform: Any = lazy_module("gradix.experimental.sparse.transform")


@_register
class BCOO(JAXSparse):
    """A sparse array: the elements that are given, and the index vector of each.

    The axes are, in this order, batches, each of which has its elements and indices; sparse axes,
    along which indices tell where an element stands; and dense axes, along which elements are
    stored whole. Elements at one place are added. Indices out of bounds stand for nothing: with
    data of zero they fill up what a layout of fixed size leaves over.

    It is a pytree: `jit`, `vmap` (over batches), `grad` (by the data) and loops take it. `sparsify`
    makes functions of ordinary arrays work on it; the operators do.

    Args:
        args: data of shape (*batch, nse, *dense), and indices of shape (*batch, nse, n_sparse).
            Batch axes may have size 1 in either, for what all batches share.
        shape: the shape of the whole array.
        indices_sorted: whether indices are in the order of rows, in each batch.
        unique_indices: whether no index is given twice.

    Raises:
        ValueError: the shapes do not fit.

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
        layout_of(self.data, self.indices, self.shape)

    # -- its parts ---------------------------------------------------------------------------------

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
            self.shape = _fitting(self.data.shape, self.indices.shape, tuple(shape))

    @property
    def _layout(self) -> Layout:
        return layout_of(self.data, self.indices, self.shape)

    @property
    def nse(self) -> int:
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        return self.data.ndim - 1 - self.n_batch

    def _with(self, *, data):
        """The array with other elements at the same places."""
        return BCOO(
            (data, self.indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    # -- made of others ----------------------------------------------------------------------------

    @classmethod
    def fromdense(
        cls,
        mat,
        *,
        nse: int | None = None,
        index_dtype=np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The elements of an ordinary array that are not zero; see `bcoo_fromdense`."""
        return _bcoo.bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat, *, index_dtype=None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """A matrix of SciPy."""
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCOO.from_scipy_sparse with n_dense or n_batch other than 0: use update_layout "
                "afterwards."
            )
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], 1)
        indices = indices if index_dtype is None else indices.astype(index_dtype)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape,
        *,
        dtype=None,
        index_dtype="int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(
                f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}; none is negative, and the "
                "axes suffice."
            )
        lead, dense = shape[:n_batch], shape[n_batch + n_sparse :]
        outside = jnp.array(shape[n_batch : n_batch + n_sparse], index_dtype)
        return cls(
            (
                jnp.zeros((*lead, nse, *dense), dtype),
                jnp.broadcast_to(outside, (*lead, nse, n_sparse)),
            ),
            shape=shape,
            indices_sorted=True,
            unique_indices=True,
        )

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype=None,
        index_dtype="int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        count = max(min(N, M - k) if k >= 0 else min(N + k, M), 0)
        rows = jnp.arange(count, dtype=index_dtype)
        indices = jnp.stack([rows - min(k, 0), rows + max(k, 0)], 1)
        made = cls(
            (jnp.ones(count, dtype), indices),
            shape=(N, M),
            indices_sorted=True,
            unique_indices=True,
        )
        return (
            made.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
            if n_batch or n_dense
            else made
        )

    # -- its methods -------------------------------------------------------------------------------

    def todense(self):
        """The ordinary array."""
        return _bcoo.bcoo_todense(self)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """The array with another number of batch and dense axes; see `bcoo_update_layout`."""
        return _bcoo.bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with its indices in order and each of them once; elements that are zero are left out by default."""
        return (_bcoo.bcoo_eliminate_zeros if remove_zeros else _bcoo.bcoo_sum_duplicates)(
            self, nse=nse
        )

    def sort_indices(self) -> BCOO:
        """The array with its indices in the order of rows."""
        return _bcoo.bcoo_sort_indices(self)

    def transpose(self, axes=None) -> BCOO:
        """The array with its axes permuted; reversed by default."""
        axes = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return _bcoo.bcoo_transpose(self, permutation=axes)

    def sum(self, *args, **kwargs):
        """Sums over axes, as those of `numpy.sum`; over all axes an ordinary array."""
        return _transform.sparsified(jnp.sum, *args, **kwargs)(self)

    def reshape(self, *args, **kwargs):
        """The array in another shape, as by `numpy.reshape`."""
        shape = args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args
        return _transform.sparsified(
            jnp.reshape, tuple(shape) if not isinstance(shape, int) else shape, **kwargs
        )(self)

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
        return (
            _transform.sparsified(_power, other)(self)
            if isinstance(other, int)
            else _binary(jnp.power, self, other)
        )

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


def _fitting(data, indices, shape: tuple) -> tuple:
    """The shape that goes with the parts: `vmap` takes batches off them, or puts others in front."""
    n_batch = len(indices) - 2
    total = n_batch + indices[-1] + len(data) - n_batch - 1
    if total <= len(shape):
        return shape[len(shape) - total :]
    new = total - len(shape)
    return tuple([max(a, b) for a, b in zip(data[:new], indices[:new])]) + shape
