"""Exponentials, logarithms, roots and powers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.dtypes import COMPLEX, INEXACT, INTEGER
from gradix._core.operators import Array
from gradix._core.primitive import ValueTraits
from gradix._core.trace import bind
from gradix._ops.accuracy import check_accuracy
from gradix._ops.arithmetic import add, div, integer_pow, mul, sub
from gradix._ops.comparison import eq
from gradix._ops.complex_parts import neg
from gradix._ops.convert import convert
from gradix._ops.families import Elementwise, HostRule, WhereFinite
from gradix._ops.operands import operands, scalar_like
from gradix._ops.select import choose as select_n

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._ops.accuracy import AccuracyMode, Tolerance

_F32, _F64 = np.dtype("float32"), np.dtype("float64")


def _host_logistic(x):
    one = np.ones((), x.dtype)
    return one / (one + np.exp(-x))


def _host_log1p(x):
    """log1p by NumPy.

    Near |1 + z| = 1 the real part is log1p(2x + x² + y²) / 2, which does not cancel.
    """
    if x.dtype.kind != "c":
        return np.log1p(x)
    z = x.astype(np.complex128)
    near = (np.abs(z.real) < 4) & (np.abs(z.imag) < 4)
    safe = np.where(near, z, 0)
    (p, p_low), (q, q_low) = _square(safe.real), _square(safe.imag)
    total, low = _sum(2 * safe.real, p)
    total, lower = _sum(total, q)
    real = 0.5 * np.log1p(total + (low + lower + p_low + q_low))
    out = np.array(np.log1p(z))
    # Near -1 the sum 1 + x is exact.
    real = np.where(total < -0.5, np.log(np.hypot(1 + safe.real, safe.imag)), real)
    out.real = np.where(near, np.where(z == 0, z.real, real), out.real)
    return out.astype(x.dtype)


def _square(x):
    """x² as the sum of two numbers (Dekker 1971)."""
    p, c = x * x, 134217729.0 * x  # 2²⁷ + 1
    high = c - (c - x)
    low = x - high
    return p, ((high * high - p) + 2 * high * low) + low * low


def _sum(x, y):
    """x + y as the sum of two numbers (Knuth, TAOCP 2, 4.2.2)."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def _host_rsqrt(x):
    return np.ones((), x.dtype) / np.sqrt(x)


def _power_of_half(x, y):
    """Powers by 0.5; NumPy takes the square root for one exponent, another number at -∞ and -0."""
    if x.size < 64:
        return np.power(x, np.full(x.shape, y) if y.size == 1 else y.copy())
    out, odd = np.power(x, y), (y == 0.5) & ((x == 0) | (x == -np.inf))
    return np.where(odd, np.abs(x), out) if odd.any() else out


def _host_pow(x, y):
    if y.dtype.kind == "c":
        nan = y.dtype.type(complex("nan+nanj"))
        # Follow XLA in this case.
        return np.where((x == 0) & (y.imag != 0), nan, np.power(x, y)).astype(y.dtype, copy=False)
    if y.dtype.kind not in "iu":
        is_half = y.item() == 0.5 if y.size == 1 else 0 in y.strides
        return _power_of_half(x, y) if is_half else np.power(x, y)
    if x.dtype.kind not in "iu":
        return np.power(x, y.astype(np.float64)).astype(x.dtype)
    if y.dtype.kind == "u" or not (y < 0).any():
        return np.power(x, y).astype(x.dtype)
    odd = np.where(y % 2 == 0, 1, -1)
    below = np.where(x == 1, 1, np.where(x == -1, odd, np.where(x == 0, -1, 0)))
    return np.where(y < 0, below, np.power(x, np.maximum(y, 0))).astype(x.dtype)


def _pow_base(t, x, y):
    if y.aval.dtype == x.aval.dtype:
        x = convert(x, x.aval.dtype)
    y_ = convert(y, x.aval.dtype)
    # A known exponent stays a known number.
    if type(y_) is ArrayImpl and not y_.aval.shape and y_._host is not None:
        less = pow(x, scalar_like(y_, y_._host - 1 if y_._host else 0))
    else:
        less = pow(x, select_n(eq(y_, scalar_like(y_, 0)), sub(y_, scalar_like(y_, 1)), scalar_like(y_, 0)))
    return mul(t, mul(y_, less))  # y·xʸ⁻¹, zero where y = 0


