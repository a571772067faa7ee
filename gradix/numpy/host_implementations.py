"""Whole functions in NumPy's own words: host rules of functions whose programs take many operations.

Each rule takes its function's arguments, types in place of arrays, and returns what computes the
result from NumPy arrays, or None where the program serves (`gradix._api.jit.replay.replayed`).
Integers and booleans are those of the program bit for bit, with its zeros, infinities and NaN;
floats differ by a few units in the last place at most.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
INEXACT = FLOATS | frozenset(map(np.dtype, ("complex64", "complex128")))
_WHOLE = frozenset(
    map(np.dtype, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))
)
_INT = np.dtype("int32")
_SIDES = ("left", "right")
# elements of a row that `searchsorted` counts one by one, in order or not
COUNTED = 16
_ONES = np.ones(COUNTED, np.uint8)
_SIGNED = frozenset(d for d in _WHOLE if d.kind == "i")


def alike(kinds: frozenset, *operands) -> bool:
    """Whether all are arrays of one dtype among `kinds`."""
    dtype = getattr(operands[0], "dtype", None)
    return dtype in kinds and all(getattr(x, "dtype", None) is dtype for x in operands)


def ufunc(function: np.ufunc, kinds: frozenset = FLOATS) -> Callable:
    """The rule of a function that is a ufunc of NumPy for real arrays of one dtype."""
    return lambda *operands: function if alike(kinds, *operands) else None


hypot, logaddexp, copysign = ufunc(np.hypot), ufunc(np.logaddexp), ufunc(np.copysign)
signbit, trunc, frexp = ufunc(np.signbit), ufunc(np.trunc), ufunc(np.frexp)


def sinc(x):
    return _sinc if alike(FLOATS, x) else None


def _sinc(x):
    angle = np.multiply(x, x.dtype.type(np.pi))
    found = np.divide(np.sin(angle), angle)
    return (
        found if np.count_nonzero(x) == x.size else np.where(np.equal(x, 0), x.dtype.type(1), found)
    )


# -- quotients -------------------------------------------------------------------------------------


def floor_divide(x, y):
    return _floor_quotient if alike(FLOATS, x, y) else None


def remainder(x, y):
    return _remainder if alike(FLOATS, x, y) else None


def divmod(x, y):
    return _divmod if alike(FLOATS, x, y) else None


def _floor_quotient(x, y):
    return _with_zeros_like(np.floor_divide(x, y), y)  # NumPy's have the sign of the quotient


def _remainder(x, y):
    return _with_zeros_like(np.remainder(x, y), x)  # NumPy's have the sign of the divisor


def _divmod(x, y):
    q, r = np.divmod(x, y)
    return _with_zeros_like(q, y), _with_zeros_like(r, x)


def _with_zeros_like(x, signs):
    """`x`, a result nobody else has, with the signs of others at its zeros."""
    if np.count_nonzero(x) == x.size:
        return x
    out = x if type(x) is np.ndarray else np.array(x)  # a number, of arrays without axes
    np.putmask(out, np.logical_not(out), np.copysign(out, signs))
    return out


def gcd(x, y):
    return _divisor if alike(_WHOLE, x, y) else None


def lcm(x, y):
    return _multiple if alike(_WHOLE, x, y) else None


def _divisor(x, y):
    least = np.iinfo(x.dtype).min  # its size is no number of its dtype
    if least and (np.count_nonzero(np.equal(x, least)) or np.count_nonzero(np.equal(y, least))):
        return NotImplemented
    return np.gcd(x, y)


def _multiple(x, y):
    divisor = _divisor(x, y)
    if divisor is NotImplemented:
        return divisor
    return np.multiply(np.absolute(x), np.floor_divide(np.absolute(y), np.maximum(divisor, 1)))


# -- comparisons, with few NaN and infinities ------------------------------------------------------


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where `b` is finite, elements that are equal are near, since no tolerance is negative."""
    if (
        not alike(FLOATS, a, b)
        or equal_nan is not False
        or not all(type(t) in (int, float) for t in (rtol, atol))
    ):
        return None
    part, least = np.asarray(rtol, a.dtype), np.asarray(atol, a.dtype)
    if not (0 <= part < math.inf and 0 <= least < math.inf):
        return None

    def close(x, y):
        distance = np.abs(np.subtract(x, y))
        near = np.less_equal(distance, np.add(np.multiply(np.abs(y), part), least))
        finite = np.isfinite(y)
        return (
            near
            if np.count_nonzero(finite) == y.size
            else np.logical_or(np.equal(x, y), np.logical_and(near, finite))
        )

    return close


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    close = isclose(a, b, rtol, atol, equal_nan)
    if close is None:
        return None

    def all_close(x, y):
        found = close(x, y)
        return np.asarray(np.count_nonzero(found) == found.size)

    return all_close


