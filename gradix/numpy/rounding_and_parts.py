"""Parts of numbers: signs, exponents, rounding, real and imaginary parts, replaced NaN."""

from __future__ import annotations

import math
from operator import index as as_int
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.lazy import alias
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.dtypes import COMPLEX, FLOAT, INEXACT, INTEGER
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.axes import no_out
from gradix.numpy.promotion import as_operand, convert, inexact_operand, inexact_operands, like, number
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)
_INT32 = np.dtype("int32")


# -- signs -----------------------------------------------------------------------------------------


def _bits(x):
    """The bits of real floating-point numbers as signed integers."""
    return lax.bitcast_convert_type(x, np.dtype(f"int{x.aval.dtype.itemsize * 8}"))


@replayed
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit of each number is set, also that of -0.0 or NaN, as booleans.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.signbit(jnp.array([-1.0, -0.0, 0.0]))
        Array([ True,  True, False], dtype=bool)
    """
    x = as_operand("signbit", x)
    dtype = x.aval.dtype
    if dtype in COMPLEX:
        raise ValueError(f"signbit: x must be real, got dtype {dtype}.")
    if dtype == _BOOL:
        return lax.full(x.aval.shape, False, _BOOL)
    if dtype in INTEGER:
        return lax.lt(x, number(0, dtype))
    bits = _bits(x)
    return lax.lt(bits, number(0, bits.aval.dtype))


@replayed
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`|x1|` with the sign of `x2`, elementwise, in a floating dtype.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.copysign(2.0, jnp.array([-1.0, 1.0]))
        Array([-2.,  2.], dtype=float32)
    """
    x, y = inexact_operands("copysign", x1, x2)
    if x.aval.dtype in COMPLEX:
        raise TypeError(f"copysign: x1 and x2 must be real, got dtype {x.aval.dtype}.")
    size = lax.abs(x)
    return where(signbit(y), lax.neg(size), size)


@replayed
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating-point number next to `x` in the direction of `y`, elementwise.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nextafter(1.0, 2.0) - 1.0
        Array(1.1920929e-07, dtype=float32, weak_type=True)
    """
    return lax.nextafter(*inexact_operands("nextafter", x, y))


@replayed
def spacing(x: ArrayLike, /) -> Array:
    """The distance from each number to the next one away from zero, in its floating dtype.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.spacing(jnp.array([1.0, 4.0]))
        Array([1.1920929e-07, 4.7683716e-07], dtype=float32)
    """
    x = inexact_operand("spacing", x)
    dtype = x.aval.dtype
    x = convert(x, dtype)
    if dtype in COMPLEX:
        raise ValueError(f"spacing: x must be real, got dtype {dtype}.")
    least = like(x, float(dtypes.finfo(dtype).smallest_subnormal))
    if dtype == np.float16:  # as NumPy has it: the distance to the next greater number, which is positive
        step = lax.sub(lax.nextafter(x, like(x, math.inf)), x)
        return where(lax.eq(x, like(x, -math.inf)), like(x, math.nan), where(lax.eq(step, like(x, 0.0)), least, step))
    step = lax.sub(lax.nextafter(x, copysign(like(x, math.inf), x)), x)
    return where(lax.eq(step, like(x, 0.0)), copysign(least, x), step)


# -- exponents -------------------------------------------------------------------------------------


@replayed
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The product `x1 · 2ˣ²`, elementwise, in a floating dtype; it is exact but for underflow.

    Raises:
        ValueError: `x1` is complex, or `x2` is not of an integer dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ldexp(jnp.array([0.5, 3.0]), jnp.array([3, -1]))
        Array([4. , 1.5], dtype=float32)
    """
    x, e = as_operand("ldexp", x1), as_operand("ldexp", x2, 1)
    if x.aval.dtype in COMPLEX or e.aval.dtype in INEXACT:
        raise ValueError(
            f"ldexp: x1 must be real and x2 integers, got dtypes {x.aval.dtype} and "
            f"{e.aval.dtype}. Write x1 * 2.0 ** x2 for other exponents."
        )
    x = inexact_operand("ldexp", x)
    dtype = x.aval.dtype
    info = dtypes.finfo(dtype)
    if e.aval.dtype == _BOOL or e.aval.dtype.itemsize < 4:
        e = convert(e, _INT32)
    limit = 4 * (info.nmant - info.minexp)
    low, high = number(-limit, e.aval.dtype), number(limit, e.aval.dtype)
    e = lax.clamp(low, e, high) if e.aval.dtype not in dtypes.UNSIGNED else convert(lax.min(e, high), _INT32)
    x, rest = _same_shape(x, e)
    largest = number(int(info.maxexp) - 1, rest.aval.dtype)
    # 2ᵉ itself may overflow, so x is multiplied by parts of it.
    for _ in range(5):
        part = lax.clamp(lax.neg(largest), rest, largest)
        part = lax.max(part, number(int(info.minexp), part.aval.dtype))
        x, rest = lax.mul(x, _power_of_two(part, dtype)), lax.sub(rest, part)
    return x


