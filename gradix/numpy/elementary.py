"""Elementary functions: exponentials, logarithms, roots, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.jit.replay import replayed
from gradix._base.lazy import alias
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.promotion import convert, inexact_operand, inexact_operands, like, matching
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _function(name: str, op, summary: str, example: str) -> Callable[[ArrayLike], Array]:
    """A function of one array, in whose docstring stand the summary, its dtype, and an example."""

    def function(x: ArrayLike, /) -> Array:
        if isinstance(x, Array) and x.aval.dtype in INEXACT:
            return op(x)
        return op(inexact_operand(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{summary}\n\nIt is taken elementwise; integers and booleans become floating-point "
        f"numbers.\n\nExample:\n    >>> import gradix.numpy as jnp\n    >>> {example}\n"
    )
    return function


def _value(text: str, value: str) -> str:
    return f"{text}\n    Array({value}, dtype=float32, weak_type=True)"


def _of_array(text: str, values: str, also: str) -> str:
    """A second example, and functions to look at as well."""
    return f"\n    >>> {text}\n    Array({values}, dtype=float32)\n\nSee also:\n    {also}"


# -- exponentials, logarithms, roots ---------------------------------------------------------------
exp = _function(
    "exp",
    lax.exp,
    "The exponential eˣ.",
    _value("jnp.exp(0.0)", "1.")
    + _of_array(
        "jnp.exp(jnp.array([-jnp.inf, 0.0]))",
        "[0., 1.]",
        "`jnp.expm1`, `jnp.exp2`, `jnp.log`, `jnp.logaddexp`, `nn.softmax`.",
    ),
)
exp2 = _function("exp2", lax.exp2, "The power 2ˣ.", _value("jnp.exp2(3.0)", "8."))
expm1 = _function("expm1", lax.expm1, "The value eˣ − 1, accurate near zero.", _value("jnp.expm1(0.0)", "0."))
log = _function(
    "log",
    lax.log,
    "The natural logarithm; NaN for negative real numbers.",
    _value("jnp.log(1.0)", "0.")
    + _of_array(
        "jnp.log(jnp.array([-1.0, 0.0, 1.0]))",
        "[ nan, -inf,   0.]",
        "`jnp.log1p`, `jnp.log2`, `jnp.log10`, `jnp.exp`, `nn.logsumexp`.",
    ),
)
log1p = _function("log1p", lax.log1p, "The value log(1 + x), accurate near zero.", _value("jnp.log1p(0.0)", "0."))
sqrt = _function(
    "sqrt",
    lax.sqrt,
    "The square root; NaN for negative real numbers.",
    _value("jnp.sqrt(9.0)", "3.")
    + _of_array(
        "jnp.sqrt(jnp.array([4, 2, -1]))",
        "[2.       , 1.4142135,       nan]",
        "`jnp.square`, `jnp.cbrt`, `lax.rsqrt`, `jnp.hypot`.",
    ),
)
cbrt = _function("cbrt", lax.cbrt, "The cube root of real numbers.", _value("jnp.cbrt(8.0)", "2."))

# -- trigonometric functions -----------------------------------------------------------------------
sin = _function(
    "sin",
    lax.sin,
    "The sine; angles are in radians.",
    _value("jnp.sin(0.0)", "0.")
    + _of_array(
        "jnp.sin(jnp.radians(jnp.array([30, 90])))",
        "[0.5, 1. ]",
        "`jnp.cos`, `jnp.arcsin`, `jnp.sinc`, `jnp.sinh`, `jnp.radians`.",
    ),
)
cos = _function(
    "cos",
    lax.cos,
    "The cosine; angles are in radians.",
    _value("jnp.cos(0.0)", "1.")
    + _of_array(
        "jnp.cos(jnp.radians(jnp.array([0, 180])))", "[ 1., -1.]", "`jnp.sin`, `jnp.arccos`, `jnp.cosh`, `jnp.radians`."
    ),
)
tan = _function("tan", lax.tan, "The tangent; angles are in radians.", _value("jnp.tan(0.0)", "0."))
arcsin = _function("arcsin", lax.asin, "The angle in [-π/2, π/2] whose sine is x.", _value("jnp.arcsin(0.0)", "0."))
arccos = _function("arccos", lax.acos, "The angle in [0, π] whose cosine is x.", _value("jnp.arccos(1.0)", "0."))
arctan = _function("arctan", lax.atan, "The angle in [-π/2, π/2] whose tangent is x.", _value("jnp.arctan(0.0)", "0."))

# -- hyperbolic functions --------------------------------------------------------------------------
sinh = _function("sinh", lax.sinh, "The hyperbolic sine.", _value("jnp.sinh(0.0)", "0."))
cosh = _function("cosh", lax.cosh, "The hyperbolic cosine.", _value("jnp.cosh(0.0)", "1."))
tanh = _function("tanh", lax.tanh, "The hyperbolic tangent.", _value("jnp.tanh(0.0)", "0."))
arcsinh = _function("arcsinh", lax.asinh, "The inverse of `sinh`.", _value("jnp.arcsinh(0.0)", "0."))
arctanh = _function(
    "arctanh",
    lax.atanh,
    "The inverse of `tanh`; NaN for real numbers outside [-1, 1].",
    _value("jnp.arctanh(0.0)", "0."),
)


def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of `cosh`, elementwise, in a floating dtype; NaN for real numbers below 1.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.arccosh(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    y = lax.acosh(inexact_operand("arccosh", x))
    if y.aval.dtype not in COMPLEX:
        return y
    left = lax.lt(lax.real(y), like(lax.real(y), 0.0))
    # This is the branch whose real part is not negative.
    return where(left, lax.neg(y), y)


acos, acosh = alias(arccos, "acos"), alias(arccosh, "acosh")
asin, asinh = alias(arcsin, "asin"), alias(arcsinh, "asinh")
atan, atanh = alias(arctan, "atan"), alias(arctanh, "atanh")


def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point `(x2, x1)` in (-π, π], elementwise, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.arctan2(0.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return lax.atan2(*inexact_operands("arctan2", x1, x2))


atan2 = alias(arctan2, "atan2")


@replayed(host=host_implementations.hypot)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The length `sqrt(x1² + x2²)`, elementwise, in a floating dtype; the squares do not overflow.

    Raises:
        ValueError: an operand is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.hypot(3.0, 4.0)
        Array(5., dtype=float32, weak_type=True)
    """
    x, y = inexact_operands("hypot", x1, x2)
    dtype = x.aval.dtype
    if dtype in COMPLEX:
        raise ValueError(f"hypot: x1 and x2 must be real, got dtype {dtype}. Take jnp.abs of complex numbers.")
    return _length(x, y)


