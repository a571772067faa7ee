"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.primitive import ValueTraits
from gradix._core.trace import bind
from gradix._ops.accuracy import check_accuracy
from gradix._ops.arithmetic import add, div, mul, square, sub
from gradix._ops.complex_parts import neg
from gradix._ops.families import Elementwise
from gradix._ops.formulas import host_float, program
from gradix._ops.operands import operands, scalar_like
from gradix._ops.transcendental import rsqrt

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._ops.accuracy import AccuracyMode, Tolerance


def _one(x):
    return scalar_like(x, 1)


def _host_atan2(x, y):
    if x.dtype.kind != "c":
        return np.arctan2(x, y)
    i = x.dtype.type(1j)
    return x.dtype.type(complex(0, -1)) * np.log((y + i * x) / np.sqrt(x * x + y * y))


def _lower_atan2(em, out, x, y):
    if out.dtype not in COMPLEX:
        return em.op("atan2", out, x, y)
    i = em.splat(1j, out)
    size = em.op("sqrt", out, em.op("add", out, em.op("multiply", out, x, x), em.op("multiply", out, y, y)))
    turn = em.op("divide", out, em.op("add", out, y, em.op("multiply", out, i, x)), size)
    # -i·log((y + i·x) / √(x² + y²))
    return em.op("multiply", out, em.splat(complex(0, -1), out), em.op("log", out, turn))


def _atan2_slope(m, x, y):
    """y / (x² + y²), by the quotient of the smaller and the larger one, whose square stays finite."""
    ahead = m.abs(y) > m.abs(x)
    large, small = m.where(ahead, y, x), m.where(ahead, x, y)
    ratio = small / large
    return m.where(ahead, 1.0, ratio) / (large * (ratio * ratio + 1.0))


def _atan2_part(t, x, y, sign):
    if x.aval.dtype in COMPLEX:
        return mul(t, div(sign(y), add(square(x), square(y))))
    return mul(t, sign(_slope_of_angle(x, y)))


def _slope_of_angle(x, y):
    return bind(atan2_slope_p, (x, y), {})


def _twice_product(t, x, y):
    """-2xy / (x² + y²)²."""
    return mul(t, mul(mul(scalar_like(x, -2), _slope_of_angle(x, y)), _slope_of_angle(y, x)))


def _difference_of_squares(t, x, y):
    """(x² - y²) / (x² + y²)²."""
    u, v = _slope_of_angle(y, x), _slope_of_angle(x, y)
    return mul(t, mul(sub(u, v), add(u, v)))


def _asinh_slope(m, x):
    """1 / √(1 + x²), whose square does not overflow."""
    x = m.abs(x)
    far = x > 1.0 / m.eps(x)
    near = m.where(far, 0.0, x)
    return m.where(far, 1.0 / x, 1.0 / m.sqrt(near * near + 1.0))


def _asinh_tangent(t, x):
    if x.aval.dtype in COMPLEX:
        return mul(t, rsqrt(add(square(x), _one(x))))
    return mul(t, bind(asinh_slope_p, (x,), {}))


def _lower_one_minus_square(em, out, x):
    one = em.splat(1, out)
    return em.op("multiply", out, em.op("subtract", out, one, x), em.op("add", out, one, x))


def _one_minus_square(x):
    return bind(one_minus_square_p, (x,), {})


