"""`Ragged`: rows of different lengths, as one buffer and the lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradix._api.boundary import Share, Value, values
from gradix._api.counted import processing, rows as _rows  # noqa: F401  (makes programs with counts possible)
from gradix._base.lazy import lazy_module
from gradix._base.tree import GetAttrKey, register_pytree_with_keys
from gradix._core.array import as_array
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix._ops.counted import define, prefix
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim
from gradix._ops.indexing.slicing import slice_in_dim
from gradix._ops.joining import concatenate

_vmap: Any = lazy_module("gradix._api.mapping.vmap")
_showing: Any = lazy_module("gradix._api.showing")


class Ragged:
    """Rows of different lengths: row i is the first `counts[i]` elements of `buffer[i]`.

    With a number as `axes`, rows are squares, cubes and so on: as many first axes of row i have the size `counts[i]`.
    With a tuple, as `(0, 1)`, each of these axes of row i has a size of its own, `counts[i, 0]` and `counts[i, 1]`.

    `vmap` maps over the rows, each with its own length, and returns a `Ragged` where the size of a
    result differs among the examples. The elements of the buffer past a row are arbitrary and do
    not count. It is a pytree of its two arrays, so that it passes through `jit` and the other
    transformations; `tree.map` maps both.

    Args:
        buffer: an array with an axis of rows, an axis of elements, and further axes that all
            elements have.
        counts: the lengths of the rows, a vector of integers; or a matrix with a column for each of `axes`.
        axes: the number of first axes of a row that have its length; or a tuple of axes that have sizes of their own.

    Attributes:
        buffer: the elements, of shape (rows, greatest length, ...).
        counts: the lengths.
        axes: the axes of a row that have these lengths, as a rule 1, the first alone.

    Raises:
        TypeError: the buffer or the counts are no array, or the counts are no integers.
        ValueError: their shapes do not fit together, or a count is negative or beyond the buffer. Counts
            that a program computes are taken to lie between.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> r = gradix.Ragged.of([[1.0, 2.0], [], [3.0]])
        >>> r
        Ragged([[1.0, 2.0], [], [3.0]], dtype=float32)
        >>> gradix.vmap(jnp.sum)(r)
        Array([3., 0., 3.], dtype=float32)
        >>> gradix.vmap(lambda row: row[row > 1])(r)
        Ragged([[2.0], [], [3.0]], dtype=float32)
        >>> gradix.vmap(lambda row: jnp.outer(row, row))(r)
        Ragged([[[1.0, 2.0], [2.0, 4.0]], [], [[9.0]]], dtype=float32)
        >>> gradix.vmap(lambda row: jnp.stack([row, -row]))(r).counts
        Array([[2],
               [0],
               [1]], dtype=int32)
    """

    __slots__ = ("buffer", "counts", "axes")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, buffer, counts, axes: int | tuple[int, ...] = 1):
        self.buffer, self.counts = _rows.parts(buffer, counts, axes)
        self.axes = axes

    # -- making ------------------------------------------------------------------------------------

    @classmethod
    def of(cls, rows: Sequence, *, bound: int | None = None, dtype=None) -> Ragged:
        """Rows given as sequences or arrays, which may be traced and of sizes that values decide.

        Args:
            rows: the rows; their elements have one shape.
            bound: the greatest length that the buffer has room for; by default that of the longest
                row. Equal bounds give equal types, so that a compiled function is used again.
            dtype: the type of the elements; by default that of all rows together.

        Raises:
            TypeError: the elements are no numbers, or the rows are no sequences.
            ValueError: a row is longer than `bound`, or the elements differ in shape.
            OverflowError: an integer does not fit into its dtype.

        Example:
            >>> import gradix
            >>> gradix.Ragged.of([[1], [2, 3]], bound=4).buffer.shape
            (2, 4)
            >>> gradix.jit(lambda x: gradix.Ragged.of([x[x > 1], x]))(gradix.numpy.arange(3))
            Ragged([[2], [0, 1, 2]], dtype=int32)
        """
        return _made(*_rows.filled(rows, bound, dtype))

    @classmethod
    def from_offsets(cls, values, offsets, *, bound: int | None = None) -> Ragged:
        """Rows that follow each other in one array, as the lists of Arrow and Awkward Array do.

        Args:
            values: the elements of all rows.
            offsets: where each row begins, and the end of the last: one more than there are rows. They
                may be traced.
            bound: the greatest length that the buffer has room for; by default that of the longest row,
                or of all values where the offsets are traced.

        Raises:
            TypeError: the offsets are no integers.
            ValueError: the offsets decrease, or do not fit the values.

        Example:
            >>> import gradix
            >>> gradix.Ragged.from_offsets([5, 6, 7], [0, 2, 2, 3])
            Ragged([[5, 6], [], [7]], dtype=int32)
        """
        return _made(*_rows.cut(values, offsets, bound))

    # -- as a sequence of rows ---------------------------------------------------------------------

    def __len__(self) -> int:
        return self.counts.shape[0]

    def __getitem__(self, i):
        """Row i, or the rows of a slice or of an array of indices.

        Raises:
            TypeError: the index is none of these.
            IndexError: there is no such row.
        """
        if isinstance(i, (slice, list, np.ndarray)) or getattr(i, "ndim", 0):
            return _made(self.buffer[i], self.counts[i], self.axes)
        if not isinstance(i, Tracer):
            i = _rows.number(i, len(self))
        counts = dynamic_index_in_dim(self.counts, i, 0, False)
        one = _made(dynamic_index_in_dim(self.buffer, i, 0, False), counts, self.axes)
        return one.as_row() if one.is_row() else one

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def as_row(self):
        """The array that a buffer without an axis of rows and a single count stand for."""
        is_traced = isinstance(self.counts, Tracer)
        row = self.buffer
        _rows.check_values(row.shape, self.counts, self.axes)
        sizes: dict = {}
        for axis, j in self._own():
            if j not in sizes:
                n = self._sizes(j)
                sizes[j] = define(n, row.shape[axis]) if is_traced else int(n)
            row = prefix(row, sizes[j], axis) if is_traced else slice_in_dim(row, 0, sizes[j], axis=axis)
        return row

    def is_row(self) -> bool:
        """Whether this is one row, as a function gets it from `vmap`."""
        return not self._rank()

    def _rank(self) -> int:
        """The number of axes of rows: more than one where rows of rows come from `vmap` of `vmap`."""
        return self.counts.ndim - isinstance(self.axes, tuple)

    def _own(self) -> list:
        """The axes of a row that have sizes of their own, each with the column of its sizes; None if all have one."""
        if isinstance(self.axes, tuple):
            return [(axis, j) for j, axis in enumerate(self.axes)]
        return [(axis, None) for axis in range(self.axes)]

    def _check_values(self) -> None:
        _rows.check_values(self.buffer.shape, self.counts, self.axes)

    def _sizes(self, column: int | None):
        return self.counts if column is None else self.counts[..., column]

    def map(self, function: Callable, *args):
        """`vmap(function)(self, *args)`: a function of one row for all rows.

        Example:
            >>> import gradix
            >>> gradix.Ragged.of([[1, 2], [3]]).map(lambda row: row * 2)
            Ragged([[2, 4], [6]], dtype=int32)
        """
        return _vmap.vmap(function)(self, *args)

    def __jax_array__(self):
        return self.__array__()

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "rows of different lengths are no array. Write rows.values for the elements of all rows in one array, or "
            "rows.to_list() for an array of NumPy for each row."
        )

    def __getattr__(self, name: str):
        if name in _METHODS:
            raise AttributeError(
                f"rows of different lengths have no {name}: a Ragged is no array. Write rows.map(lambda row: "
                f"row.{name}()) for each row; rows.values is an array with the elements of all rows."
            )
        raise AttributeError(f"'Ragged' object has no attribute {name!r}")

    def _repr_html_(self) -> str:
        return _showing.ragged(self)

    # -- other forms -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple:
        """The number of rows, None for their lengths, and the sizes that all rows have."""
        own = [axis for axis, _ in self._own()]
        rank = self._rank()
        sizes = [None if i in own else n for i, n in enumerate(self.buffer.shape[rank:])]
        return (*self.buffer.shape[:rank], *sizes)

    @property
    def dtype(self):
        """The type of the elements."""
        return self.buffer.dtype

    def to_list(self) -> list:
        """The rows as NumPy arrays.

        Example:
            >>> import gradix
            >>> [r.tolist() for r in gradix.Ragged.of([[1], [2, 3]]).to_list()]
            [[1], [2, 3]]
        """
        if self._rank() > 1:
            return [rows.to_list() for rows in self]
        self._check_values()
        own, counts = dict(self._own()), np.asarray(self.counts)
        parts = [
            tuple([slice(n if own[i] is None else n[own[i]]) if i in own else slice(None) for i in range(max(own) + 1)])
            for n in counts
        ]
        return [row[part] for row, part in zip(np.asarray(self.buffer), parts)]

    def live(self):
        """Which elements of the buffer belong to a row: booleans of its axes of rows and of lengths.

        Example:
            >>> import gradix
            >>> gradix.Ragged.of([[1], [2, 3]]).live()
            Array([[ True, False],
                   [ True,  True]], dtype=bool)
        """
        self._check_values()
        own, rank = dict(self._own()), self._rank()
        last = max(own)
        out = None
        for axis in range(last + 1):
            at = as_array(np.arange(self.buffer.shape[rank + axis], dtype=np.int32))
            one = at < self._sizes(own[axis])[..., None] if axis in own else (at >= 0)[(None,) * rank]
            one = one.reshape(*one.shape[:rank], *[1] * axis, at.shape[0], *[1] * (last - axis))
            out = one if out is None else out & one
        return out

    @property
    def values(self):
        """The elements of all rows, one after another.

        Example:
            >>> import gradix
            >>> gradix.Ragged.of([[1], [2, 3]]).values
            Array([1, 2, 3], dtype=int32)
        """
        return self.buffer[self.live()]

    @property
    def offsets(self):
        """Where each row begins in `values`, and where the last one ends.

        Example:
            >>> import gradix
            >>> gradix.Ragged.of([[1], [2, 3]]).offsets
            Array([0, 1, 3], dtype=int32)
        """
        self._check_values()
        own, each = dict(self._own()), 1
        for axis in range(max(own) + 1):
            each = each * (self._sizes(own[axis]) if axis in own else self.buffer.shape[self._rank() + axis])
        ends = each.ravel().cumsum()
        return concatenate([as_array(np.zeros(1, ends.dtype)), ends], 0)

    @property
    def segment_ids(self):
        """The number of the row of each element in `values`, for `gradix.ops.segment_sum`.

        Example:
            >>> import gradix
            >>> gradix.Ragged.of([[1], [2, 3]]).segment_ids
            Array([0, 1, 1], dtype=int32)
        """
        live = self.live()
        shape = live.shape[: self._rank()]
        rows = as_array(np.arange(math.prod(shape), dtype=np.int32).reshape(*shape, *[1] * (live.ndim - len(shape))))
        return (rows + (live & False).astype(np.int32))[live]

    def __repr__(self) -> str:
        if (
            getattr(getattr(self.counts, "dtype", None), "kind", "") not in ("i", "u")
            or not hasattr(self.counts, "__array__")
            or isinstance(self.counts, Tracer)
            or isinstance(self.buffer, Tracer)
        ):
            return self._parts()
        try:
            return f"Ragged({_plain(self.to_list())}, dtype={self.dtype})"
        except ValueError:  # counts beyond the buffer are shown as they are
            return self._parts()

    def _parts(self) -> str:
        return f"Ragged({self.buffer}, {self.counts}{'' if self.axes == 1 else f', axes={self.axes}'})"

    def __eq__(self, other):
        if isinstance(other, (Ragged, Array, np.ndarray, np.generic, int, float, complex)):
            raise TypeError(
                "rows of different lengths are not compared by == and !=: a Ragged is no array. Write "
                "gradix.vmap(lambda a, b: ...)(rows, others) for each row, or compare rows.counts and rows.values."
            )
        return NotImplemented


def _made(buffer, counts, axes: int | tuple[int, ...] = 1) -> Ragged:
    """A `Ragged` of parts that are not looked at, as they fit together."""
    out = object.__new__(Ragged)
    out.buffer, out.counts, out.axes = buffer, counts, axes
    return out


def _unflatten(axes, children) -> Ragged:
    buffer, counts = children
    _rows.check_dtype(counts)
    return _made(buffer, counts, axes or 1)


def _plain(rows) -> list:
    """Rows, or rows of rows, as lists of numbers."""
    return [_plain(r) if isinstance(r, list) else r.tolist() for r in rows]


_METHODS = frozenset(
    "all any argmax argmin argsort astype clip cumprod cumsum dot max mean min nonzero prod ravel reshape round sort "
    "squeeze std sum take transpose var".split()
)


def _no_operator(name: str):
    def operator(self, *_):
        raise TypeError(
            f"rows of different lengths have no {name}: a Ragged is no array. Write rows.map(lambda row: 2 * row) or "
            "gradix.vmap(f)(rows, others) for what is done with each row; rows.values has the elements of all rows."
        )

    operator.__name__ = name
    return operator


for _name in (
    *("__neg__", "__abs__", "__invert__"),
    *[
        f"__{side}{name}__"
        for name in "add sub mul truediv floordiv mod pow matmul and or xor".split()
        for side in ("", "r")
    ],
    *("__lt__", "__le__", "__gt__", "__ge__", "__contains__"),
):
    setattr(Ragged, _name, _no_operator(_name))


def _share(r: Ragged) -> Share:
    """A derivative is taken in the elements; the gradient has rows of the same lengths."""
    return Share(
        [r.buffer], lambda parts: _made(parts[0], r.counts, r.axes), lambda cts: _made(cts[0], r.counts, r.axes)
    )


def _aux(r: Ragged) -> int | tuple | None:
    return None if r.axes == 1 else r.axes


values[Ragged] = Value(lambda r: r, _share, is_tree=True)
register_pytree_with_keys(
    Ragged,
    lambda r: (((GetAttrKey("buffer"), r.buffer), (GetAttrKey("counts"), r.counts)), _aux(r)),
    _unflatten,
    lambda r: ((r.buffer, r.counts), _aux(r)),
)