@custom_jvp
def _length(x, y):
    x, y = lax.abs(x), lax.abs(y)
    zero, one, inf = (like(y if y.aval.ndim else x, v) for v in (0.0, 1.0, math.inf))
    infinite = lax.bitwise_or(lax.eq(x, inf), lax.eq(y, inf))
    behind = lax.lt(x, y)
    large, small = where(behind, y, x), where(behind, x, y)
    none = lax.eq(large, zero)
    ratio = lax.div(small, where(none, one, large))
    length = lax.mul(large, lax.sqrt(lax.add(one, lax.square(ratio))))
    return where(infinite, where(lax.eq(x, inf), x, y), where(none, lax.max(x, y), length))


@_length.defjvp
def _length_jvp(primals, tangents):
    length = _length(*primals)
    zero, infinite = lax.eq(length, like(length, 0.0)), lax.eq(length, like(length, math.inf))
    size = where(lax.bitwise_or(zero, infinite), like(length, 1.0), length)

    def cosine(x):
        # As for a maximum, half at 0; an infinite operand alone determines the length.
        edge = where(lax.eq(lax.abs(x), like(x, math.inf)), lax.sign(x), like(x, 0.0))
        return where(zero, like(x, 0.5), where(infinite, edge, lax.div(x, size)))

    (x, y), (s, t) = primals, tangents
    return length, s * cosine(x) + t * cosine(y)


# -- logarithms of other bases ---------------------------------------------------------------------


def _scaled_log(x, scale):
    """log(x) scaled by a real function (part by part for complex `x`), never weakly typed."""
    y = lax.log(convert(x, x.aval.dtype))
    if y.aval.dtype in COMPLEX:
        return lax.complex(scale(lax.real(y)), scale(lax.imag(y)))
    return scale(y)


@replayed
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2, elementwise, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.log2(8.0)
        Array(3., dtype=float32)
    """
    return _scaled_log(inexact_operand("log2", x), lambda y: lax.div(y, lax.log(like(y, 2.0))))


@replayed
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10, elementwise, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.log10(100.0)
        Array(2., dtype=float32)
    """
    return _scaled_log(inexact_operand("log10", x), _by_log_of_ten)


# 1/log(10) is the sum of the two, of which the first is rounded down.
_INVERSE, _REST = 1 / math.log(10), 6.649434773342547e-17


def _by_log_of_ten(y):
    """y / log(10), by an inverse in two parts, so that powers of ten have whole logarithms."""
    head = float(y.aval.dtype.type(_INVERSE))
    if y.aval.dtype.itemsize < 4:
        return lax.mul(y, like(y, head))
    if head > _INVERSE:  # Both parts are positive, so that infinities keep their sign.
        head -= float(np.finfo(y.aval.dtype).eps) / 4
    rest = (_INVERSE - head) + _REST
    return lax.add(lax.mul(y, like(y, head)), lax.mul(y, like(y, rest)))


