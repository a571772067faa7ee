"""Sizes that values decide, as backward rules know them: in the types of residuals.

A rule may be run in another program than the one that it was traced for, where these sizes have
other names. Arrays of these sizes among the residuals say which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradix._core.dimensions.counts import counts_in
from gradix._ops.creation import full


def mark(size):
    """An array of this size."""
    return full((size,), 0, np.dtype("int8"))


def marks_of(avals: Sequence) -> tuple[list[tuple[int, int]], list]:
    """Where types have sizes that values decide, by type and axis, and an array of each size."""
    places = [(i, axis) for i, a in enumerate(avals) for axis, d in enumerate(a.shape) if counts_in(d)]
    return places, [mark(avals[i].shape[axis]) for i, axis in places]


def resized(avals: Sequence, places: Sequence[tuple[int, int]], marks: Sequence) -> list:
    """The types with the sizes of marks."""
    avals = list(avals)
    for (i, axis), m in zip(places, marks):
        shape = list(avals[i].shape)
        shape[axis] = m.aval.shape[0]
        avals[i] = avals[i].update(shape=tuple(shape))
    return avals
