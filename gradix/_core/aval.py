"""Abstract values: the type of an array, made once per (shape, dtype, weak_type)."""
from __future__ import annotations

from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

from gradix._core.scalar_types import dtype_name, short_name

_table: dict[tuple, ShapedArray] = {}
_limit = 1 << 16


class ShapedArray:
    """The type of an array: its shape, dtype and whether the dtype is weak.

    Equal types are one object, so they compare and hash by identity. A shape may hold symbolic dimensions, hence
    `size` is a product and never an `int()`.

    Example:
        >>> from gradix.core import ShapedArray
        >>> import numpy as np
        >>> ShapedArray((2, 3), np.dtype("float32"))
        ShapedArray(float32[2,3])
    """

    __slots__ = ("shape", "dtype", "weak_type", "ndim", "size", "__weakref__")
    sharding = None
    vma: frozenset = frozenset()

    shape: tuple
    dtype: Any
    weak_type: bool
    ndim: int
    size: Any

    def __new__(cls, shape, dtype, weak_type: bool = False, **_):
        if isinstance(dtype, (type, str)):
            dtype = np.dtype(dtype)
        return make_aval(tuple(shape), dtype, bool(weak_type))

    def update(self, *, shape=None, dtype=None, weak_type=None) -> ShapedArray:
        return make_aval(self.shape if shape is None else tuple(shape), self.dtype if dtype is None else dtype,
                         self.weak_type if weak_type is None else weak_type)

    def strip_weak_type(self) -> ShapedArray:
        return make_aval(self.shape, self.dtype, False) if self.weak_type else self

    def str_short(self, short_dtypes: bool = False) -> str:
        name = short_name(self.dtype) if short_dtypes else dtype_name(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return "~" + self.str_short() if self.weak_type else self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __reduce__(self):
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


def make_aval(shape: tuple, dtype, weak_type: bool = False) -> ShapedArray:
    """The one `ShapedArray` of these three; `shape` must be a tuple and `dtype` a dtype object."""
    key = (shape, dtype, weak_type)
    found = _table.get(key)
    if found is not None:
        return found
    aval = object.__new__(ShapedArray)
    aval.shape, aval.dtype, aval.weak_type = shape, dtype, weak_type
    aval.ndim, aval.size = len(shape), prod(shape)
    if len(_table) >= _limit:
        _drop_unused()
    return _table.setdefault(key, aval)


def _drop_unused() -> None:
    """Forget the types nothing else refers to; those in use stay, since each must be one object."""
    global _limit
    for key in list(_table):
        if getrefcount(_table[key]) <= 2:          # the table's reference and the argument's
            del _table[key]
    _limit = max(_limit, 2 * len(_table))


class AbstractToken:
    """The type of an ordering token."""

    __slots__ = ()
    shape, dtype, weak_type, ndim, size = (), np.dtype(bool), False, 0, 0

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"


def same_types(xs, ys) -> bool:
    """Whether two lists of avals agree in shape and dtype (weak types may differ)."""
    return len(xs) == len(ys) and all(x is y or (x.shape == y.shape and x.dtype == y.dtype) for x, y in zip(xs, ys))
