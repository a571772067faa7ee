"""What the formats of sparse arrays share: warnings, errors, and the description of a layout."""

from __future__ import annotations

from typing import NamedTuple


class SparseEfficiencyError(ValueError):
    """A layout was asked for that would hold many zeros."""


class SparseEfficiencyWarning(UserWarning):
    """A layout holds many zeros."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A product of sparse arrays cannot be left to the GPU's library."""


class SparseInfo(NamedTuple):
    """A shape, and what is known of the order of the indices."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False