def _same_shape(x, y):
    from_shape = lax.broadcast_shapes(x.aval.shape, y.aval.shape)
    rank = len(from_shape)
    return tuple([lax.broadcast_in_dim(v, from_shape, tuple(range(rank - v.aval.ndim, rank))) for v in (x, y)])


def _power_of_two(e, dtype):
    """2ᵉ in `dtype`, made from its bits; the exponents are those of normal numbers."""
    info = dtypes.finfo(dtype)
    word = np.dtype(f"int{dtype.itemsize * 8}")
    biased = convert(lax.add(e, number(int(info.maxexp) - 1, e.aval.dtype)), word)
    return lax.bitcast_convert_type(lax.shift_left(biased, number(int(info.nmant), word)), dtype)


@replayed(host=host_implementations.frexp)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """The pair of mantissa and exponent: `x = m · 2ᵉ` with `0.5 <= |m| < 1`, elementwise.

    Returns:
        The mantissas in a floating dtype, and the exponents as int32. Zeros, infinities and NaN
        have the exponent 0.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.frexp(jnp.array([8.0, 0.75]))
        (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    x = inexact_operand("frexp", x)
    dtype = x.aval.dtype
    if dtype in COMPLEX:
        raise TypeError(f"frexp: x must be real, got dtype {dtype}.")
    info = dtypes.finfo(dtype)
    word, mantissa = np.dtype(f"int{dtype.itemsize * 8}"), int(info.nmant)
    small = lax.lt(lax.abs(x), like(x, float(info.smallest_normal)))
    scaled = where(small, lax.mul(x, like(x, 2.0**mantissa)), x)
    bits = _bits(lax.stop_gradient(scaled))
    mask = 2 * int(info.maxexp) - 1  # All bits of the exponent are set.
    field = lax.bitwise_and(lax.shift_right_arithmetic(bits, number(mantissa, word)), number(mask, word))
    exponent = lax.sub(field, number(int(info.maxexp) - 2, word))
    exponent = lax.add(exponent, where(small, number(-mantissa, word), number(0, word)))
    plain = lax.bitwise_or(lax.bitwise_not(lax.is_finite(x)), lax.eq(x, like(x, 0.0)))
    exponent = lax.convert_element_type(where(plain, number(0, word), exponent), _INT32)
    return where(plain, x, ldexp(x, lax.neg(lax.stop_gradient(exponent)))), exponent


@replayed
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The pair of fractional and integral part of each number, in a floating dtype, with its sign.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.modf(jnp.array([1.5, -2.25]))
        (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    no_out("modf", out)
    x = inexact_operand("modf", x)
    positive = lax.ge(x, like(x, 0.0))
    whole = where(positive, lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


# -- rounding --------------------------------------------------------------------------------------


def floor(x: ArrayLike, /) -> Array:
    """The largest integer not above each element, in the dtype of `x`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.floor(jnp.array([1.7, -1.2]))
        Array([ 1., -2.], dtype=float32)
    """
    x = as_operand("floor", x)
    return x if x.aval.dtype not in INEXACT else lax.floor(x)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer not below each element, in the dtype of `x`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ceil(jnp.array([1.2, -1.7]))
        Array([ 2., -1.], dtype=float32)
    """
    x = as_operand("ceil", x)
    return x if x.aval.dtype not in INEXACT else lax.ceil(x)


@replayed
def trunc(x: ArrayLike) -> Array:
    """Each element rounded toward zero to an integer, in the dtype of `x`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.trunc(jnp.array([1.7, -1.7]))
        Array([ 1., -1.], dtype=float32)
    """
    x = as_operand("trunc", x)
    if x.aval.dtype not in INEXACT:
        return x
    return where(lax.lt(x, like(x, 0.0)), lax.ceil(x), lax.floor(x))


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer to each element, halves to even, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.rint(jnp.array([0.5, 1.5, 2.2]))
        Array([0., 2., 2.], dtype=float32)
    """
    x = as_operand("rint", x)
    if x.aval.dtype in COMPLEX:
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    if x.aval.dtype not in INEXACT:
        return convert(x, dtypes.python_scalar_dtype(float))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


@replayed
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Each element rounded to `decimals` places after the point, halves to even.

    Args:
        a: an array of numbers.
        decimals: the number of places; for floating-point numbers it may be negative, which rounds
            to tens, hundreds and so on.
        out: not supported.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: the array is boolean.
        NotImplementedError: `decimals` is negative for integers, or `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.round(jnp.array([1.234, 5.678]), 1)
        Array([1.2, 5.7], dtype=float32)
    """
    no_out("round", out)
    x = as_operand("round", a)
    decimals = as_int(decimals)
    dtype = x.aval.dtype
    if dtype in INTEGER:
        if decimals < 0:
            raise NotImplementedError(
                f"round: decimals must not be negative for integers, got {decimals}. Convert a to "
                "a floating dtype first."
            )
        return x
    if dtype in COMPLEX:
        return lax.complex(_round(lax.real(x), decimals), _round(lax.imag(x), decimals))
    if dtype not in FLOAT:
        raise ValueError(f"round: a must hold numbers, got dtype {dtype}.")
    return _round(x, decimals)


