"""Quotients and remainders of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.promotion import inexact_operand, inexact_operands, matching, number, numeric_operands, operands
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

# -- quotients -------------------------------------------------------------------------------------


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient `x1 / x2`, elementwise, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.true_divide(jnp.array([1, 2]), 2)
        Array([0.5, 1. ], dtype=float32)
    """
    if isinstance(x1, Array) and type(x2) is float and x1.aval.dtype in INEXACT and not x1.aval.weak_type:
        return lax.div(x1, number(x2, x1.aval.dtype))
    return lax.div(*inexact_operands("true_divide", x1, x2))


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient `x1 / x2`, elementwise; another name of `true_divide`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.divide(3.0, 2.0)
        Array(1.5, dtype=float32, weak_type=True)
    """
    return true_divide(x1, x2)


def reciprocal(x: ArrayLike, /) -> Array:
    """The reciprocal `1 / x`, elementwise, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.reciprocal(jnp.array([1, 4]))
        Array([1.  , 0.25], dtype=float32)
    """
    return lax.integer_pow(inexact_operand("reciprocal", x), -1)


@replayed(host=host_implementations.floor_divide)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer not above `x1 / x2`, elementwise, in the promoted dtype.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.floor_divide(jnp.array([7, -7]), 2)
        Array([ 3, -4], dtype=int32)
    """
    x, y = numeric_operands("floor_divide", x1, x2)
    dtype = x.aval.dtype
    if dtype in dtypes.UNSIGNED:
        return lax.div(x, y)
    if type(x2) is int and x2 > 0 and dtype in dtypes.INTEGER and x2 <= dtypes.iinfo(dtype).max:
        if not x2 & (x2 - 1):
            return lax.shift_right_arithmetic(x, matching(y, x2.bit_length() - 1))
        q = lax.div(x, y)
        return where(lax.lt(lax.rem(x, y), matching(x, 0)), lax.sub(q, matching(q, 1)), q)
    if dtype in dtypes.INTEGER:
        q = lax.div(x, y)
        uneven = lax.ne(lax.rem(x, y), matching(x, 0))
        down = lax.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), uneven)
        return where(down, lax.sub(q, matching(q, 1)), q)
    if dtype in COMPLEX:
        raise TypeError(f"floor_divide: x1 and x2 must be real, got dtype {dtype}.")
    return _float_divmod(x, y)[0]


@replayed(host=host_implementations.remainder)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of `x1 / x2` with the sign of `x2`, elementwise, in the promoted dtype.

    Integers modulo zero give zero, floating-point numbers NaN.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.remainder(jnp.array([7, -7]), 3)
        Array([1, 2], dtype=int32)
    """
    x, y = numeric_operands("remainder", x1, x2)
    dtype = x.aval.dtype
    zero = matching(x, 0)
    if dtype in dtypes.INTEGER:
        if type(x2) is int and 0 < x2 <= dtypes.iinfo(dtype).max:
            return _remainder_of_positive(x, y, x2)
        y = where(lax.eq(y, zero), matching(y, 1), y)
    r = lax.rem(x, y)
    away = lax.bitwise_and(lax.ne(lax.lt(r, zero), lax.lt(y, zero)), lax.ne(r, zero))
    r = where(away, lax.add(r, y), r)
    return r if dtype in dtypes.INTEGER else _with_zeros_like(r, y)


def _remainder_of_positive(x, y, divisor: int):
    """The remainder of integers by a positive number."""
    if not divisor & (divisor - 1):
        return lax.bitwise_and(x, matching(y, divisor - 1))
    r = lax.rem(x, y)
    return r if x.aval.dtype in dtypes.UNSIGNED else where(lax.lt(r, matching(r, 0)), lax.add(r, y), r)


def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of `x1 / x2` with the sign of `x2`, elementwise; another name of `remainder`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.mod(5.5, 2.0)
        Array(1.5, dtype=float32, weak_type=True)
    """
    return remainder(x1, x2)


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of `x1 / x2` with the sign of `x1`, elementwise, in the promoted dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fmod(jnp.array([7, -7]), 3)
        Array([ 1, -1], dtype=int32)
    """
    x, y = operands("fmod", x1, x2)
    if x.aval.dtype in dtypes.INTEGER:
        y = where(lax.eq(y, matching(y, 0)), matching(y, 1), y)
    return lax.rem(*numeric_operands("fmod", x, y))


@replayed(host=host_implementations.divmod)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair `(floor_divide(x1, x2), remainder(x1, x2))`, elementwise.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.divmod(jnp.array([7, -7]), 2)
        (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    x, y = numeric_operands("divmod", x1, x2)
    if x.aval.dtype in dtypes.INTEGER:
        return floor_divide(x, y), remainder(x, y)
    if x.aval.dtype in COMPLEX:
        raise TypeError(f"divmod: x1 and x2 must be real, got dtype {x.aval.dtype}.")
    return _float_divmod(x, y)


def _float_divmod(x, y):
    zero = matching(x, 0)
    r = lax.rem(x, y)
    q = lax.div(where(lax.eq(y, zero), x, lax.sub(x, r)), y)
    down = lax.bitwise_and(lax.ne(r, zero), lax.ne(lax.lt(y, zero), lax.lt(r, zero)))
    r = _with_zeros_like(where(down, lax.add(r, y), r), y)
    # q is an integer up to rounding errors, so it does not matter how halves are rounded.
    q = lax.round(where(down, lax.sub(q, matching(q, 1)), q), lax.RoundingMethod.TO_NEAREST_EVEN)
    return where(lax.eq(q, zero), lax.mul(lax.stop_gradient(lax.div(x, y)), zero), q), r


def _with_zeros_like(r, y):
    """`r` with the sign of `y` at its zeros, as NumPy has them, and with the derivative of `r`."""
    zero = matching(r, 0)
    signed = where(lax.lt(y, zero), lax.neg(zero), zero)
    return where(lax.eq(r, zero), lax.sub(signed, lax.sub(lax.stop_gradient(r), r)), r)
