"""Sparse and dense arrays as numbers of buffers in a list, by which several arrays share their indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gradix._base.tree import tree_flatten, tree_map
from gradix._core.array import as_array
from gradix._core.aval import ShapedArray
from gradix._core.operators import Array
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse.bcsr import BCSR


class SparsifyValue(NamedTuple):
    """An array of which the elements, and where they are, lie in buffers of a `SparsifyEnv`.

    Attributes:
        shape: the shape of the array.
        data_ref: the number of the buffer of the elements.
        indices_ref: that of the indices of a BCOO or BCSR array; None for dense arrays.
        indptr_ref: that of the row pointers of a BCSR array; None for others.
        indices_sorted, unique_indices: as for `BCOO`.

    Example:
        >>> from gradix.experimental.sparse.transform import SparsifyValue
        >>> value = SparsifyValue((3, 3), data_ref=1, indices_ref=2)
        >>> value.ndim, value.is_sparse(), value.is_bcsr()
        (2, True, False)
    """

    shape: tuple
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The buffers that `SparsifyValue`s refer to by number.

    Args:
        bufs: the first buffers.

    Example:
        >>> import gradix.numpy as jnp, operator
        >>> from gradix.experimental.sparse.transform import SparsifyEnv, sparsify_raw, spvalues_to_arrays
        >>> env = SparsifyEnv([jnp.array([[0], [2]]), jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])])
        >>> x, y = [env.sparse((3,), data_ref=k, indices_ref=0) for k in (1, 2)]
        >>> results, _ = sparsify_raw(operator.mul)(env, x, y)
        >>> spvalues_to_arrays(env, results)[0].todense()
        Array([10.,  0., 40.], dtype=float32)
    """

    def __init__(self, bufs: Iterable = ()):
        self._buffers = [as_array(b) for b in bufs]

    def _held(self, value: SparsifyValue, field: str) -> Array:
        number = getattr(value, field)
        if number is None or not 0 <= number < len(self._buffers):
            raise ValueError(
                f"{value} has no buffer {field.removesuffix('_ref')!r} among the {len(self._buffers)} of this "
                "SparsifyEnv. Make values with its methods dense and sparse."
            )
        return self._buffers[number]

    def data(self, spvalue: SparsifyValue) -> Array:
        """The elements of an array."""
        return self._held(spvalue, "data_ref")

    def indices(self, spvalue: SparsifyValue) -> Array:
        """The indices of a sparse array."""
        return self._held(spvalue, "indices_ref")

    def indptr(self, spvalue: SparsifyValue) -> Array:
        """The row pointers of a BCSR array."""
        return self._held(spvalue, "indptr_ref")

    def _put(self, array, number: int | None) -> int | None:
        if array is None:
            return number
        if number is not None:
            raise ValueError("SparsifyEnv.sparse: a buffer is given as an array or by its number, not as both.")
        self._buffers.append(as_array(array))
        return len(self._buffers) - 1

    def dense(self, data) -> SparsifyValue:
        """A new dense array, whose buffer is added."""
        return SparsifyValue(as_array(data).aval.shape, self._put(data, None))

    def sparse(
        self,
        shape: Any,
        data: Any = None,
        indices: Any = None,
        indptr: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """A sparse array whose buffers are given as arrays, which are added, or by their numbers.

        Raises:
            ValueError: elements or indices are not given, or given twice.
        """
        data_ref, indices_ref = self._put(data, data_ref), self._put(indices, indices_ref)
        if data_ref is None or indices_ref is None:
            raise ValueError(
                "SparsifyEnv.sparse needs the elements and the indices: pass data or data_ref, and indices."
            )
        indptr_ref = self._put(indptr, indptr_ref)
        return SparsifyValue(tuple(shape), data_ref, indices_ref, indptr_ref, indices_sorted, unique_indices)


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """The tree of arrays, dense or sparse, as `SparsifyValue`s whose buffers are added to `spenv`.

    Raises:
        NotImplementedError: an array is sparse in another format than BCOO and BCSR.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse import BCOO
        >>> from gradix.experimental.sparse.transform import SparsifyEnv, arrays_to_spvalues
        >>> env = SparsifyEnv()
        >>> arrays_to_spvalues(env, BCOO.fromdense(jnp.eye(2)))[:3]
        ((2, 2), 0, 1)
    """

    def value(x):
        if not _is_sparse(x):
            return spenv.dense(x)
        if not isinstance(x, BCOO | BCSR):
            raise NotImplementedError(f"arrays_to_spvalues takes BCOO and BCSR arrays, got a {type(x).__name__}.")
        return spenv.sparse(
            x.shape,
            x.data,
            x.indices,
            x.indptr if isinstance(x, BCSR) else None,
            indices_sorted=x.indices_sorted,
            unique_indices=x.unique_indices,
        )

    return tree_map(value, args, is_leaf=_is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The arrays that a tree of `SparsifyValue`s stands for.

    Raises:
        ValueError: a value refers to a buffer that `spenv` does not have.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse.transform import SparsifyEnv, spvalues_to_arrays
        >>> env = SparsifyEnv()
        >>> spvalues_to_arrays(env, [env.dense(jnp.arange(3))])
        [Array([0, 1, 2], dtype=int32)]
    """

    def array(value):
        if value.is_dense():
            return spenv.data(value)
        flags = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
        if value.is_bcoo():
            return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **flags)
        parts = spenv.data(value), spenv.indices(value), spenv.indptr(value)
        return BCSR(parts, shape=value.shape, **flags)

    return tree_map(array, spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The types of the arrays that a tree of `SparsifyValue`s stands for.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse.transform import SparsifyEnv, spvalues_to_avals
        >>> env = SparsifyEnv()
        >>> spvalues_to_avals(env, env.sparse((3, 3), jnp.ones(1), jnp.zeros((1, 2), int)))
        ShapedArray(float32[3,3])
    """

    def aval(value):
        data = spenv.data(value).aval
        return ShapedArray(value.shape, data.dtype, data.weak_type)

    return tree_map(aval, spvalues, is_leaf=_is_value)


def raw(sparsified: Callable) -> Callable:
    """`sparsify_raw` of the function that `sparsify` made."""

    def on_values(spenv: SparsifyEnv, *spvalues: Any, **params: Any) -> tuple[list, Any]:
        out = sparsified(*spvalues_to_arrays(spenv, spvalues), **params)
        leaves, tree = tree_flatten(out, is_leaf=_is_sparse)
        return [arrays_to_spvalues(spenv, x) for x in leaves], tree

    return on_values
