"""Functions for sparse arrays of any format: `empty`, `eye` and `todense`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_unflatten
from gradix._core.trace import Tracer, bind
from gradix._ops.markers import name_p
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse.bcsr import BCSR
from gradix.experimental.sparse.coo import COO
from gradix.experimental.sparse.csr import CSC, CSR
from gradix.experimental.sparse.transform import TODENSE, is_sparsifying

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike, Shape
    from gradix._core.operators import Array

_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def todense(arr: Any) -> Array:
    """The ordinary array of a sparse one; other values are returned unchanged.

    Inside a function given to `sparsify`, it marks where an ordinary array is wanted.

    Args:
        arr: a sparse array, or any other value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> sparse.sparsify(lambda m: jnp.cos(sparse.todense(m)))(sparse.empty((2,)))
        Array([1., 1.], dtype=float32)
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    if is_sparsifying() and isinstance(arr, Tracer):
        return bind(name_p, [arr], {"name": TODENSE})
    return arr


def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """A sparse array of zeros.

    Args:
        shape: the shape of the array.
        dtype: the dtype of its elements; by default that of Python's floats.
        index_dtype: the dtype of its indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: further arguments of the format: `nse`, `n_batch` and `n_dense`.

    Raises:
        KeyError: there is no such format.

    Example:
        >>> empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """A sparse matrix of shape (N, M) with ones on a diagonal.

    Args:
        N, M: the numbers of rows and columns; `M` is `N` by default.
        k: which diagonal has the ones: 0 for the main one, positive for one above it.
        dtype: the dtype of its elements; by default that of Python's floats.
        index_dtype: the dtype of its indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: further arguments of the format: `n_batch` and `n_dense`.

    Raises:
        KeyError: there is no such format.

    Example:
        >>> eye(2, 3, k=1).todense()
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    M = N if M is None else M
    return _format(sparse_format)._eye(
        int(N), int(M), int(k), dtype=jnp.ones((), dtype).dtype, index_dtype=index_dtype, **kwds
    )


class _Todense:
    """`todense` for the leaves of an array, as tests of other libraries bind it."""

    name = "todense"

    @staticmethod
    def bind(*leaves, tree):
        return todense(tree_unflatten(tree, leaves))


todense_p = _Todense()


def _format(name: str):
    if name not in _FORMATS:
        raise KeyError(f"sparse_format must be one of {', '.join(map(repr, _FORMATS))}; got {name!r}.")
    return _FORMATS[name]


__dir__ = _own_names(__name__, "BCOO", "BCSR", "COO", "CSC", "CSR", "JAXSparse")