def _pow_exponent(t, x, y):
    if y.aval.dtype not in INEXACT:
        return None
    safe = select_n(eq(x, scalar_like(x, 0)), x, scalar_like(x, 1))
    return mul(t, mul(log(safe), pow(x, y)))  # log(x)·xʸ


class _Pow(Elementwise):
    """xʸ; the exponent may also be of an integer dtype."""

    def check_dtypes(self, avals):
        x, y = avals
        super().check_dtypes(avals[:1] if y.dtype in INTEGER and x.dtype in INEXACT else avals)


def _one_minus(y):
    return sub(scalar_like(y, 1), y)


def _one_plus(y):
    return add(scalar_like(y, 1), y)


def _host_expm1(x):
    y = np.expm1(x)
    if x.dtype.kind != "c":
        return y
    # NumPy multiplies an infinite exponential, or 0, with the sine of 0, ∞ or NaN.
    bent = np.isinf(x.real) & ~np.isfinite(x.imag)
    out = np.empty(x.shape, x.dtype)
    out.real = np.where(bent | (x.imag == 0), np.expm1(x.real), y.real)
    out.imag = np.where(x.imag == 0, x.imag, np.where(bent & (x.real < 0), 0, y.imag))
    return out


def _host_exp2(x):
    if x.dtype.kind != "c":
        return np.exp2(x)
    turn = x.imag * x.imag.dtype.type(math.log(2))
    out = np.empty(x.shape, x.dtype)
    out.real, out.imag = x.real * turn.dtype.type(math.log(2)), turn
    out, size = np.asarray(np.exp(out)), np.exp2(x.real)
    # NumPy's own is exact to 13 digits; away from the special values 2ˣ is known better.
    near = np.isfinite(size) & np.isfinite(turn) & (turn != 0)
    out.real = np.where(near, size * np.cos(turn), np.where(turn == 0, size, out.real))
    out.imag = np.where(near, size * np.sin(turn), out.imag)
    return out


def _host_logistic_slope(x):
    """e / (1 + e)², e = e⁻|ˣ|; 1 - y would leave nothing of a y near 1."""
    e = np.exp(-np.abs(x))
    return e / np.square(e + np.ones((), x.dtype))


def _lower_logistic_slope(em, out, x):
    """y·(e·y), e = e⁻ˣ, where XLA makes y of the same e: both together cost little more than y."""
    wide = make_aval(out.shape, _F64 if out.dtype == _F64 else _F32)
    x = em.convert(x, wide.dtype)
    e, y = em.op("exponential", wide, em.op("negate", wide, x)), em.op("logistic", wide, x)
    # Where e overflows, y is 0.
    e = em.op("minimum", wide, e, em.splat(float(np.finfo(wide.dtype).max), wide))
    slope = em.op("multiply", wide, y, em.op("multiply", wide, e, y))
    return em.convert(slope, out.dtype)


def _logistic_tangent(t, y, x):
    if x.aval.dtype in COMPLEX:
        return mul(t, mul(y, _one_minus(y)))
    return mul(t, bind(logistic_slope_p, (x,), {}))


def _lower_exp2(em, out, x):
    return em.op("power", out, em.splat(2, out), x)


