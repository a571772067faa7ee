"""What the formats of sparse arrays share: warnings, errors, and `SparseInfo`."""

from __future__ import annotations

from typing import NamedTuple

from gradix._base.listing import own_names as _own_names


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


__dir__ = _own_names(
    __name__,
    "CuSparseEfficiencyWarning",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
)
