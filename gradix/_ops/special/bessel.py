"""Modified Bessel functions of the first kind, scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.arithmetic import abs as abs_, add, div, mul, sign, sub
from gradix._ops.comparison import lt
from gradix._ops.families import Elementwise
from gradix._ops.formulas import chebyshev, program
from gradix._ops.operands import operands, scalar_like
from gradix._ops.select import choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_special = lazy_module("scipy.special")
_REAL = INEXACT - COMPLEX

# Chebyshev coefficients, from 50 digits: of e⁻ˣ I₀(x) on [0, 8] in x/4 - 1, and of √x e⁻ˣ I₀(x) on
# [8, ∞] in 16/x - 1.
_I0_CENTRE = (
    3.38397637204738042e-1,
    -3.04682672343198399e-1,
    1.71620901522208775e-1,
    -9.49010970480476444e-2,
    4.93052842396707085e-2,
    -2.37374148058994688e-2,
    1.05464603945949983e-2,
    -4.32430999505057594e-3,
    1.6394756169413358e-3,
    -5.76375574538582366e-4,
    1.88502885095841656e-4,
    -5.7541950100821037e-5,
    1.64484480707288971e-5,
    -4.41673835845875056e-6,
    1.11738753912010372e-6,
    -2.67079385394061173e-7,
    6.04699502254191895e-8,
    -1.30002500998624804e-8,
    2.65982372468238665e-9,
    -5.18979560163526291e-10,
    9.67580903537323691e-11,
    -1.72682629144155571e-11,
    2.95505266312963983e-12,
    -4.85644678311192946e-13,
    7.67618549860493562e-14,
    -1.16853328779934517e-14,
    1.71539128555513303e-15,
    -2.43127984654795469e-16,
    3.3307945188222381e-17,
    -4.41534164647933938e-18,
)
_I0_TAIL = (
    4.02245205507054416e-1,
    3.36911647825569409e-3,
    6.88975834691682398e-5,
    2.89137052083475648e-6,
    2.04891858946906374e-7,
    2.26666899049817806e-8,
    3.39623202570838635e-9,
    4.94060238822496959e-10,
    1.18891471078464383e-11,
    -3.14991652796324136e-11,
    -1.32158118404477131e-11,
    -1.79417853150680612e-12,
    7.18012445138366623e-13,
    3.8527783827421427e-13,
    1.54008621752140983e-14,
    -4.15056934728722209e-14,
    -9.55484669882830765e-15,
    3.81168066935262242e-15,
    1.77256013305652638e-15,
    -3.42548561967721913e-16,
    -2.82762398051658348e-16,
    3.46122286769746109e-17,
    4.46562142029676e-17,
    -4.83050448594418207e-18,
    -7.23318048787475395e-18,
    9.9214754121736986e-19,
    1.19365089084598209e-18,
)


def _bessel_i0e(m, x):
    x = m.abs(x)
    near = x <= 8.0
    safe = m.where(near, 8.0, x)
    tail = chebyshev(m, 16.0 / safe - 1.0, _I0_TAIL) / m.sqrt(safe)
    return m.where(near, chebyshev(m, m.where(near, x, 8.0) * 0.25 - 1.0, _I0_CENTRE), tail)


def _wide(function):
    """Evaluate in float64."""
    return lambda x: np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def _i1e_slope(t, y, x):
    """i0e(x) - (sign(x) + 1/x) i1e(x), and its limit ½ at 0."""
    tiny = lt(abs_(x), scalar_like(x, float(np.finfo(np.float32).tiny)))
    safe = choose(tiny, x, scalar_like(x, 1))
    slope = sub(bessel_i0e(safe), mul(y, add(sign(safe), div(scalar_like(x, 1), safe))))
    return mul(t, choose(tiny, slope, scalar_like(x, 0.5)))


bessel_i0e_p = Elementwise(
    "bessel_i0e",
    _wide(lambda x: _special.i0e(x)),
    hlo=program(_bessel_i0e),
    dtypes=_REAL,
    from_result=lambda t, y, x: mul(t, sub(bessel_i1e(x), mul(sign(x), y))),
)
bessel_i1e_p = Elementwise(
    "bessel_i1e", _wide(lambda x: _special.i1e(x)), hlo="chlo.bessel_i1e", dtypes=_REAL, from_result=_i1e_slope
)


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, scaled: `e^(-|x|) I₀(x)`.

    Args:
        x: floats.

    Returns:
        Floats in [0, 1], of the shape and dtype of `x`.

    Example:
        >>> from gradix import lax
        >>> lax.bessel_i0e(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(bessel_i0e_p, operands("bessel_i0e", x), {})


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, scaled: `e^(-|x|) I₁(x)`.

    Args:
        x: floats.

    Returns:
        Floats of the shape and dtype of `x`.

    Example:
        >>> from gradix import lax
        >>> lax.bessel_i1e(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(bessel_i1e_p, operands("bessel_i1e", x), {})