exp_p = Elementwise(
    "exp",
    np.exp,
    hlo="exponential",
    complex_hlo="exponential",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, y),
    values=ValueTraits(singular=True, keeps_nan=True),
)
exp2_p = Elementwise(
    "exp2",
    HostRule(_host_exp2, floats=np.exp2),
    hlo=_lower_exp2,
    complex_hlo="exponential_of_two",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, mul(scalar_like(y, math.log(2)), y)),
    values=ValueTraits(singular=True, keeps_nan=True),
)
log_p = Elementwise(
    "log",
    np.log,
    lambda t, x: div(t, x),
    hlo="log",
    complex_hlo="log",
    dtypes=INEXACT,
    values=ValueTraits(singular=True, keeps_nan=True),
)
expm1_p = Elementwise(
    "expm1",
    HostRule(_host_expm1, floats=np.expm1),
    hlo="exponential_minus_one",
    complex_hlo="exponential_minus_one",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, exp(x)),
    values=ValueTraits(singular=True, keeps_nan=True),
)
log1p_p = Elementwise(
    "log1p",
    _host_log1p,
    lambda t, x: div(t, _one_plus(x)),
    hlo="log_plus_one",
    complex_hlo="log1p",
    dtypes=INEXACT,
    values=ValueTraits(singular=True, keeps_nan=True),
)
logistic_p = Elementwise(
    "logistic",
    _host_logistic,
    hlo="logistic",
    dtypes=INEXACT,
    from_result=_logistic_tangent,
    values=ValueTraits(keeps_nan=True),
)
logistic_slope_p = Elementwise(
    "logistic_slope",
    _host_logistic_slope,
    hlo=_lower_logistic_slope,
    dtypes=INEXACT - COMPLEX,
    # -s·tanh(x / 2)
    from_result=lambda t, s, x: mul(t, mul(neg(s), tanh(mul(x, scalar_like(x, 0.5))))),
    values=ValueTraits(keeps_nan=True),
)
tanh_p = Elementwise(
    "tanh",
    np.tanh,
    hlo="tanh",
    complex_hlo="tanh",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(mul(t, _one_plus(y)), _one_minus(y)),
    values=ValueTraits(keeps_nan=True),
)
sqrt_p = Elementwise(
    "sqrt",
    np.sqrt,
    hlo="sqrt",
    complex_hlo="sqrt",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, div(scalar_like(y, 0.5), y)),
    values=ValueTraits(singular=True, keeps_nan=True),
)
rsqrt_p = Elementwise(
    "rsqrt",
    _host_rsqrt,
    hlo="rsqrt",
    dtypes=INEXACT,
    from_result=lambda t, y, x: mul(t, div(mul(scalar_like(y, -0.5), y), x)),
    values=ValueTraits(singular=True, keeps_nan=True),
)
cbrt_p = Elementwise(
    "cbrt",
    np.cbrt,
    hlo="cbrt",
    dtypes=INEXACT - COMPLEX,
    from_result=lambda t, y, x: mul(t, mul(scalar_like(y, 1 / 3), integer_pow(y, -2))),
)
pow_p = _Pow(
    "pow",
    WhereFinite(_host_pow),
    _pow_base,
    _pow_exponent,
    dtypes=INEXACT,
    hlo=lambda em, out, x, y: em.op("power", out, x, em.convert(y, out.dtype)),
    formula="long",
    values=ValueTraits(singular=True),
)


def exp(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """`eˣ`, elementwise.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.exp(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("exp", accuracy)
    return bind(exp_p, operands("exp", x), {})


def exp2(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """`2ˣ`, elementwise.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.exp2(3.0)
        Array(8., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("exp2", accuracy)
    return bind(exp2_p, operands("exp2", x), {})


def log(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The natural logarithm.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.log(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("log", accuracy)
    return bind(log_p, operands("log", x), {})


def expm1(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """`eˣ - 1`, accurate near zero.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.expm1(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("expm1", accuracy)
    return bind(expm1_p, operands("expm1", x), {})


def log1p(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """`log(1 + x)`, accurate near zero.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.log1p(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("log1p", accuracy)
    return bind(log1p_p, operands("log1p", x), {})


def logistic(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """`1 / (1 + e⁻ˣ)`.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.logistic(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("logistic", accuracy)
    return bind(logistic_p, operands("logistic", x), {})


def tanh(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The hyperbolic tangent.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.tanh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("tanh", accuracy)
    return bind(tanh_p, operands("tanh", x), {})


def sqrt(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The square root.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.sqrt(4.0)
        Array(2., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("sqrt", accuracy)
    return bind(sqrt_p, operands("sqrt", x), {})


def rsqrt(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """`1 / √x`.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.rsqrt(4.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("rsqrt", accuracy)
    return bind(rsqrt_p, operands("rsqrt", x), {})


def cbrt(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The real cube root.

    `accuracy` is accepted and met: no approximation is made.

    Example:
        >>> from gradix import lax
        >>> lax.cbrt(8.0)
        Array(2., dtype=float32, weak_type=True)
    """
    if accuracy is not None:
        check_accuracy("cbrt", accuracy)
    return bind(cbrt_p, operands("cbrt", x), {})


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """`xʸ`, elementwise; `y` has the dtype of `x` or an integer one.

    Example:
        >>> from gradix import lax
        >>> lax.pow(2.0, 3.0)
        Array(8., dtype=float32, weak_type=True)
    """
    return bind(pow_p, operands("pow", x, y), {})
