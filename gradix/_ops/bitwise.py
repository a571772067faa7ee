"""Bits: not, and, or, xor, shifts, population_count, clz, mulhi."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import BOOL, INTEGER, NARROW_INTEGER, SIGNED, itemsize_bits
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.families import Elementwise, NonDifferentiable
from gradix._ops.operands import operands

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class _Bits(NonDifferentiable, Elementwise):
    """An operation on bits. Its results are discrete, so they have no tangents."""


def _bits_of(x) -> int:
    return ml_dtypes.iinfo(x.dtype).bits


# In NumPy and XLA, a shift by at least the width leaves zeros, or copies of the sign bit. Negative
# distances are read as unsigned numbers, and so are large.
_SIGNED_WORD = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
_PLAIN_WORD = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def _host_shift_left(x, by):
    return np.left_shift(x, by).astype(x.dtype, copy=False)


def _host_shift_right_arithmetic(x, by):
    if x.dtype in NARROW_INTEGER:
        return _narrow_shift_right_arithmetic(x, by)
    # XLA treats the top bit as a sign for unsigned types too.
    word = _SIGNED_WORD[x.dtype.itemsize]
    return np.right_shift(x.view(word), by.view(word)).view(x.dtype)


def _narrow_shift_right_arithmetic(x, by):
    """Shift numbers of fewer than 8 bits arithmetically, by extending their sign to a byte."""
    bits = itemsize_bits(x.dtype)
    mask, spare = np.uint8(2**bits - 1), np.uint8(8 - bits)
    signed = np.right_shift(np.left_shift(x.astype(np.uint8), spare).view(np.int8), np.int8(spare))
    moved = np.right_shift(signed, np.bitwise_and(by.astype(np.uint8), mask).view(np.int8))
    return moved.astype(x.dtype) if x.dtype in SIGNED else np.bitwise_and(moved.view(np.uint8), mask).astype(x.dtype)


def _host_shift_right_logical(x, by):
    word = _PLAIN_WORD[x.dtype.itemsize]
    return np.right_shift(x.view(word), by.view(word)).view(x.dtype)


def _own_bits(x):
    """The bits of integers as unsigned integers; narrow types use the low bits of a byte."""
    bits = x.view(np.dtype(f"u{x.dtype.itemsize}"))
    return bits & np.uint8((1 << _bits_of(x)) - 1) if _bits_of(x) < 8 else bits


def _host_population_count(x):
    return np.bitwise_count(_own_bits(x)).astype(x.dtype)


def _host_clz(x):
    v = _own_bits(x).astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):  # smear the highest bit downward, then count
        v = v | (v >> np.uint64(shift))
    return (_bits_of(x) - np.bitwise_count(v).astype(np.int64)).astype(x.dtype)


def _host_mulhi(x, y):
    bits = _bits_of(x)
    if bits == 64:  # NumPy has no integers wider than 64 bits
        product = x.astype(object) * y.astype(object)
    else:
        wide = np.uint64 if x.dtype.kind == "u" else np.int64
        product = x.astype(wide) * y.astype(wide)
    return np.asarray(product >> bits).astype(x.dtype)


def _emit_mulhi(em, out, x, y):
    """XLA's operation, or where XLA cannot divide that over devices, products of 64 bits."""
    if not em.is_divided:
        return em.op("chlo.mulhi", out, x, y)
    bits, is_signed = itemsize_bits(out.dtype), out.dtype in SIGNED
    wide = make_aval(out.shape, np.dtype("int64" if is_signed else "uint64"))
    shift = "shift_right_arithmetic" if is_signed else "shift_right_logical"
    do = lambda name, x, y: em.op(name, wide, x, y)
    number = lambda n: em.constant(n, wide)
    x, y = em.convert(x, wide.dtype), em.convert(y, wide.dtype)
    if bits < 64:
        return em.convert(do(shift, do("multiply", x, y), number(bits)), out.dtype)
    # Hacker's Delight, 8-2: by halves, of which the lower ones are unsigned.
    half, low = number(32), number((1 << 32) - 1)
    (x0, x1), (y0, y1) = [(do("and", v, low), do(shift, v, half)) for v in (x, y)]
    carried = do("shift_right_logical", do("multiply", x0, y0), half)
    middle = do("add", do("multiply", x1, y0), carried)
    rest = do("add", do("multiply", x0, y1), do("and", middle, low))
    high = do("add", do("multiply", x1, y1), do(shift, middle, half))
    return do("add", high, do(shift, rest, half))


