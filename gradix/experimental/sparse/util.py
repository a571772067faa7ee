"""What the formats of sparse arrays share: warnings, errors, and `SparseInfo`."""

from __future__ import annotations

from typing import NamedTuple

from gradix import numpy as jnp
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names

_parts = _lazy_module("gradix.experimental.sparse._parts")


class SparseEfficiencyError(ValueError):
    """A layout was requested that would store many zeros.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[1.0, 1.0], [0.0, 1.0]]))
        >>> try:
        ...     sparse.bcoo_update_layout(x, n_batch=1)
        ... except sparse.SparseEfficiencyError as e:
        ...     print(type(e).__name__)
        SparseEfficiencyError
    """


class SparseEfficiencyWarning(UserWarning):
    """A requested layout stores many zeros.

    Example:
        >>> import warnings
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[1.0, 1.0], [0.0, 1.0]]))
        >>> with warnings.catch_warnings(record=True) as found:
        ...     warnings.simplefilter("always")
        ...     y = sparse.bcoo_update_layout(x, n_batch=1, on_inefficient="warn")
        >>> [w.category.__name__ for w in found]
        ['SparseEfficiencyWarning']
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A product of sparse arrays cannot be computed by cuSPARSE.

    Example:
        >>> import warnings
        >>> from gradix.experimental import sparse
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", sparse.CuSparseEfficiencyWarning)
        ...     print(sparse.eye(2).sum())
        2.0
    """


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and whether its indices are sorted and unique.

    Example:
        >>> from gradix.experimental.sparse.util import SparseInfo
        >>> SparseInfo((2, 3), indices_sorted=True)
        SparseInfo(shape=(2, 3), indices_sorted=True, unique_indices=False)
    """

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def _count_stored_elements_per_batch(mat, n_batch: int = 0, n_dense: int = 0):
    """How many elements a BCOO or BCSR array of each batch of an ordinary array stores."""
    mat = jnp.asarray(mat)
    mask = jnp.any(mat.astype(bool), tuple(range(mat.ndim - n_dense, mat.ndim)))
    return jnp.sum(mask, tuple(range(n_batch, mask.ndim)), dtype="int32")


def _count_stored_elements(mat, n_batch: int = 0, n_dense: int = 0):
    """How many elements a BCOO or BCSR array of an ordinary array stores."""
    return jnp.max(_count_stored_elements_per_batch(mat, n_batch, n_dense), initial=0)


def __getattr__(name: str):
    if name in ("_csr_to_coo", "_csr_extract", "_coo_extract"):
        return getattr(_parts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _own_names(__name__, "CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning")