# -- sums of products ------------------------------------------------------------------------------


def _slides(a, v, precision, preferred_element_type) -> bool:
    return (
        alike(INEXACT, a, v) and a.size > 0 < v.size and precision is None is preferred_element_type
    )


def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    if not _slides(a, v, precision, preferred_element_type):
        return None
    return lambda x, y: np.convolve(x, y, mode)


def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    if not _slides(a, v, precision, preferred_element_type):
        return None
    return lambda x, y: np.correlate(x, y, mode)


def polymul(a1, a2, *, trim_leading_zeros=False):
    return None if trim_leading_zeros else convolve(a1, a2)


def polyval(p, x, *, unroll=16):
    """Powers times coefficients; where that is no number, Horner's scheme may have one."""
    if not alike(FLOATS, p, x) or len(p.shape) != 1 or not p.shape[0]:
        return None
    exponents = np.arange(p.shape[0] - 1, -1, -1, dtype=p.dtype)

    def sums(coefficients, x):
        found = np.power(x[..., None], exponents).dot(coefficients)
        return found if np.count_nonzero(np.isfinite(found)) == x.size else NotImplemented

    return sums


def poly(seq_of_zeros):
    """Of few real zeros, in Python's floats, where single precision cannot overflow either."""
    if (
        not alike(FLOATS, seq_of_zeros)
        or len(seq_of_zeros.shape) != 1
        or not 0 < seq_of_zeros.size <= 16
    ):
        return None
    dtype = seq_of_zeros.dtype
    limit = float(np.finfo(dtype).max) / 2

    expand = _expansion(seq_of_zeros.size)

    def coefficients(zeros):
        row = zeros.tolist()
        if not (-128 < min(row) <= max(row) < 128 or math.prod([1 + abs(z) for z in row]) < limit):
            return NotImplemented
        return np.array(expand(*row), dtype)

    return coefficients


@functools.cache
def _expansion(n: int) -> Callable:
    """Python for the coefficients of a product of n factors `x - z`, one factor after the other."""
    steps = [
        f"c{k} = {f'c{k}' if k <= i else ''} - z{i} * c{k - 1}"
        for i in range(n)
        for k in range(i + 1, 0, -1)
    ]
    names: dict[str, Any] = {}
    exec(
        f"def expand({', '.join([f'z{i}' for i in range(n)])}):\n    c0 = 1.0\n    "
        + "\n    ".join(steps)
        + f"\n    return {', '.join([f'c{k}' for k in range(n + 1)])}",
        names,
    )
    return names["expand"]


def packbits(a, axis=None, bitorder="big"):
    if not alike(_WHOLE | {np.dtype(bool)}, a) or not a.size or bitorder not in ("big", "little"):
        return None
    if not (axis is None or type(axis) is int and -len(a.shape) <= axis < len(a.shape)):
        return None
    return functools.partial(np.packbits, axis=axis, bitorder=bitorder)


def unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    """Of a row of angles."""
    is_period = type(period) is float and 0 < period < math.inf
    if not _is_row(p, axis) or axis is None or discont is not None or not is_period:
        return None
    number = p.dtype.type
    period, half, zero = (
        np.asarray(period, p.dtype),
        np.asarray(number(period) / number(2)),
        np.zeros((), p.dtype),
    )

    def unwrapped(x):
        rest = x[1:]
        steps = np.subtract(rest, x[:-1])
        small = np.less(np.abs(steps), half)
        if np.count_nonzero(small) == steps.size:
            # which makes -0.0 zero, as adding up does
            change = zero
        else:
            wrapped = np.subtract(np.remainder(np.add(steps, half), period), half)
            np.putmask(
                wrapped, np.logical_and(np.equal(wrapped, -half), np.greater(steps, zero)), half
            )
            change = np.subtract(wrapped, steps, wrapped)
            np.putmask(change, small, zero)
            change = np.add.accumulate(change)
        return np.concatenate((x[:1], np.add(rest, change)))

    return unwrapped


# -- elements by position and by order -------------------------------------------------------------


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None):
    """Of floats, where indices out of bounds give NaN: rows of one length, as many as there are rows of indices."""
    if (
        not alike(FLOATS, arr)
        or not alike(_SIGNED, indices)
        or mode is not None
        or fill_value is not None
    ):
        return None
    shape, other = arr.shape, indices.shape
    if (
        type(axis) is not int
        or len(shape) != len(other)
        or not -len(shape) <= axis < len(shape)
        or not shape[axis]
    ):
        return None
    axis %= len(shape)
    if any(n != m for d, (n, m) in enumerate(zip(shape, other)) if d != axis):
        return None
    if len(shape) == 1:
        return _taken
    before = [
        np.arange(n).reshape([-1 if i == d else 1 for i in range(len(shape))])
        for d, n in enumerate(shape)
    ]

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


