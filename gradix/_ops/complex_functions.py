"""Functions of complex numbers as StableHLO, with the special values of C99 (annex G).

XLA has most of them for finite operands; where a part is infinite or NaN, or a zero whose sign the
result carries, it gives other values. They are given here for every platform, by the parts of the
operand, x + iy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import real_dtype
from gradix._ops.formulas import LoweredValue, Program

_SINGLE = np.dtype("float32")


class Plane(Program):
    """The functions of real formulas, and what formulas of complex numbers need besides."""

    def __init__(self, em, out):
        super().__init__(em)
        self.out, self.part = out, make_aval(out.shape, real_dtype(out.dtype))
        # eˣ overflows a little above this.
        self.limit = 80.0 if self.part.dtype == _SINGLE else 700.0

    def parts(self, z) -> tuple[LoweredValue, LoweredValue]:
        return self._real_unary("real", z), self._real_unary("imag", z)

    def _real_unary(self, op: str, x) -> LoweredValue:
        return LoweredValue(self.em, self.em.op(op, self.part, x))

    def sin(self, x) -> LoweredValue:
        return self._real_unary("sine", x.value)

    def cos(self, x) -> LoweredValue:
        return self._real_unary("cosine", x.value)

    def power_of_two(self, x) -> LoweredValue:
        return LoweredValue(self.em, self.em.op("power", self.part, self.number(2).value, x.value))

    def number(self, value: float) -> LoweredValue:
        return LoweredValue(self.em, self.em.splat(value, self.part))

    def is_finite(self, x) -> LoweredValue:
        flags = make_aval(self.part.shape, np.dtype(bool))
        return LoweredValue(self.em, self.em.op("is_finite", flags, x.value))

    def is_infinite(self, x) -> LoweredValue:
        return self.abs(x) == math.inf

    def zero_like(self, x) -> LoweredValue:
        """0 with the sign of x."""
        return self.where(self.is_finite(x), x * 0.0, self.where(x < 0.0, self.number(-0.0), 0.0))

    def join(self, real, imag):
        return self.em.op("complex", self.out, real.value, imag.value)


def complex_function(formula: Callable) -> Callable:
    """A lowering `(em, out, z)`, of a formula `(m, x, y)` that gives the two parts."""

    def lower(em, out, z):
        m = Plane(em, out)
        return m.join(*formula(m, *m.parts(z)))

    lower.__name__, lower.__doc__ = formula.__name__, formula.__doc__
    return lower


def corrected(op: str, formula: Callable) -> Callable:
    """A lowering by XLA's function; `formula(m, x, y, u, v)` corrects its result, u + iv."""

    def lower(em, out, z):
        m = Plane(em, out)
        return m.join(*formula(m, *m.parts(z), *m.parts(em.op(op, out, z))))

    lower.__name__ = formula.__name__
    return lower


def _on_circle(m, x, y, growth: Callable, limit: float, at_limit: float):
    """growth(x)·(cos y + i sin y), for an exponential `growth`.

    Above the limit growth(x) may overflow where the product does not, so it is taken in two parts.
    """
    huge = x > limit
    size = growth(m.where(huge, x - limit, x))
    beyond = m.where(huge, at_limit, m.number(1))
    bent = ~m.is_finite(y)
    real = size * m.cos(m.where(m.is_infinite(x) & bent, 0.0, y)) * beyond
    imag = m.where(y == 0.0, y, size * m.sin(y) * beyond)
    return real, m.where((x == -math.inf) & bent, 0.0, imag)


@complex_function
def exponential(m, x, y):
    """eˣ cos y + i eˣ sin y."""
    return _on_circle(m, x, y, m.exp, m.limit, math.exp(m.limit))


@complex_function
def exponential_of_two(m, x, y):
    """2ˣ cos(y log 2) + i 2ˣ sin(y log 2)."""
    limit = 120.0 if m.part.dtype == _SINGLE else 1000.0
    return _on_circle(m, x, y * math.log(2), m.power_of_two, limit, 2.0**limit)


@complex_function
def exponential_minus_one(m, x, y):
    """expm1(x) cos y - 2 sin²(y/2) + i eˣ sin y."""
    far, imag = _on_circle(m, x, y, m.exp, m.limit, math.exp(m.limit))
    turned = m.where(m.is_infinite(x) & ~m.is_finite(y), 0.0, y)
    half = m.sin(turned * 0.5)
    near = m.expm1(x) * m.cos(turned) - half * half * 2.0
    return m.where(x > m.limit, far, near), imag


def _hyperbolic(m, x):
    """sinh x and cosh x over a factor, and the factor, which is 1 where they do not overflow."""
    size = m.abs(x)
    huge = size > m.limit
    grown = m.expm1(m.where(huge, size - m.limit, size))
    shrunk = grown / (grown + 1.0)
    half = (grown + 1.0) * 0.5
    sinh = m.where(huge, half, (grown + shrunk) * 0.5)
    cosh = m.where(huge, half, grown * shrunk * 0.5 + 1.0)
    sinh = m.where(x == 0.0, x, m.where(x < 0.0, -sinh, sinh))
    return sinh, cosh, m.where(huge, math.exp(m.limit), m.number(1))


def _sinh(m, x, y):
    sinh, cosh, factor = _hyperbolic(m, x)
    lost = ((x == 0.0) | m.is_infinite(x)) & ~m.is_finite(y)
    real = m.where(lost, x, sinh * m.cos(y) * factor)
    return real, m.where(y == 0.0, y, cosh * m.sin(y) * factor)


