"""Objects indexed to make indices and grids: ix_, s_, index_exp, mgrid, ogrid, r_, c_."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import lax
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.conversion import asarray
from gradix.numpy.creation import meshgrid
from gradix.numpy.joining import concatenate
from gradix.numpy.promotion import as_operand, convert, promote_dtypes
from gradix.numpy.ranges import arange, linspace
from gradix.numpy.shapes import expand_dims, moveaxis


def ix_(*args) -> tuple:
    """Rows of integers shaped so that together they index every combination of them.

    Raises:
        ValueError: an argument is no vector.
        NotImplementedError: an argument is boolean.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(9).reshape(3, 3)
        >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
        Array([[1, 2],
               [7, 8]], dtype=int32)
    """
    out = []
    for i, a in enumerate(args):
        x = as_operand("ix_", a, i)
        if x.aval.ndim != 1:
            raise ValueError(
                f"Arguments to gradix.numpy.ix_ must be 1-dimensional, got shape {x.aval.shape}"
            )
        if x.aval.dtype == bool:
            raise NotImplementedError(
                "Boolean arguments to gradix.numpy.ix_ are not implemented. Use "
                "jnp.flatnonzero(mask)."
            )
        if not x.aval.size:
            x = convert(x, dtypes.python_scalar_dtype(int))  # as NumPy: [] holds no floats
        shape = [1] * len(args)
        shape[i] = x.aval.size
        out.append(lax.reshape(x, tuple(shape)))
    return tuple(out)


class IndexExpression:
    """Gives back what it is indexed with.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.s_[1:3, ...]
        (slice(1, 3, None), Ellipsis)
    """

    def __init__(self, always_tuple: bool):
        self._always_tuple = always_tuple

    def __getitem__(self, index) -> Any:
        return (index,) if self._always_tuple and not isinstance(index, tuple) else index


def _line(s: slice) -> Array:
    """The numbers of a slice: `start:stop:step`, or with an imaginary step so many points with both ends."""
    start = 0 if s.start is None else s.start
    if isinstance(s.step, complex):
        return linspace(start, s.stop, int(abs(s.step)))
    if s.stop is None:
        raise ValueError(f"a slice of a grid needs its stop, got {s}.")
    return arange(start, s.stop, 1 if s.step is None else s.step)


class Grid:
    """Grids of coordinates: indexed with slices, dense (`mgrid`) or open (`ogrid`).

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.mgrid[0:2, 0:2]
        Array([[[0, 0],
                [1, 1]],
        <BLANKLINE>
               [[0, 1],
                [0, 1]]], dtype=int32)
    """

    def __init__(self, is_open: bool):
        self._is_open = is_open

    def __getitem__(self, index) -> Any:
        if isinstance(index, slice):
            return _line(index)
        lines = promote_dtypes("mgrid", *[_line(s) for s in index]) if index else []
        grids = meshgrid(*lines, indexing="ij", sparse=self._is_open)
        if self._is_open:
            return list(grids)
        return lax.stack(list(grids), 0) if lines else asarray(np.zeros((0,), np.int32))


class Concatenator:
    """Arrays, numbers and slices put one after the other by indexing; a leading string `'axis,ndim,at'` sets how.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.r_[1:4, 0]
        Array([1, 2, 3, 0], dtype=int32)
    """

    def __init__(self, axis: int, ndmin: int, at: int):
        self._axis, self._ndmin, self._at = axis, ndmin, at

    def __getitem__(self, index):
        items = list(index) if isinstance(index, tuple) else [index]
        axis, ndmin, at, as_row = self._axis, self._ndmin, self._at, None
        if items and isinstance(items[0], str):
            axis, ndmin, at, as_row = self._directive(items.pop(0))
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError("string directive must be placed at the beginning")
            x = _line(item) if isinstance(item, slice) else asarray(item)
            parts.append(_raised(x if x.aval.ndim else expand_dims(x, 0), ndmin, at))
        out = concatenate(parts, axis)
        if as_row is None:
            return out
        return out if out.aval.ndim > 1 else expand_dims(out, 0 if as_row else 1)

    def _directive(self, text: str):
        if text in ("r", "c"):
            return -1, 1, -1, text == "r"
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(
                f"could not understand directive {text!r}: give 'axis', 'axis,ndim', 'axis,ndim,at', 'r' "
                "or 'c'."
            ) from None
        axis, ndmin, at = [*numbers, *(self._axis, self._ndmin, -1)[len(numbers) :]][:3]
        return axis, ndmin, at, None


def _raised(x, ndmin: int, at: int):
    """`x` with axes of size 1, its own beginning at the axis `at` (counted as r_ does)."""
    missing = ndmin - x.aval.ndim
    if missing <= 0:
        return x
    x = expand_dims(x, tuple(range(missing)))
    start = at + missing + 1 if at < 0 else at
    start = min(max(start, 0), missing)
    own = x.aval.ndim - missing
    return moveaxis(x, tuple(range(missing, missing + own)), tuple(range(start, start + own)))


s_, index_exp = IndexExpression(False), IndexExpression(True)
mgrid, ogrid = Grid(False), Grid(True)
r_, c_ = Concatenator(0, 1, -1), Concatenator(-1, 2, 0)
