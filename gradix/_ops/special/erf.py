"""Error functions and nextafter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.primitive import ValueTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import mul, square
from gradix._ops.complex_parts import neg
from gradix._ops.families import Elementwise
from gradix._ops.operands import operands, scalar_like
from gradix._ops.transcendental import exp

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_special = lazy_module("scipy.special")
_REAL = INEXACT - COMPLEX


def _wide(function):
    """Evaluate half precisions in float32."""

    def host(x):
        if x.dtype in (np.float32, np.float64):
            return function(x)
        return function(x.astype(np.float32)).astype(x.dtype)

    return host


# M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2010: float32, in w = -log(1
# - x²).
_CENTRE = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)
_CENTRE_F32 = [np.float32(c) for c in _CENTRE]


def _host_erf_inv(x):
    if x.dtype == np.float64:
        return _special.erfinv(x)
    w = -np.log1p(x * -x)
    central = w < 5
    if central.all():
        u, p = w - np.float32(2.5), _CENTRE_F32[0]
        for c in _CENTRE_F32[1:]:
            p = c + p * u
        return p * x
    u = np.where(central, w - np.float32(2.5), np.sqrt(np.maximum(w, 0)) - np.float32(3))
    p = np.where(central, np.float32(_CENTRE[0]), np.float32(_TAIL[0]))
    for c, t in zip(_CENTRE[1:], _TAIL[1:]):
        p = np.where(central, np.float32(c), np.float32(t)) + p * u
    return np.where(np.abs(x) == 1, x * np.float32(np.inf), p * x).astype(x.dtype)


def _host_nextafter(x, y):
    if x.dtype in (np.float16, np.float32, np.float64):
        return np.nextafter(x, y)
    bits = np.dtype(f"i{x.dtype.itemsize}")
    i = x.view(bits)
    up = (y > x) == (x > 0)
    stepped = (i + np.where(up, 1, -1).astype(bits)).astype(bits).view(x.dtype)
    least = np.where(y > 0, np.array(1, bits), np.array(np.iinfo(bits).min + 1, bits)).view(x.dtype)
    out = np.where(x == y, y, np.where(x == 0, least, stepped))
    return np.where(np.isnan(x) | np.isnan(y), np.array(np.nan, x.dtype), out)


def _gaussian(t, factor, square_of, sign):
    return mul(mul(scalar_like(square_of, factor), t), exp(sign(square(square_of))))


def _emit_erf(em, out, x):
    found = em.op("chlo.erf", out, x)
    if em.is_divided:  # The partitioner has no rule for it, and would gather the operand.
        em.divide_alike(x, found)
    return found


erf_p = Elementwise(
    "erf",
    _wide(lambda x: _special.erf(x)),
    lambda t, x: _gaussian(t, 2 / math.sqrt(math.pi), x, neg),
    hlo=_emit_erf,
    dtypes=_REAL,
)
erfc_p = Elementwise(
    "erfc",
    _wide(lambda x: _special.erfc(x)),
    lambda t, x: _gaussian(t, -2 / math.sqrt(math.pi), x, neg),
    hlo="chlo.erfc",
    dtypes=_REAL,
)
erf_inv_p = Elementwise(
    "erf_inv",
    _wide(_host_erf_inv),
    hlo="chlo.erf_inv",
    dtypes=_REAL,
    from_result=lambda t, y, x: _gaussian(t, math.sqrt(math.pi) / 2, y, lambda v: v),
    values=ValueTraits(singular=True),
)
nextafter_p = Elementwise("nextafter", _host_nextafter, hlo="chlo.next_after", dtypes=_REAL)


def erf(x: ArrayLike) -> Array:
    """The error function `2/√π ∫₀ˣ e^(-t²) dt`.

    Example:
        >>> from gradix import lax
        >>> lax.erf(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(erf_p, operands("erf", x), {})


def erfc(x: ArrayLike) -> Array:
    """`1 - erf(x)`, accurate for large `x`.

    Example:
        >>> from gradix import lax
        >>> lax.erfc(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(erfc_p, operands("erfc", x), {})


def erf_inv(x: ArrayLike) -> Array:
    """The inverse of `erf`.

    Example:
        >>> from gradix import lax
        >>> lax.erf_inv(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(erf_inv_p, operands("erf_inv", x), {})


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next representable number after `x1` toward `x2`.

    Example:
        >>> from gradix import lax
        >>> lax.nextafter(1.0, 2.0) > 1.0
        Array(True, dtype=bool, weak_type=True)
    """
    return bind(nextafter_p, operands("nextafter", x1, x2), {})
