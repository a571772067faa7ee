"""Host rules of functions of rows: taking, searching and ordering elements, and statistics."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gradix.numpy.host_implementations import FLOATS, alike, is_row

_SIGNED = frozenset(map(np.dtype, ("int8", "int16", "int32", "int64")))
_INT = np.dtype("int32")
# -- elements by position and by order -------------------------------------------------------------


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None):
    """For floats and indices that have the same sizes along the other axes.

    Out of bounds, the program returns NaN, and this rule declines.
    """
    if not alike(FLOATS, arr) or not alike(_SIGNED, indices) or mode is not None or fill_value is not None:
        return None
    shape, other = arr.shape, indices.shape
    if type(axis) is not int or len(shape) != len(other) or not -len(shape) <= axis < len(shape) or not shape[axis]:
        return None
    axis %= len(shape)
    if any(n != m for d, (n, m) in enumerate(zip(shape, other)) if d != axis):
        return None
    if len(shape) == 1:
        return _taken
    before = [np.arange(n).reshape([-1 if i == d else 1 for i in range(len(shape))]) for d, n in enumerate(shape)]

    def rows(x, i):
        try:
            return x[(*before[:axis], i, *before[axis + 1 :])]
        except IndexError:
            return NotImplemented

    return rows


def _taken(x, i):
    try:
        return x.take(i)
    except IndexError:
        return NotImplemented


def partition(a, kth, axis=-1):
    return _parted(a, kth, axis, lambda x, order, place: x[np.concatenate((order[: place + 1], order[:place:-1]))])


def argpartition(a, kth, axis=-1):
    def places(x, order, place):
        rest = np.ones(x.size, bool)
        low = order[: place + 1]
        rest[low] = False
        return np.concatenate((low, rest.nonzero()[0])).astype(_INT)

    return _parted(a, kth, axis, places)


def _parted(a, kth, axis, finish: Callable) -> Callable | None:
    """For a row, by sorting; it declines for zeros and NaN, which NumPy orders differently."""
    of_row = alike(FLOATS, a) and len(a.shape) == 1 and type(axis) is int
    if not of_row or type(kth) is not int or not -a.size <= kth < a.size:
        return None
    place = kth % a.size

    def parts(x):
        order = x.argsort(kind="stable")
        if np.count_nonzero(x) != x.size or x[order[-1]] != x[order[-1]]:
            return NotImplemented
        return finish(x, order, place)

    return parts


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    return None if out is not None or overwrite_input or keepdims else _quantile_of_all(a, 0.5, axis, "midpoint")


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    if out is not None or overwrite_input or keepdims or weights is not None:
        return None
    return _quantile_of_all(a, q, axis, method)


def percentile(a, q, *options, out_sharding=None, **named):
    return quantile(a, q / 100, *options, **named) if type(q) in (int, float) else None


def _quantile_of_all(a, q, axis, method) -> Callable | None:
    """For one fraction of all elements; it mixes the elements around it as the program does."""
    if not alike(FLOATS, a) or type(q) is not float or q != q or not a.size or method not in ("linear", "midpoint"):
        return None
    if axis is not None and not is_row(a, axis):
        return None
    number, n = a.dtype.type, a.size
    place = number(q) * number(n - 1)
    low, high = np.clip(np.floor(place), 0, n - 1), np.clip(np.ceil(place), 0, n - 1)
    share = place - np.floor(place)
    i, j, rest, half = int(low), int(high), number(1) - share, number(0.5)
    linear = method == "linear"

    def pick(x):
        row = np.array(x).reshape(-1)
        row.sort(kind="stable")
        if row[-1] != row[-1]:  # NaN is sorted last.
            return row[-1:].reshape(())
        return row[i] * rest + row[j] * share if linear else (row[i] + row[j]) * half

    return pick


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """For a row."""
    if not is_row(a, axis) or keepdims or not (dtype is out is where is None):
        return None
    ones, number = np.ones(a.size, a.dtype), a.dtype.type
    size = number(a.size)

    def mean(x):
        total = np.dot(ones, x)
        if total == total:
            return total / size
        kept = np.equal(x, x)
        return np.dot(ones, np.where(kept, x, number(0))) / number(np.count_nonzero(kept))

    return mean


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """For a row."""
    is_plain = not keepdims and dtype is out is where is mean is None
    if not is_row(a, axis) or not is_plain or type(ddof) is not int or ddof < 0:
        return None
    ones, number = np.ones(a.size, a.dtype), a.dtype.type

    def variance(x):
        some, count = ones, x.size
        total = np.dot(ones, x)
        if total != total:
            x = x[np.equal(x, x)]
            count = x.size
            some = ones[:count]
            total = np.dot(some, x)
        if count <= ddof:
            return number(math.nan)
        distance = np.subtract(x, total / number(count))
        return np.dot(distance, distance) / number(count - ddof)

    return variance


def nanstd(*args, **options):
    variance = nanvar(*args, **options)
    if variance is None:
        return None
    number = args[0].dtype.type
    return lambda x: number(math.sqrt(variance(x)))