def _round(x, decimals: int):
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if not decimals:
        return lax.round(x, even)
    dtype, weak = x.aval.dtype, x.aval.weak_type
    # 10ⁿ and the scaled numbers overflow in half precision early.
    if dtype.itemsize < 4:
        x = convert(x, np.dtype("float32"))
    factor = like(x, 10.0**decimals)
    return convert(lax.div(lax.round(lax.mul(x, factor), even), factor), dtype, weak)


around = alias(round, "around")


# -- complex numbers -------------------------------------------------------------------------------


def real(val: ArrayLike, /) -> Array:
    """The real part of each number.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.real(jnp.array([1.0 + 2j]))
        Array([1.], dtype=float32)
    """
    x = as_operand("real", val)
    return lax.real(x) if x.aval.dtype in COMPLEX else x


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of each number, which is zero for real ones.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.imag(jnp.array([1.0 + 2j]))
        Array([2.], dtype=float32)
    """
    x = as_operand("imag", val)
    return lax.imag(x) if x.aval.dtype in COMPLEX else lax.full_like(x, 0)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate of each number; real ones stay as they are.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.conjugate(jnp.array([1.0 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = as_operand("conjugate", x)
    return lax.conj(x) if x.aval.dtype in COMPLEX else x


def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate of each number; another name of `conjugate`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.conj(jnp.array([1.0 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    return conjugate(x)


@replayed
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each number in the complex plane, in (-π, π], or in degrees with `deg`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.angle(jnp.array([1.0 + 1j]), deg=True)
        Array([45.], dtype=float32)
    """
    z = as_operand("angle", z)
    if z.aval.dtype not in INEXACT:
        z = convert(z, dtypes.python_scalar_dtype(float))
    x, y = inexact_operands("angle", real(z), imag(z))
    # JAX types the result so.
    if z.aval.dtype not in COMPLEX and (not x.aval.ndim or z.aval.dtype not in FLOAT):
        x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
    out = lax.atan2(y, x)
    return lax.mul(out, like(out, 180 / math.pi)) if deg else out


# -- steps and replacements ------------------------------------------------------------------------


@replayed
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function of `x1`: 0 if it is negative, 1 if it is positive, and `x2` at zero.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.heaviside(jnp.array([-2.0, 0.0, 3.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = inexact_operands("heaviside", x1, x2)
    zero, one = like(x, 0.0), like(x, 1.0)
    return where(lax.lt(x, zero), zero, where(lax.gt(x, zero), one, where(lax.ne(x, x), x, y)))


@replayed
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """The array with NaN and infinities replaced by numbers.

    Args:
        x: an array of numbers.
        copy: it has no effect, since arrays are immutable.
        nan: the number in place of NaN.
        posinf: the number in place of +∞; by default the largest finite number of the dtype.
        neginf: the number in place of -∞; by default the smallest finite number of the dtype.

    Returns:
        An array of the shape and dtype of `x`; parts of complex numbers are replaced one by one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
        Array([1., 0., 9.], dtype=float32)
    """
    del copy
    x = as_operand("nan_to_num", x)
    dtype = x.aval.dtype
    if dtype not in INEXACT:
        return x
    if dtype in COMPLEX:
        return lax.complex(*(nan_to_num(part(x), True, nan, posinf, neginf) for part in (lax.real, lax.imag)))
    x = convert(x, dtype)
    info = dtypes.finfo(dtype)
    cases = (
        (lax.ne(x, x), nan),
        (lax.eq(x, like(x, math.inf)), float(info.max) if posinf is None else posinf),
        (lax.eq(x, like(x, -math.inf)), float(info.min) if neginf is None else neginf),
    )
    for case, value in cases:
        x = where(case, convert(as_array(value), dtype, x.aval.weak_type), x)
    return x