@replayed(host=host_implementations.logaddexp)
def logaddexp(x1, x2):
    """The value log(eˣ¹ + eˣ²), elementwise, in a floating or complex dtype; eˣ does not overflow.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logaddexp(-jnp.inf, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x, y = inexact_operands("logaddexp", x1, x2)
    return _log_of_sum(x, y, lax.exp, 1.0)


@replayed
def logaddexp2(x1, x2):
    """The value log₂(2ˣ¹ + 2ˣ²), elementwise, in a floating or complex dtype; 2ˣ does not overflow.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logaddexp2(2.0, 2.0)
        Array(3., dtype=float32, weak_type=True)
    """
    x, y = inexact_operands("logaddexp2", x1, x2)
    return _log_of_sum(x, y, lax.exp2, 1 / math.log(2))


def _log_of_sum(x, y, power, per_log: float):
    """The logarithm of a sum of two powers of one base; `per_log` is 1 / log(base)."""
    dtype = x.aval.dtype
    if dtype in COMPLEX:
        ahead = lax.ge(lax.real(x), lax.real(y))
        top = where(ahead, x, y)
        low = lax.sub(where(ahead, y, x), top)
        out = lax.add(top, lax.mul(like(x, per_log), lax.log1p(power(low))))
        return lax.complex(lax.real(out), _wrapped(lax.imag(out), math.pi * per_log))
    gap = lax.sub(x, y)
    level = lax.bitwise_and(lax.eq(x, y), lax.ne(gap, gap))  # Both are infinite, with one sign.
    # A gap of 0 keeps the derivative of the branch that is not taken finite.
    gap = where(level, matching(gap, 0.0), gap)
    # Unlike max, this choice has the derivative 1 in x where x equals y, as |gap| assumes; and NaN
    # reaches both derivatives.
    top = where(lax.ge(x, y), x, y)
    part = lax.log1p(power(lax.neg(lax.abs(gap))))
    if per_log != 1.0:
        part = lax.mul(like(part, per_log), part)
    return where(level, lax.max(x, y), lax.add(top, part))


def _wrapped(angle, half: float):
    """The angle shifted by a multiple of `2 * half` into [-half, half)."""
    whole = like(angle, 2 * half)
    wrapped = lax.rem(lax.add(angle, like(angle, half)), whole)
    wrapped = where(lax.lt(wrapped, like(angle, 0.0)), lax.add(wrapped, whole), wrapped)
    return lax.sub(wrapped, like(angle, half))


# -- angles and the cardinal sine ------------------------------------------------------------------


def deg2rad(x: ArrayLike, /) -> Array:
    """The angle in radians of an angle in degrees, elementwise, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.deg2rad(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x = inexact_operand("deg2rad", x)
    return lax.mul(x, like(x, math.pi / 180))


def rad2deg(x: ArrayLike, /) -> Array:
    """The angle in degrees of an angle in radians, elementwise, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.rad2deg(jnp.pi)
        Array(180., dtype=float32, weak_type=True)
    """
    x = inexact_operand("rad2deg", x)
    return lax.mul(x, like(x, 180 / math.pi))


def radians(x: ArrayLike, /) -> Array:
    """The angle in radians of an angle in degrees; another name of `deg2rad`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.radians(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return deg2rad(x)


def degrees(x: ArrayLike, /) -> Array:
    """The angle in degrees of an angle in radians; another name of `rad2deg`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.degrees(jnp.pi)
        Array(180., dtype=float32, weak_type=True)
    """
    return rad2deg(x)


@replayed(host=host_implementations.sinc)
def sinc(x: ArrayLike, /) -> Array:
    """The cardinal sine sin(πx) / (πx), elementwise, in a floating dtype; it is 1 at zero.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.sinc(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x = inexact_operand("sinc", x)
    zero = lax.eq(x, like(x, 0))
    angle = lax.mul(like(x, math.pi), x)
    safe = where(zero, like(x, 1), angle)
    # The series is taken near zero only, since its powers would overflow elsewhere.
    near = where(zero, angle, like(x, 0))
    return where(zero, _sinc_near_zero(near), lax.div(lax.sin(safe), safe))


def _sinc_near_zero(x):
    """The Maclaurin series of sin(x)/x; its derivatives up to the tenth are right at zero."""
    dtype = x.aval.dtype
    s = lax.square(x)
    out = like(x, -1 / math.factorial(11))
    for k in (9, 7, 5, 3, 1):
        out = lax.add(lax.mul(out, s), like(x, (-1) ** (k // 2) / math.factorial(k)))
    return convert(out, dtype, x.aval.weak_type)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order zero, elementwise.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.i0(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x = inexact_operand("i0", x)
    if x.aval.dtype in COMPLEX:
        raise ValueError(f"i0: x must be real, got dtype {x.aval.dtype}.")
    return _i0(x)


@custom_jvp
def _i0(x):
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals, tangents):
    # i0' = i1. It holds at 0 too, where exp|x| and i0e have no derivative.
    (x,), (t,) = primals, tangents
    return _i0(x), lax.mul(t, lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x)))
