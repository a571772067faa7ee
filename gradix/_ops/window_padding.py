"""Padding of windows by name: SAME, SAME_LOWER and VALID as pairs of low and high padding."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix._core.dimensions.expression import larger


class PaddingType(enum.Enum):
    """How windows are placed: VALID windows lie inside.

    SAME gives the input's size over the stride.

    Example:
        >>> from gradix import lax
        >>> list(lax.PaddingType)
        [<PaddingType.VALID: 1>, <PaddingType.SAME: 2>, <PaddingType.SAME_LOWER: 3>]
        >>> lax.padtype_to_pads((5,), (3,), (1,), lax.PaddingType.SAME)
        [(1, 1)]
    """

    VALID = 1
    SAME = 2
    SAME_LOWER = 3


def padtype_to_pads(
    in_shape: Sequence[Any], window_shape: Sequence[Any], window_strides: Sequence[int], padding: str | PaddingType
) -> list[tuple[int, int]]:
    """The (low, high) padding of each axis, from the name of a padding.

    Args:
        in_shape: sizes of the axes the windows move along.
        window_shape: sizes of the window, dilation included.
        window_strides: the steps of the windows.
        padding: "VALID", "SAME" (the odd element goes behind) or "SAME_LOWER" (it goes before).

    Raises:
        RuntimeError: `padding` is another name.
        TypeError: `padding` is not a string.

    Example:
        >>> from gradix import lax
        >>> lax.padtype_to_pads((8, 8), (3, 3), (2, 2), "SAME")
        [(0, 1), (0, 1)]
    """
    if isinstance(padding, str):
        if padding.upper() not in PaddingType.__members__:
            raise RuntimeError(
                f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}. "
                "Or give one (low, high) pair per axis."
            )
        padding = PaddingType[padding.upper()]
    if padding is PaddingType.VALID:
        return [(0, 0)] * len(in_shape)
    if not isinstance(padding, PaddingType):
        raise TypeError(f"Unknown padding type: {padding}.")
    in_shape, window_shape, window_strides = map(_plain, (in_shape, window_shape, window_strides))
    totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(in_shape, window_shape, window_strides)]
    if padding is PaddingType.SAME:
        return [(t // 2, t - t // 2) for t in totals]
    return [(t - t // 2, t // 2) for t in totals]


def _plain(sizes) -> list:
    """The sizes with Python's integers in place of NumPy's."""
    return [int(n) if isinstance(n, np.integer) else n for n in sizes]


def dilated(n, dilation):
    """The extent of `n` elements that are `dilation` apart."""
    return n + larger(n - 1, 0) * (dilation - 1)


def window_count(n, window, stride):
    """How many windows fit into `n` elements."""
    return larger((n - window) // stride + 1, 0)


def per_axis(name: str, what: str, values, count: int) -> tuple:
    """A parameter with one integer per window axis; None is all ones."""
    if values is None:
        return (1,) * count
    values = tuple([v.__index__() if hasattr(v, "__index__") else v for v in values])
    if len(values) != count:
        raise ValueError(
            f"{name} window and {what} must have the same number of dimensions, but got {count} and "
            f"{len(values)}: {what}={values}."
        )
    if any(v < 1 for v in values):
        raise ValueError(f"{name} needs positive {what}, got {values}.")
    return values
