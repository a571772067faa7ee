"""Whole functions in NumPy's own words: host rules of functions whose programs take many operations.

Each rule takes its function's arguments, types in place of arrays, and returns what computes the result from NumPy arrays, or
None where the program serves (`gradix._api.jit.replay.replayed`). Integers and booleans are those of the program bit for bit,
with its zeros, infinities and NaN; floats differ by a few units in the last place at most.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module

_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_INEXACT = _FLOATS | frozenset(map(np.dtype, ("complex64", "complex128")))
_WHOLE = frozenset(map(np.dtype, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")))
_INT = np.dtype("int32")
_SIDES = ("left", "right")
COUNTED = 16                # elements of a row that `searchsorted` counts one by one, in order or not
_ONES = np.ones(COUNTED, np.uint8)
_SIGNED = frozenset(d for d in _WHOLE if d.kind == "i")
_linalg: Any = getattr(np.linalg, "_umath_linalg", None)         # its functions of stacks, without the checks around them
_lapack, _LETTERS = lazy_module("scipy.linalg.lapack"), {"f": "s", "d": "d", "F": "c", "D": "z"}


def _alike(kinds: frozenset, *operands) -> bool:
    """Whether all are arrays of one dtype among `kinds`."""
    dtype = getattr(operands[0], "dtype", None)
    return dtype in kinds and all(getattr(x, "dtype", None) is dtype for x in operands)


def ufunc(function: np.ufunc, kinds: frozenset = _FLOATS) -> Callable:
    """The rule of a function that is a ufunc of NumPy for real arrays of one dtype."""
    return lambda *operands: function if _alike(kinds, *operands) else None


hypot, logaddexp, copysign = ufunc(np.hypot), ufunc(np.logaddexp), ufunc(np.copysign)
signbit, trunc, frexp = ufunc(np.signbit), ufunc(np.trunc), ufunc(np.frexp)


def sinc(x):
    return _sinc if _alike(_FLOATS, x) else None


def _sinc(x):
    angle = np.multiply(x, x.dtype.type(np.pi))
    found = np.divide(np.sin(angle), angle)
    return found if np.count_nonzero(x) == x.size else np.where(np.equal(x, 0), x.dtype.type(1), found)


# -- quotients -----------------------------------------------------------------------------------------------------

def floor_divide(x, y):
    return _floor_quotient if _alike(_FLOATS, x, y) else None


def remainder(x, y):
    return _remainder if _alike(_FLOATS, x, y) else None


def divmod(x, y):
    return _divmod if _alike(_FLOATS, x, y) else None


def _floor_quotient(x, y):
    return _with_zeros_like(np.floor_divide(x, y), y)       # NumPy's have the sign of the quotient


def _remainder(x, y):
    return _with_zeros_like(np.remainder(x, y), x)          # NumPy's have the sign of the divisor


def _divmod(x, y):
    q, r = np.divmod(x, y)
    return _with_zeros_like(q, y), _with_zeros_like(r, x)


def _with_zeros_like(x, signs):
    """`x` with the signs of others at its zeros."""
    if np.count_nonzero(x) == x.size:
        return x
    out = np.array(x)                                       # a number, of arrays without axes
    np.putmask(out, np.equal(x, 0), np.copysign(x, signs))
    return out


def gcd(x, y):
    return _divisor if _alike(_WHOLE, x, y) else None


def lcm(x, y):
    return _multiple if _alike(_WHOLE, x, y) else None


def _divisor(x, y):
    least = np.iinfo(x.dtype).min                           # its size is no number of its dtype
    if least and (np.count_nonzero(np.equal(x, least)) or np.count_nonzero(np.equal(y, least))):
        return NotImplemented
    return np.gcd(x, y)


def _multiple(x, y):
    divisor = _divisor(x, y)
    if divisor is NotImplemented:
        return divisor
    return np.multiply(np.absolute(x), np.floor_divide(np.absolute(y), np.maximum(divisor, 1)))


# -- sums of products ----------------------------------------------------------------------------------------------

def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    if not _alike(_INEXACT, a, v) or precision is not None or preferred_element_type is not None:
        return None
    return lambda x, y: np.convolve(x, y, mode)


def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    if not _alike(_INEXACT, a, v) or precision is not None or preferred_element_type is not None:
        return None
    return lambda x, y: np.correlate(x, y, mode)


def polymul(a1, a2, *, trim_leading_zeros=False):
    return None if trim_leading_zeros else convolve(a1, a2)


def polyval(p, x, *, unroll=16):
    """Powers times coefficients; where that is no number, Horner's scheme may have one."""
    if not _alike(_FLOATS, p, x) or len(p.shape) != 1 or not p.shape[0]:
        return None
    exponents = np.arange(p.shape[0] - 1, -1, -1, dtype=p.dtype)

    def sums(coefficients, x):
        found = np.power(x[..., None], exponents).dot(coefficients)
        return found if np.count_nonzero(np.isfinite(found)) == x.size else NotImplemented
    return sums


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Of one matrix."""
    if not _alike(_FLOATS, a) or len(a.shape) != 2 or (axis1, axis2) != (0, 1) or type(offset) is not int or dtype is not None:
        return None
    ones = np.ones(max(0, min(a.shape[0] + min(offset, 0), a.shape[1] - max(offset, 0))), a.dtype)
    return lambda x: np.dot(ones, x.diagonal(offset))


def packbits(a, axis=None, bitorder="big"):
    if not _alike(_WHOLE | {np.dtype(bool)}, a) or not a.size or bitorder not in ("big", "little"):
        return None
    if not (axis is None or type(axis) is int and -len(a.shape) <= axis < len(a.shape)):
        return None
    return functools.partial(np.packbits, axis=axis, bitorder=bitorder)


# -- elements by position and by order -----------------------------------------------------------------------------

def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None):
    """Of floats, where indices out of bounds give NaN: rows of one length, as many as there are rows of indices."""
    if not _alike(_FLOATS, arr) or not _alike(_SIGNED, indices) or mode is not None or fill_value is not None:
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
            return x[(*before[:axis], i, *before[axis + 1:])]
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
    if not _alike(_FLOATS, a, v) or sorter is not None or len(a.shape) != 1 or not 0 < a.shape[0] <= COUNTED or side not in _SIDES:
        return None
    return lambda row, x: _places(row, x, side)


def digitize(x, bins, right=False, *, method=None):
    if not _alike(_FLOATS, x, bins) or method is not None or len(bins.shape) != 1 or not 0 < bins.shape[0] <= COUNTED:
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
    values = x.reshape(-1)
    squares = np.dot(row, row) + np.dot(values, values)
    if squares != squares:                                  # a NaN, which comes last
        return NotImplemented
    if np.count_nonzero(np.less_equal(row[:-1], row[1:])) == row.size - 1:
        return row.searchsorted(x, side).astype(_INT)
    found = (np.less if side == "left" else np.less_equal)(row.reshape(-1, 1), values)
    return _ONES[:row.size].dot(found.view(np.uint8)).astype(_INT).reshape(x.shape)


def partition(a, kth, axis=-1):
    return _parted(a, kth, axis, lambda x, order, place: x[np.concatenate((order[:place + 1], order[:place:-1]))])


def argpartition(a, kth, axis=-1):
    def places(x, order, place):
        rest = np.ones(x.size, bool)
        low = order[:place + 1]
        rest[low] = False
        return np.concatenate((low, rest.nonzero()[0])).astype(_INT)
    return _parted(a, kth, axis, places)


def _parted(a, kth, axis, finish: Callable) -> Callable | None:
    """Of a row, by its order; that of zeros of both signs, and of NaN, is another."""
    if not _alike(_FLOATS, a) or len(a.shape) != 1 or type(kth) is not int or type(axis) is not int or not -a.size <= kth < a.size:
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
    """The elements around one fraction of all, from the sorted row, mixed as the program does."""
    if not _alike(_FLOATS, a) or type(q) is not float or q != q or not a.size or method not in ("linear", "midpoint"):
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
        if row[-1] != row[-1]:                              # NaN are sorted last
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

    def mean(x):
        kept = np.equal(x, x)
        count = np.count_nonzero(kept)
        return np.divide(np.dot(ones, x if count == x.size else np.where(kept, x, number(0))), number(count))
    return mean


def _is_row(a, axis) -> bool:
    return _alike(_FLOATS, a) and len(a.shape) == 1 and a.size > 0 and (axis is None or type(axis) is int and axis in (0, -1))


def _extreme(function, a, axis, keepdims) -> Callable | None:
    if not _alike(_FLOATS, a) or not a.size or not (axis is None or type(axis) is int and -len(a.shape) <= axis < len(a.shape)):
        return None
    return functools.partial(function.reduce, axis=axis, keepdims=bool(keepdims))


# -- matrices ------------------------------------------------------------------------------------------------------

def _square(a, least: int = 1) -> bool:
    return _linalg is not None and _alike(_INEXACT, a) and len(a.shape) >= 2 and a.shape[-1] == a.shape[-2] >= least and a.size > 0


def det(a):
    """Of a matrix for which there is no formula. NumPy's own is the exponential of a sum of logarithms."""
    if not _square(a, 4) or len(a.shape) != 2:
        return None
    factor, places = getattr(_lapack, f"{_LETTERS[a.dtype.char]}getrf"), np.arange(a.shape[0])

    def product(x):
        factors, pivots, _ = factor(x)
        found = np.multiply.reduce(factors.diagonal())
        return -found if np.count_nonzero(np.not_equal(pivots, places)) & 1 else found
    return product


def slogdet(a, *, method=None):
    return _linalg.slogdet if _square(a) and method in (None, "lu") else None


def inv(a):
    return _inverse if _square(a) else None


def _inverse(x):
    found = _linalg.inv(x)
    return found if np.count_nonzero(np.equal(found, found)) == found.size else NotImplemented      # singular


def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """Of symmetrized matrices, without the vectors."""
    if not _square(a) or not symmetrize_input or UPLO not in (None, "L", "U"):
        return None
    half = a.dtype.type(0.5)
    return lambda x: _linalg.eigvalsh_lo(np.multiply(np.add(x, np.swapaxes(x, -1, -2).conj()), half))
