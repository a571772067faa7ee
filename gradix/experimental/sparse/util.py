"""What the formats of sparse arrays share: warnings, errors, and `SparseInfo`."""

from __future__ import annotations

from typing import NamedTuple

from gradix import numpy as jnp
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names

_parts = _lazy_module("gradix.experimental.sparse._parts")


class SparseEfficiencyError(ValueError):
    """A layout was requested that would store many zeros."""


class SparseEfficiencyWarning(UserWarning):
    """A requested layout stores many zeros."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A product of sparse arrays cannot be computed by cuSPARSE."""


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and whether its indices are sorted and unique."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def _count_stored_elements_per_batch(mat, n_batch: int = 0, n_dense: int = 0):
    """How many elements a BCOO or BCSR array of each batch of an ordinary array stores."""
    mat = jnp.asarray(mat)
    mask = jnp.any(mat != 0, tuple(range(mat.ndim - n_dense, mat.ndim)))
    return jnp.sum(mask, tuple(range(n_batch, mask.ndim)), dtype="int32")


def _count_stored_elements(mat, n_batch: int = 0, n_dense: int = 0):
    """How many elements a BCOO or BCSR array of an ordinary array stores."""
    return jnp.max(_count_stored_elements_per_batch(mat, n_batch, n_dense), initial=0)


def __getattr__(name: str):
    if name in ("_csr_to_coo", "_csr_extract", "_coo_extract"):
        return getattr(_parts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _own_names(__name__, "CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning")