# 1 - x², exact near ±1, with a derivative that is exact near 0.
one_minus_square_p = Elementwise(
    "one_minus_square",
    lambda x: (1 - x) * (1 + x),
    lambda t, x: mul(t, mul(scalar_like(x, -2), x)),
    hlo=_lower_one_minus_square,
    dtypes=INEXACT,
    values=ValueTraits(keeps_nan=True),
)
sin_p = Elementwise(
    "sin", np.sin, lambda t, x: mul(t, cos(x)), hlo="sine", complex_hlo="sine", dtypes=INEXACT, formula="periodic"
)
cos_p = Elementwise(
    "cos",
    np.cos,
    lambda t, x: neg(mul(t, sin(x))),
    hlo="cosine",
    complex_hlo="cosine",
    dtypes=INEXACT,
    formula="periodic",
)
tan_p = Elementwise(
    "tan",
    np.tan,
    hlo="tan",
    complex_hlo="tan",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, add(_one(y), square(y))),
    formula="periodic",
    values=ValueTraits(singular=True),
)
asin_p = Elementwise(
    "asin",
    np.arcsin,
    lambda t, x: mul(t, rsqrt(_one_minus_square(x))),
    hlo="chlo.asin",
    complex_hlo="asin",
    dtypes=INEXACT,
    values=ValueTraits(singular=True),
)
acos_p = Elementwise(
    "acos",
    np.arccos,
    lambda t, x: mul(t, neg(rsqrt(_one_minus_square(x)))),
    hlo="chlo.acos",
    complex_hlo="acos",
    dtypes=INEXACT,
    values=ValueTraits(singular=True),
)
atan_p = Elementwise(
    "atan", np.arctan, lambda t, x: div(t, add(_one(x), square(x))), hlo="chlo.atan", complex_hlo="atan", dtypes=INEXACT
)
atan2_p = Elementwise(
    "atan2",
    _host_atan2,
    lambda t, x, y: _atan2_part(t, x, y, lambda v: v),
    lambda t, x, y: _atan2_part(t, y, x, neg),
    hlo=_lower_atan2,
    dtypes=INEXACT,
)
# y / (x² + y²)
atan2_slope_p = Elementwise(
    "atan2_slope",
    host_float(_atan2_slope),
    _twice_product,
    _difference_of_squares,
    hlo=program(_atan2_slope),
    dtypes=INEXACT - COMPLEX,
    values=ValueTraits(singular=True),
)
sinh_p = Elementwise(
    "sinh",
    np.sinh,
    lambda t, x: mul(t, cosh(x)),
    hlo="chlo.sinh",
    complex_hlo="sinh",
    dtypes=INEXACT,
    values=ValueTraits(singular=True),
)
cosh_p = Elementwise(
    "cosh",
    np.cosh,
    lambda t, x: mul(t, sinh(x)),
    hlo="chlo.cosh",
    complex_hlo="cosh",
    dtypes=INEXACT,
    values=ValueTraits(singular=True),
)
asinh_p = Elementwise("asinh", np.arcsinh, _asinh_tangent, hlo="chlo.asinh", complex_hlo="asinh", dtypes=INEXACT)
asinh_slope_p = Elementwise(
    "asinh_slope",
    host_float(_asinh_slope),
    hlo=program(_asinh_slope),
    dtypes=INEXACT - COMPLEX,
    # -x·s³
    from_result=lambda t, s, x: mul(t, mul(mul(mul(neg(x), s), s), s)),
    values=ValueTraits(keeps_nan=True),
)
acosh_p = Elementwise(
    "acosh",
    np.arccosh,
    hlo="chlo.acosh",
    complex_hlo="acosh",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, mul(rsqrt(sub(x, _one(x))), rsqrt(add(x, _one(x))))),
    values=ValueTraits(singular=True),
)
atanh_p = Elementwise(
    "atanh",
    np.arctanh,
    lambda t, x: div(t, _one_minus_square(x)),
    hlo="chlo.atanh",
    complex_hlo="atanh",
    dtypes=INEXACT,
    values=ValueTraits(singular=True),
)


def sin(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The sine of `x` radians.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.sin(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("sin", accuracy)
    return bind(sin_p, operands("sin", x), {})


def cos(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The cosine of `x` radians.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.cos(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("cos", accuracy)
    return bind(cos_p, operands("cos", x), {})


def tan(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The tangent of `x` radians.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.tan(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("tan", accuracy)
    return bind(tan_p, operands("tan", x), {})


def asin(x: ArrayLike) -> Array:
    """The angle in radians whose sine is `x`.

    Example:
        >>> from gradix import lax
        >>> lax.asin(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(asin_p, operands("asin", x), {})


def acos(x: ArrayLike) -> Array:
    """The angle in radians whose cosine is `x`.

    Example:
        >>> from gradix import lax
        >>> lax.acos(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(acos_p, operands("acos", x), {})


def atan(x: ArrayLike) -> Array:
    """The angle in radians whose tangent is `x`.

    Example:
        >>> from gradix import lax
        >>> lax.atan(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(atan_p, operands("atan", x), {})


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine.

    Example:
        >>> from gradix import lax
        >>> lax.sinh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(sinh_p, operands("sinh", x), {})


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine.

    Example:
        >>> from gradix import lax
        >>> lax.cosh(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(cosh_p, operands("cosh", x), {})


def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sine.

    Example:
        >>> from gradix import lax
        >>> lax.asinh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(asinh_p, operands("asinh", x), {})


def acosh(x: ArrayLike) -> Array:
    """The inverse hyperbolic cosine.

    Example:
        >>> from gradix import lax
        >>> lax.acosh(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(acosh_p, operands("acosh", x), {})


def atanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent.

    Example:
        >>> from gradix import lax
        >>> lax.atanh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(atanh_p, operands("atanh", x), {})


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle in radians of the point with ordinate `x` and abscissa `y`.

    Example:
        >>> from gradix import lax
        >>> lax.atan2(0.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(atan2_p, operands("atan2", x, y), {})