def searchsorted(a, v, side="left", sorter=None, *, method="scan"):
    """In rows that are short enough to count their elements one by one."""
    is_row = alike(FLOATS, a, v) and len(a.shape) == 1 and 0 < a.shape[0] <= COUNTED
    if not is_row or sorter is not None or side not in _SIDES:
        return None
    return lambda row, x: _places(row, x, side)


def digitize(x, bins, right=False, *, method=None):
    if (
        not alike(FLOATS, x, bins)
        or method is not None
        or len(bins.shape) != 1
        or not 0 < bins.shape[0] <= COUNTED
    ):
        return None
    side = "left" if right else "right"

    def places(x, edges):
        if edges[-1] >= edges[0]:
            return _places(edges, x, side)
        found = _places(edges, x, side)
        return found if found is NotImplemented else np.subtract(_INT.type(edges.size), found)

    return places


def _places(row, x, side):
    """How many elements of `row` come before each `x`: also where they are not in order."""
    values = x if x.ndim == 1 else x.reshape(-1)
    squares = np.dot(row, row) + np.dot(values, values)
    if squares != squares:  # a NaN, which comes last
        return NotImplemented
    if (
        values.size > row.size
        and np.count_nonzero(np.less_equal(row[:-1], row[1:])) == row.size - 1
    ):
        return row.searchsorted(x, side).astype(_INT)
    found = (np.less if side == "left" else np.less_equal)(row[:, None], values)
    found = _ONES[: row.size].dot(found.view(np.uint8)).astype(_INT)
    return found if x.ndim == 1 else found.reshape(x.shape)


def partition(a, kth, axis=-1):
    return _parted(
        a,
        kth,
        axis,
        lambda x, order, place: x[np.concatenate((order[: place + 1], order[:place:-1]))],
    )


def argpartition(a, kth, axis=-1):
    def places(x, order, place):
        rest = np.ones(x.size, bool)
        low = order[: place + 1]
        rest[low] = False
        return np.concatenate((low, rest.nonzero()[0])).astype(_INT)

    return _parted(a, kth, axis, places)


def _parted(a, kth, axis, finish: Callable) -> Callable | None:
    """Of a row, by its order; that of zeros of both signs, and of NaN, is another."""
    is_row = alike(FLOATS, a) and len(a.shape) == 1 and type(axis) is int
    if not is_row or type(kth) is not int or not -a.size <= kth < a.size:
        return None
    place = kth % a.size

    def parts(x):
        order = x.argsort(kind="stable")
        if np.count_nonzero(x) != x.size or x[order[-1]] != x[order[-1]]:
            return NotImplemented
        return finish(x, order, place)

    return parts


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    return (
        None
        if out is not None or overwrite_input or keepdims
        else _quantile_of_all(a, 0.5, axis, "midpoint")
    )


def quantile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
):
    if out is not None or overwrite_input or keepdims or weights is not None:
        return None
    return _quantile_of_all(a, q, axis, method)


def percentile(a, q, *options, out_sharding=None, **named):
    return quantile(a, q / 100, *options, **named) if type(q) in (int, float) else None


def _quantile_of_all(a, q, axis, method) -> Callable | None:
    """The elements around one fraction of all, from the sorted row, mixed as the program does."""
    if (
        not alike(FLOATS, a)
        or type(q) is not float
        or q != q
        or not a.size
        or method not in ("linear", "midpoint")
    ):
        return None
    if axis is not None and not _is_row(a, axis):
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
        if row[-1] != row[-1]:  # NaN are sorted last
            return row[-1:].reshape(())
        return row[i] * rest + row[j] * share if linear else (row[i] + row[j]) * half

    return pick


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    return _extreme(np.fmax, a, axis, keepdims) if out is initial is where is None else None


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    return _extreme(np.fmin, a, axis, keepdims) if out is initial is where is None else None


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """Of a row."""
    if not _is_row(a, axis) or keepdims or not (dtype is out is where is None):
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
    """Of a row."""
    is_plain = not keepdims and dtype is out is where is mean is None
    if not _is_row(a, axis) or not is_plain or type(ddof) is not int or ddof < 0:
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


def _is_row(a, axis) -> bool:
    return (
        alike(FLOATS, a)
        and len(a.shape) == 1
        and a.size > 0
        and (axis is None or type(axis) is int and axis in (0, -1))
    )


def _extreme(function, a, axis, keepdims) -> Callable | None:
    if (
        not alike(FLOATS, a)
        or not a.size
        or not (axis is None or type(axis) is int and -len(a.shape) <= axis < len(a.shape))
    ):
        return None
    return functools.partial(function.reduce, axis=axis, keepdims=bool(keepdims))