def _lower_clz(em, out, x):
    """Leading zeros of unsigned numbers, since of negative constants XLA counts them in words of 64 bits."""
    if x.dtype not in SIGNED:
        return em.op("count_leading_zeros", out, x)
    plain = make_aval(out.shape, _PLAIN_WORD[out.dtype.itemsize])
    return em.op("bitcast_convert", out, em.op("count_leading_zeros", plain, em.op("bitcast_convert", plain, x)))


_BITS = BOOL | INTEGER
not_p = _Bits("not", np.invert, hlo="not", dtypes=_BITS)
and_p = _Bits("and", np.bitwise_and, hlo="and", dtypes=_BITS)
or_p = _Bits("or", np.bitwise_or, hlo="or", dtypes=_BITS)
xor_p = _Bits("xor", np.bitwise_xor, hlo="xor", dtypes=_BITS)
shift_left_p = _Bits("shift_left", _host_shift_left, hlo="shift_left", dtypes=INTEGER)
shift_right_arithmetic_p = _Bits(
    "shift_right_arithmetic", _host_shift_right_arithmetic, hlo="shift_right_arithmetic", dtypes=INTEGER
)
shift_right_logical_p = _Bits(
    "shift_right_logical", _host_shift_right_logical, hlo="shift_right_logical", dtypes=INTEGER
)
population_count_p = _Bits("population_count", _host_population_count, hlo="popcnt", dtypes=INTEGER)
clz_p = _Bits("clz", _host_clz, hlo=_lower_clz, dtypes=INTEGER)

mulhi_p = _Bits("mulhi", _host_mulhi, hlo=_emit_mulhi, dtypes=INTEGER)


def bitwise_not(x: ArrayLike) -> Array:
    """The bits of `x` flipped; for booleans, its negation.

    Example:
        >>> from gradix import lax
        >>> lax.bitwise_not(0)
        Array(-1, dtype=int32, weak_type=True)
    """
    return bind(not_p, operands("bitwise_not", x), {})


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in both.

    Example:
        >>> from gradix import lax
        >>> lax.bitwise_and(6, 3)
        Array(2, dtype=int32, weak_type=True)
    """
    return bind(and_p, operands("bitwise_and", x, y), {})


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in either.

    Example:
        >>> from gradix import lax
        >>> lax.bitwise_or(6, 3)
        Array(7, dtype=int32, weak_type=True)
    """
    return bind(or_p, operands("bitwise_or", x, y), {})


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in one of both.

    Example:
        >>> from gradix import lax
        >>> lax.bitwise_xor(6, 3)
        Array(5, dtype=int32, weak_type=True)
    """
    return bind(xor_p, operands("bitwise_xor", x, y), {})


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved up by `y`; 0 when `y` reaches the width.

    Example:
        >>> from gradix import lax
        >>> lax.shift_left(1, 4)
        Array(16, dtype=int32, weak_type=True)
    """
    return bind(shift_left_p, operands("shift_left", x, y), {})


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved down by `y`, the sign bit repeated.

    Example:
        >>> from gradix import lax
        >>> lax.shift_right_arithmetic(-8, 1)
        Array(-4, dtype=int32, weak_type=True)
    """
    return bind(shift_right_arithmetic_p, operands("shift_right_arithmetic", x, y), {})


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved down by `y`, zeros entering.

    Example:
        >>> from gradix import lax
        >>> lax.shift_right_logical(-1, 28)
        Array(15, dtype=int32, weak_type=True)
    """
    return bind(shift_right_logical_p, operands("shift_right_logical", x, y), {})


def population_count(x: ArrayLike) -> Array:
    """How many bits of `x` are set.

    Example:
        >>> from gradix import lax
        >>> lax.population_count(7)
        Array(3, dtype=int32, weak_type=True)
    """
    return bind(population_count_p, operands("population_count", x), {})


def clz(x: ArrayLike) -> Array:
    """How many of the highest bits of `x` are zero.

    Example:
        >>> from gradix import lax
        >>> lax.clz(1)
        Array(31, dtype=int32, weak_type=True)
    """
    return bind(clz_p, operands("clz", x), {})


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the bits of `x · y`: for n bits, `x · y >> n` of the exact product.

    Args:
        x, y: integers of one dtype, of shapes that are equal or of one rank and broadcast.

    Raises:
        TypeError: the dtypes differ or are not integers.

    Example:
        >>> from gradix import lax
        >>> lax.mulhi(1 << 30, 1 << 10)
        Array(256, dtype=int32, weak_type=True)
    """
    return bind(mulhi_p, operands("mulhi", x, y), {})
