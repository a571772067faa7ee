"""Arithmetic: add, sub, mul, div, rem, abs, sign, max, min, integer_pow and square."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._core.dtypes import (
    COMPLEX,
    FLOAT,
    INTEGER,
    NARROW_INTEGER,
    NUMERIC,
    SIGNED,
    UNSIGNED,
    canonicalize_dtype,
    iinfo,
    real_dtype,
)
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, ValueTraits
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_to, zeros
from gradix._ops.comparison import eq, ge, gt, lt
from gradix._ops.complex_parts import complex, imag, neg, neg_p, real
from gradix._ops.convert import convert
from gradix._ops.families import Elementwise, HostRule, WhereFinite
from gradix._ops.operands import as_operand, operands, scalar_like
from gradix._ops.rounding import floor
from gradix._ops.select import choose as select_n

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike

# -- host rules that differ from NumPy's ufuncs ----------------------------------------------------

_complex_functions = lazy_module("gradix._ops.complex_functions")
_WHOLE = INTEGER | NARROW_INTEGER


def _divides_all(y) -> bool:
    """Whether `y` is a single integer other than 0 and -1, the two that need special cases."""
    return y.ndim == 0 and y.dtype.char in "bhilqBHILQ" and int(y) not in (0, -1)


def _host_div(x, y):
    if x.dtype in NARROW_INTEGER:
        return _host_div(x.astype(np.int8), y.astype(np.int8)).astype(x.dtype)
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    if _divides_all(y):
        return np.floor_divide(x - np.fmod(x, y), y)
    if not (y == 0).any() and (x.dtype.kind == "u" or not (y == -1).any()):
        q = np.floor_divide(x, y)
        return q if x.dtype.kind == "u" else q + ((q < 0) & (q * y != x)).astype(x.dtype)
    wide_y = np.where(y == 0, 1, y)
    q = (
        np.where(wide_y == -1, np.negative(x), _host_div(x, np.where(wide_y == -1, 1, wide_y)))
        if x.dtype.kind == "i"
        else np.floor_divide(x, wide_y)
    )
    return np.where(y == 0, np.array(-1).astype(x.dtype), q).astype(x.dtype)


def _host_rem(x, y):
    if x.dtype in NARROW_INTEGER:
        return _host_rem(x.astype(np.int8), y.astype(np.int8)).astype(x.dtype)
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    if _divides_all(y):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where((y == 0) | (y == -1 if x.dtype.kind == "i" else False), 1, y)))


def _float_sign(x):
    # np.sign drops the sign of a negative zero.
    return np.copysign(np.sign(x), x)


def _host_sign(x):
    return _float_sign(x) if x.dtype in FLOAT else np.sign(x)


def _host_integer_pow(x, *, y):
    if 0 <= y <= 3:
        return (np.ones_like, np.positive, np.square, lambda v: v * v * v)[y](x)
    if y < 0:
        return np.reciprocal(_host_integer_pow(x, y=-y))
    out, square = None, x
    while y:
        if y & 1:
            out = square if out is None else out * square
        y >>= 1
        if y:
            square = square * square
    return out


# -- adjoints --------------------------------------------------------------------------------------


def _both(ct, x, y):
    return [ct if type(a) is Linear else None for a in (x, y)]


def _sub_back(ct, x, y):
    return [ct if type(x) is Linear else None, bind(neg_p, (ct,), {}) if type(y) is Linear else None]


def _mul_back(ct, x, y):
    if type(x) is not Linear:
        return None, bind(mul_p, (x, ct), {})
    y = as_operand("mul", y) if type(y) is Linear else y  # says that the product of both is not linear
    return bind(mul_p, (ct, y), {}), None


def _may_divide_by_zero(operands, params) -> bool:
    return operands[1] is None or not operands[1].host.all()


# -- derivatives -----------------------------------------------------------------------------------


def _winner(t, x, y, ahead):
    """The tangent where its operand is ahead, half of it where both are equal."""
    if t.aval.shape != ahead.aval.shape:
        t = broadcast_to(t, ahead.aval.shape)
    return select_n(eq(x, y), select_n(ahead, zeros(t.aval), t), mul(t, scalar_like(t, 0.5)))


def _divisor_tangent(t, x, y):
    # -x·y⁻¹·y⁻¹, as y² may overflow where the quotient does not.
    inverse = integer_pow(y, -1)
    return mul(t, mul(mul(neg(x), inverse), inverse))


def _rem_by(t, x, y):
    q = div(x, y)
    return mul(neg(t), mul(sign(q), floor(abs(q))))  # -trunc(x / y)


def _abs_tangent(t, y, x):
    if x.aval.dtype not in COMPLEX:
        # At 0 the tangent is that of x; at NaN it is NaN.
        zero = scalar_like(x, 0)
        return mul(t, select_n(ge(x, zero), select_n(lt(x, zero), x, scalar_like(x, -1)), scalar_like(x, 1)))
    y = convert(y, y.aval.dtype)
    size = select_n(eq(y, scalar_like(y, 0)), y, scalar_like(y, 1))
    return div(add(mul(real(t), real(x)), mul(imag(t), imag(x))), size)  # Re(x̄·t) / |x|


def _sign_tangent(t, y, x):
    if x.aval.dtype not in COMPLEX:
        return None
    size = abs(x)  # i·Im(t·ȳ)·y / |x|
    turn = div(imag(mul(t, complex(real(y), neg(imag(y))))), size)
    return mul(complex(scalar_like(turn, 0.0), turn), y)


def _integer_pow_tangent(t, y_, x, *, y):
    if y in (0, 1):
        return t if y else None
    return mul(t, mul(scalar_like(x, y), x if y == 2 else integer_pow(x, y - 1)))


class _IntegerPow(Elementwise):
    def lower(self, em, out, x, *, y):
        if y < 0:
            one = em.splat(1, out)
            return em.op("divide", out, one, self.lower(em, out, x, y=-y))
        if y == 0:
            return em.splat(1, out)
        total = None
        while y:
            if y & 1:
                total = x if total is None else em.op("multiply", out, total, x)
            y >>= 1
            if y:
                x = em.op("multiply", out, x, x)
        return total


def _lower_sign(em, out, x):
    if out.dtype not in UNSIGNED:
        return em.op("sign", out, x)
    return em.op("minimum", out, x, em.splat(1, out))


def _lower_abs(em, out, x):
    if x.aval.dtype in COMPLEX:
        return _complex_functions.size(em, out, x)
    return em.op("abs", out, x)


def _lower_max(em, out, x, y, name="maximum", direction="GT"):
    if out.dtype.kind != "c":
        return em.op(name, out, x, y)
    part = make_aval(out.shape, real_dtype(out.dtype))
    xr, yr, xi, yi = (em.op(p, part, v) for p in ("real", "imag") for v in (x, y))
    first = em.select(em.compare(xr, yr, "EQ"), em.compare(xi, yi, direction), em.compare(xr, yr, direction))
    return em.select(first, x, y)


def _lower_div(em, out, x, y):
    if out.dtype not in _WHOLE:
        return em.op("divide", out, x, y)
    quotient, is_zero = _divided(em, "divide", out, x, y)
    if is_zero is None:
        return quotient
    ones = iinfo(out.dtype).max if iinfo(out.dtype).min == 0 else -1
    return em.select(is_zero, em.splat(int(ones), out), quotient)


def _lower_rem(em, out, x, y):
    if out.dtype not in _WHOLE:
        return em.op("remainder", out, x, y)
    remainder, is_zero = _divided(em, "remainder", out, x, y)
    return remainder if is_zero is None else em.select(is_zero, x, remainder)


def _divided(em, name, out, x, y):
    """Whole numbers divided, and where the divisor is 0; None if it is known to be neither 0 nor -1.

    The compiler divides constants in advance, and the processor's exceptions at 0, and at the least number by -1, would
    end the process. So it is given 1 in place of such divisors.
    """
    if y.number not in (None, 0, -1):
        return em.op(name, out, x, y), None
    is_zero = unfit = em.compare(y, em.splat(0, y.aval), "EQ")
    if iinfo(out.dtype).min:
        least = em.compare(x, em.splat(int(iinfo(out.dtype).min), x.aval), "EQ")
        is_overflow = em.op("and", is_zero.aval, least, em.compare(y, em.splat(-1, y.aval), "EQ"))
        unfit = em.op("or", is_zero.aval, is_zero, is_overflow)
    return em.op(name, out, x, em.select(unfit, em.splat(1, y.aval), y)), is_zero


def _lower_min(em, out, x, y):
    return _lower_max(em, out, x, y, "minimum", "LT")


add_p = Elementwise(
    "add",
    np.add,
    lambda t, x, y: t,
    lambda t, x, y: t,
    hlo="add",
    dtypes=NUMERIC,
    transpose=_both,
    formula="simple",
    values=ValueTraits(keeps_nan=True),
    mesh=MeshTraits(sums="kept"),
)
sub_p = Elementwise(
    "sub",
    np.subtract,
    lambda t, x, y: t,
    lambda t, x, y: bind(neg_p, (t,), {}),
    hlo="subtract",
    dtypes=NUMERIC,
    transpose=_sub_back,
    formula="simple",
    values=ValueTraits(keeps_nan=True),
    mesh=MeshTraits(sums="kept"),
)
mul_p: Elementwise = Elementwise(
    "mul",
    np.multiply,
    lambda t, x, y: bind(mul_p, (t, y), {}),
    lambda t, x, y: bind(mul_p, (x, t), {}),
    hlo="multiply",
    dtypes=NUMERIC,
    transpose=_mul_back,
    formula="simple",
    values=ValueTraits(neutral=0, keeps_nan=True),
    mesh=MeshTraits(sums="product"),
)
div_p = Elementwise(
    "div",
    WhereFinite(_host_div, floats=np.divide),
    lambda t, x, y: div(t, y),
    _divisor_tangent,
    hlo=_lower_div,
    dtypes=NUMERIC,
    transpose=lambda ct, x, y: (div(ct, y), None),
    mesh=MeshTraits(sums="quotient"),
    values=ValueTraits(neutral=1, singular=_may_divide_by_zero, keeps_nan=True),
)
rem_p = Elementwise(
    "rem",
    HostRule(_host_rem, floats=np.fmod),
    lambda t, x, y: t,
    _rem_by,
    hlo=_lower_rem,
    dtypes=NUMERIC - COMPLEX,
    values=ValueTraits(singular=_may_divide_by_zero),
)
max_p = Elementwise(
    "max",
    WhereFinite(np.maximum),
    lambda t, x, y: _winner(t, x, y, gt(x, y)),
    lambda t, x, y: _winner(t, x, y, gt(y, x)),
    hlo=_lower_max,
    dtypes=NUMERIC | {np.dtype(bool)},
)
min_p = Elementwise(
    "min",
    WhereFinite(np.minimum),
    lambda t, x, y: _winner(t, x, y, lt(x, y)),
    lambda t, x, y: _winner(t, x, y, lt(y, x)),
    hlo=_lower_min,
    dtypes=NUMERIC | {np.dtype(bool)},
)
sign_p = Elementwise(
    "sign",
    HostRule(_host_sign, floats=_float_sign),
    hlo=_lower_sign,
    complex_hlo="sign",
    dtypes=NUMERIC,
    from_result=_sign_tangent,
)
abs_p = Elementwise(
    "abs",
    np.abs,
    hlo=_lower_abs,
    dtypes=SIGNED | FLOAT | COMPLEX,
    from_result=_abs_tangent,
    out=real_dtype,
    formula="simple",
    values=ValueTraits(keeps_nan=True),
)
square_p = Elementwise(
    "square",
    np.square,
    lambda t, x: mul(t, mul(scalar_like(x, 2), x)),
    hlo=lambda em, out, x: em.op("multiply", out, x, x),
    dtypes=NUMERIC,
    formula="simple",
    values=ValueTraits(keeps_nan=True),
)
integer_pow_p = _IntegerPow(
    "integer_pow",
    WhereFinite(_host_integer_pow),
    hlo="",
    dtypes=NUMERIC,
    from_result=_integer_pow_tangent,
    formula="simple",
    values=ValueTraits(singular=lambda xs, params: params["y"] < 0),
)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """`x + y`, elementwise, for operands of one dtype; `y` may be a Python number.

    Raises:
        TypeError: the dtypes differ, or the shapes do not broadcast.

    Example:
        >>> from gradix import lax
        >>> lax.add(1.0, 2.0)
        Array(3., dtype=float32, weak_type=True)
    """
    return bind(add_p, operands("add", x, y), {})


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """`x - y`, elementwise, for operands of one dtype.

    Example:
        >>> from gradix import lax
        >>> lax.sub(3, 1)
        Array(2, dtype=int32, weak_type=True)
    """
    return bind(sub_p, operands("sub", x, y), {})


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """`x · y`, elementwise, for operands of one dtype.

    Args:
        x, y: arrays of numbers, of one shape; scalars broadcast.
        out_dtype: the dtype of the product, to which the operands are converted first; None is the
            operands' dtype.

    Example:
        >>> from gradix import lax
        >>> lax.mul(3.0, 2.0)
        Array(6., dtype=float32, weak_type=True)
    """
    if out_dtype is None:
        return bind(mul_p, operands("mul", x, y), {})
    dtype = canonicalize_dtype(out_dtype)
    return bind(mul_p, tuple([convert(v, dtype, v.aval.weak_type) for v in operands("mul", x, y)]), {})


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """`x / y`, elementwise; integers are divided toward zero, and by zero give -1 (all bits set).

    Example:
        >>> from gradix import lax
        >>> lax.div(-7, 2)
        Array(-3, dtype=int32, weak_type=True)
    """
    return bind(div_p, operands("div", x, y), {})


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of `x / y` with the sign of `x`; an integer modulo zero is itself.

    Example:
        >>> from gradix import lax
        >>> lax.rem(-7, 2)
        Array(-1, dtype=int32, weak_type=True)
    """
    return bind(rem_p, operands("rem", x, y), {})


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of `x` and `y`, elementwise; NaN if either is.

    Example:
        >>> from gradix import lax
        >>> lax.max(1.0, 2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return bind(max_p, operands("max", x, y), {})


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of `x` and `y`, elementwise; NaN if either is.

    Example:
        >>> from gradix import lax
        >>> lax.min(1.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(min_p, operands("min", x, y), {})


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign of `x`; `x / |x|` for complex numbers.

    Example:
        >>> from gradix import lax
        >>> lax.sign(-2.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    return bind(sign_p, operands("sign", x), {})


def abs(x: ArrayLike) -> Array:
    """`|x|`, elementwise; real for complex `x`.

    Example:
        >>> from gradix import lax
        >>> lax.abs(-2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return bind(abs_p, operands("abs", x), {})


def square(x: ArrayLike) -> Array:
    """`x²`, elementwise.

    Example:
        >>> from gradix import lax
        >>> lax.square(3.0)
        Array(9., dtype=float32, weak_type=True)
    """
    return bind(square_p, operands("square", x), {})


def integer_pow(x: ArrayLike, y: int) -> Array:
    """`xʸ` for a Python integer `y`, by repeated squaring.

    Raises:
        TypeError: `x` is of an integer dtype and `y` is negative.

    Example:
        >>> from gradix import lax
        >>> lax.integer_pow(2.0, 3)
        Array(8., dtype=float32, weak_type=True)
    """
    (x,) = operands("integer_pow", x)
    y = index(y)
    if y < 0 and x.aval.dtype in INTEGER:
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow(x of dtype {x.aval.dtype}, "
            f"{y}). Convert x to a floating dtype first."
        )
    return bind(integer_pow_p, (x,), {"y": y})


def reciprocal(x: ArrayLike) -> Array:
    """`1 / x`, elementwise.

    Example:
        >>> from gradix import lax
        >>> lax.reciprocal(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow(x, -1)
