"""Objects that make indices and grids when indexed: s_, index_exp, mgrid, ogrid, r_, c_."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from gradix import lax
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.conversion import asarray
from gradix.numpy.creation import meshgrid
from gradix.numpy.joining import concatenate
from gradix.numpy.promotion import as_operand, convert
from gradix.numpy.ranges import arange, linspace
from gradix.numpy.shapes import expand_dims, moveaxis


def ix_(*args: Any) -> tuple:
    """Vectors of integers reshaped so that together they index all combinations of their elements.

    Returns:
        A tuple of arrays, one for each argument and of its dtype, with its size along its own axis
        and size 1 along the others.

    Raises:
        ValueError: an argument is not a vector.
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
            raise ValueError(f"ix_: the arguments must be vectors, got shape {x.aval.shape} for number {i}.")
        if x.aval.dtype == bool:
            raise NotImplementedError(
                f"ix_: argument {i} is boolean, for which the result's shape would depend on the "
                "values. Use jnp.flatnonzero(mask)."
            )
        if not x.aval.size:
            x = convert(x, dtypes.python_scalar_dtype(int))  # An empty list holds no floats.
        shape = [1] * len(args)
        shape[i] = x.aval.size
        out.append(lax.reshape(x, tuple(shape)))
    return tuple(out)


class IndexExpression:
    """Returns the index with which it is indexed.

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
    """The numbers of a slice `start:stop:step`; for a step of `n * 1j`, n points with both ends.

    As in `arange`, a single number is where the line stops: `3:` is `0:3`.
    """
    start = 0 if s.start is None else s.start
    if isinstance(s.step, complex):
        if s.stop is None:
            raise TypeError(
                f"A slice of a grid with a number of points must have a stop, got {s}. Write start:stop:points * 1j."
            )
        return linspace(start, s.stop, int(abs(s.step)))
    return arange(start, s.stop, 1 if s.step is None else s.step)


class Grid:
    """Grids of coordinates, made by indexing with slices: dense (`mgrid`) or open (`ogrid`).

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
        self.__module__ = "gradix.numpy"

    def __getitem__(self, index) -> Any:
        if isinstance(index, slice):
            return _line(index)
        lines = [_line(s) for s in index]
        if lines:
            dtype = reduce(dtypes.joined_dtype, [x.aval.dtype for x in lines])
            lines = [convert(x, dtype) for x in lines]
        grids = meshgrid(*lines, indexing="ij", sparse=self._is_open)
        if self._is_open:
            return list(grids)
        return lax.stack(list(grids), 0) if lines else asarray(np.zeros((0,), np.int32))


class Concatenator:
    """Arrays, numbers and slices that are joined into one array by indexing.

    A leading string `'axis,ndim,at'` gives the axis along which they are joined, the least number
    of axes of each, and where among these the axes of an array with fewer of them begin.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.r_[1:4, 0]
        Array([1, 2, 3, 0], dtype=int32)
    """

    def __init__(self, axis: int, ndmin: int, at: int):
        self._axis, self._ndmin, self._at = axis, ndmin, at
        self.__module__ = "gradix.numpy"

    def __getitem__(self, index):
        items = list(index) if isinstance(index, tuple) else [index]
        axis, ndmin, at, as_row = self._axis, self._ndmin, self._at, None
        if items and isinstance(items[0], str):
            axis, ndmin, at, as_row = self._directive(items.pop(0))
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError(f"A string such as {item!r} must come first in r_[...] and c_[...].")
            x = _line(item) if isinstance(item, slice) else asarray(item)
            parts.append(_raised(x if x.aval.ndim else expand_dims(x, 0), ndmin, at))
        out = concatenate(parts, axis)
        if as_row is None:
            return out
        return out if out.aval.ndim > 1 else expand_dims(out, 0 if as_row else 1)

    def _directive(self, text: str):
        if text in ("r", "c"):
            return self._axis, self._ndmin, self._at, text == "r"
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(
                "r_ and c_ take the strings 'axis', 'axis,ndim', 'axis,ndim,at', 'r' and 'c', with "
                f"integers for the words, got {text!r}."
            ) from None
        axis, ndmin, at = [*numbers, *(self._axis, self._ndmin, self._at)[len(numbers) :]][:3]
        return axis, ndmin, at, None


def _raised(x, ndmin: int, at: int):
    """`x` with axes of size 1 added up to `ndmin`; its own axes begin at axis `at`."""
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
