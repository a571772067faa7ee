"""Host rules of whole functions: NumPy calls in place of programs of many operations.

Each rule takes its function's arguments, with types in place of arrays. It returns a function that
computes the result from NumPy arrays, or None if the program has to be run
(`gradix._api.jit.replay.replayed`). Such a function may return NotImplemented for the same reason.
Integers, booleans, zeros, infinities and NaN agree with those of the program bit for bit; other
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
_INTEGERS = frozenset(map(np.dtype, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")))


def alike(kinds: frozenset, *operands) -> bool:
    """Whether all operands are arrays of one dtype, which is one of `kinds`."""
    dtype = getattr(operands[0], "dtype", None)
    return dtype in kinds and all(getattr(x, "dtype", None) is dtype for x in operands)


def ufunc(function: np.ufunc, kinds: frozenset = FLOATS) -> Callable:
    """The rule of a function that equals a ufunc of NumPy for real arrays of one dtype."""
    return lambda *operands: function if alike(kinds, *operands) else None


hypot, logaddexp, frexp = ufunc(np.hypot), ufunc(np.logaddexp), ufunc(np.frexp)


def sinc(x):
    return _sinc if alike(FLOATS, x) else None


def _sinc(x):
    angle = np.multiply(x, x.dtype.type(np.pi))
    found = np.divide(np.sin(angle), angle)
    return found if np.count_nonzero(x) == x.size else np.where(np.equal(x, 0), x.dtype.type(1), found)


# -- quotients -------------------------------------------------------------------------------------


def floor_divide(x, y):
    return np.floor_divide if alike(FLOATS, x, y) else None


def remainder(x, y):
    return np.remainder if alike(FLOATS, x, y) else None


def divmod(x, y):
    return np.divmod if alike(FLOATS, x, y) else None


def gcd(x, y):
    return _divisor if alike(_INTEGERS, x, y) else None


def lcm(x, y):
    return _multiple if alike(_INTEGERS, x, y) else None


def _divisor(x, y):
    least = np.iinfo(x.dtype).min  # The dtype does not hold its absolute value.
    if least and (np.count_nonzero(np.equal(x, least)) or np.count_nonzero(np.equal(y, least))):
        return NotImplemented
    return np.gcd(x, y)


def _multiple(x, y):
    divisor = _divisor(x, y)
    if divisor is NotImplemented:
        return divisor
    return np.multiply(np.absolute(x), np.floor_divide(np.absolute(y), np.maximum(divisor, 1)))


# -- sums of products ------------------------------------------------------------------------------


def _slides(a, v, precision, preferred_element_type) -> bool:
    return alike(INEXACT, a, v) and a.size > 0 < v.size and precision is None is preferred_element_type


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
    """The sum of powers times coefficients; where it is not finite, Horner's scheme may be."""
    if not alike(FLOATS, p, x) or len(p.shape) != 1 or not p.shape[0]:
        return None
    exponents = np.arange(p.shape[0] - 1, -1, -1, dtype=p.dtype)

    def sums(coefficients, x):
        found = np.power(x[..., None], exponents).dot(coefficients)
        return found if np.count_nonzero(np.isfinite(found)) == x.size else NotImplemented

    return sums


def poly(seq_of_zeros):
    """For few real zeros, in Python's floats, if single precision cannot overflow either."""
    if not alike(FLOATS, seq_of_zeros) or len(seq_of_zeros.shape) != 1 or not 0 < seq_of_zeros.size <= 16:
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
    """A Python function of n zeros that multiplies the factors `x - z` and returns coefficients."""
    steps = [f"c{k} = {f'c{k}' if k <= i else ''} - z{i} * c{k - 1}" for i in range(n) for k in range(i + 1, 0, -1)]
    names: dict[str, Any] = {}
    exec(
        f"def expand({', '.join([f'z{i}' for i in range(n)])}):\n    c0 = 1.0\n    "
        + "\n    ".join(steps)
        + f"\n    return {', '.join([f'c{k}' for k in range(n + 1)])}",
        names,
    )
    return names["expand"]


def unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    """For a vector of angles, or its only axis."""
    is_period = type(period) is float and 0 < period < math.inf
    if not is_row(p, axis) or axis is None or discont is not None or not is_period:
        return None
    number = p.dtype.type
    period, half, zero = (np.asarray(period, p.dtype), np.asarray(number(period) / number(2)), np.zeros((), p.dtype))

    def unwrapped(x):
        rest = x[1:]
        steps = np.subtract(rest, x[:-1])
        small = np.less(np.abs(steps), half)
        if np.count_nonzero(small) == steps.size:
            change = zero  # Adding it turns -0.0 into 0.0, as the sums of the other branch do.
        else:
            wrapped = np.subtract(np.remainder(np.add(steps, half), period), half)
            np.putmask(wrapped, np.logical_and(np.equal(wrapped, -half), np.greater(steps, zero)), half)
            change = np.subtract(wrapped, steps, wrapped)
            np.putmask(change, small, zero)
            change = np.add.accumulate(change)
        return np.concatenate((x[:1], np.add(rest, change)))

    return unwrapped


def is_row(a, axis) -> bool:
    """Whether `a` is a non-empty real vector, and `axis` its axis or None."""
    return (
        alike(FLOATS, a)
        and len(a.shape) == 1
        and a.size > 0
        and (axis is None or type(axis) is int and axis in (0, -1))
    )