def _cosh(m, x, y):
    sinh, cosh, factor = _hyperbolic(m, x)
    bent = ~m.is_finite(y)
    real = m.where(m.is_infinite(x) & bent, m.abs(x), cosh * m.cos(y) * factor)
    imag = m.where((x == 0.0) & bent, x, sinh * m.sin(y) * factor)
    on_axis = m.where(m.is_finite(x), x * y, m.where(x < 0.0, -y, y))
    return real, m.where(y == 0.0, on_axis, imag)


@complex_function
def sinh(m, x, y):
    """sinh x cos y + i cosh x sin y."""
    return _sinh(m, x, y)


@complex_function
def cosh(m, x, y):
    """cosh x cos y + i sinh x sin y."""
    return _cosh(m, x, y)


@complex_function
def sine(m, x, y):
    """sin(x + iy) = -i sinh(-y + ix)."""
    real, imag = _sinh(m, y, x)
    return imag, real


@complex_function
def cosine(m, x, y):
    """cos(x + iy) = cosh(-y + ix)."""
    real, imag = _cosh(m, y, x)
    return real, -imag


def _keep_zeros(m, x, y, u, v):
    """The tangents, circular and hyperbolic, keep the zeros among the parts."""
    return m.where(x == 0.0, x, u), m.where(y == 0.0, y, v)


def _log(m, x, y, u, v):
    """The logarithm of the size is infinite where a part is, even if the other one is NaN."""
    return m.where(m.is_infinite(x) | m.is_infinite(y), math.inf, u), v


def _log1p(m, x, y, u, v):
    # Near -1 the sum 1 + x is exact, and the square of y may underflow.
    above = x + 1.0
    size = LoweredValue(m.em, m.em.op("abs", m.part, m.join(above, y)))
    u = m.where((m.abs(above) < 0.5) & (m.abs(y) < 0.5), m.log(size), u)
    u = m.where((x == 0.0) & (y == 0.0), x, u)
    return _log(m, x, y, u, v)


def _sqrt(m, x, y, u, v):
    odd = m.is_infinite(x) & (y != y)
    u = m.where(odd, m.where(x > 0.0, x, y), u)
    v = m.where(odd, m.where(x > 0.0, y, -x), v)
    high = m.is_infinite(y)
    return m.where(high, math.inf, u), m.where(high, y, v)


def _is_lost(m, x, y):
    """Whether a part is NaN and none is infinite."""
    return ((x != x) | (y != y)) & ~(m.is_infinite(x) | m.is_infinite(y))


def _atanh(m, x, y, u, v):
    none, odd = m.number(math.nan), y != y
    # At the poles the square of y may underflow.
    at_pole = (m.abs(x) == 1.0) & (m.abs(y) < 1e-9)
    high = (math.log(2) - m.log(m.abs(y))) * 0.5
    u = m.where(at_pole, m.where(x < 0.0, -high, high), u)
    u = m.where(odd, m.where((x == 0.0) | m.is_infinite(x), m.zero_like(x), none), u)
    return u, m.where(odd | ((x != x) & ~m.is_infinite(y)), none, v)


def _atan(m, x, y, u, v):
    # atan z = -i atanh(iz), iz = -y + ix
    imag, real = _atanh(m, y, x, v, u)
    return real, imag


def _asin(m, x, y, u, v):
    return m.where(x == 0.0, x, u), m.where(_is_lost(m, x, y), math.nan, v)


def _asinh(m, x, y, u, v):
    return m.where(_is_lost(m, x, y), math.nan, u), m.where(y == 0.0, y, v)


def _acos(m, x, y, u, v):
    real = m.where((x == 0.0) & (y != y), math.pi / 2, u)
    return real, m.where(_is_lost(m, x, y), math.nan, v)


def _acosh(m, x, y, u, v):
    imag = m.where((x == 0.0) & (y != y), math.pi / 2, v)
    return m.where(_is_lost(m, x, y), math.nan, u), imag


log = corrected("log", _log)
log1p = corrected("log_plus_one", _log1p)
sqrt = corrected("sqrt", _sqrt)
tan = corrected("tan", _keep_zeros)
tanh = corrected("tanh", _keep_zeros)
asin = corrected("chlo.asin", _asin)
acos = corrected("chlo.acos", _acos)
atan = corrected("chlo.atan", _atan)
asinh = corrected("chlo.asinh", _asinh)
acosh = corrected("chlo.acosh", _acosh)
atanh = corrected("chlo.atanh", _atanh)


def size(em, out, z):
    """|z|, which is infinite where a part is, even if the other one is NaN."""
    m = Plane(em, z.aval)
    x, y = m.parts(z)
    at_end = m.is_infinite(x) | m.is_infinite(y)
    return m.where(at_end, math.inf, LoweredValue(em, em.op("abs", out, z))).value


def _sign(m, x, y, u, v):
    wide, high, odd = m.is_infinite(x), m.is_infinite(y), (x != x) | (y != y)
    both = (wide & high) | (odd & ~(wide | high))
    u = m.where(wide, m.where(x < 0.0, m.number(-1), 1.0), m.where(high, 0.0, u))
    v = m.where(high, m.where(y < 0.0, m.number(-1), 1.0), m.where(wide, 0.0, v))
    none, nothing = m.number(math.nan), (x == 0.0) & (y == 0.0)
    u, v = [m.where(nothing, 0.0, m.where(both, none, part)) for part in (u, v)]
    return u, v


# z / |z|: of one infinite part its sign, of two NaN, of zeros 0 + 0i
sign = corrected("sign", _sign)
