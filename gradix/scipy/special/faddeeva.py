"""The Faddeeva function, scaled error functions, Dawson's and Fresnel's integrals, Owen's T."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.autodiff import jvp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import convert, inexact_operand, promote_dtypes_inexact
from gradix.scipy.special.coefficients import DAWSON, DAWSON_TAIL, ERFCX
from gradix.scipy.special.errors import ndtr, polynomial

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_ROOT_PI = math.sqrt(math.pi)


def real_operand(name: str, x):
    """`x` as float32 or float64, in which the function is computed, and the result's dtype."""
    x = inexact_operand(name, x)
    if x.aval.dtype in COMPLEX:
        raise ValueError(
            f"{name} does not support complex-valued inputs, got dtype {x.aval.dtype}. Pass the "
            "real parts, as jnp.real gives them."
        )
    return convert(x, np.dtype("float32") if x.aval.dtype.itemsize < 4 else x.aval.dtype), x.aval.dtype


def is_double(x) -> bool:
    return x.aval.dtype in (np.dtype("float64"), np.dtype("complex128"))


# -- w(z) ------------------------------------------------------------------------------------------


@functools.lru_cache(8)
def _weideman(n: int) -> tuple[float, tuple]:
    """The scale and the coefficients of Weideman's rational approximation with n terms."""
    m = 2 * n
    scale = math.sqrt(n / math.sqrt(2))
    angle = np.arange(-m + 1, m) * np.pi / m
    t = scale * np.tan(angle / 2)
    values = np.concatenate([[0], np.exp(-t * t) * (scale**2 + t * t)])
    found = np.real(np.fft.fft(np.fft.fftshift(values))) / (2 * m)
    return scale, tuple(found[1 : n + 1][::-1].tolist())


@custom_jvp
def _wofz(z):
    """Weideman, "Computation of the complex error function" (1994), in the upper half plane.

    In the lower half plane it is 2 exp(-z²) - w(-z).
    """
    scale, coefficients = _weideman(64 if is_double(z) else 26)
    below = lax.imag(z) < 0
    u = jnp.where(below, -z, z)
    iz = lax.complex(-lax.imag(u), lax.real(u))
    z_ratio = (scale + iz) / (scale - iz)
    total = jnp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        total = total * z_ratio + c
    upper = 2 * total / (scale - iz) ** 2 + (1 / _ROOT_PI) / (scale - iz)
    x = lax.real(u)
    upper = jnp.where(lax.imag(u) == 0, lax.complex(jnp.exp(-x * x), lax.imag(upper)), upper)
    return jnp.where(below, 2 * jnp.exp(-z * z) - upper, upper)


@_wofz.defjvp
def _wofz_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    w = _wofz(z)
    return w, t * (lax.complex(jnp.zeros_like(lax.real(z)), jnp.full_like(lax.real(z), 2 / _ROOT_PI)) - 2 * z * w)


def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function, `exp(-z²) erfc(-iz)`.

    Args:
        z: complex numbers.

    Example:
        >>> from gradix.scipy import special
        >>> special.wofz(1j).real.round(4)
        Array(0.4276, dtype=float32)
    """
    z = inexact_operand("wofz", z)
    return _wofz(convert(z, dtypes.to_complex_dtype(z.aval.dtype)))


# -- scaled errors and Dawson's integral -----------------------------------------------------------


def erfcx(x: ArrayLike) -> Array:
    """`exp(x²) erfc(x)`, which does not underflow.

    Args:
        x: real or complex numbers.

    Example:
        >>> from gradix.scipy import special
        >>> special.erfcx(100.0).round(6)
        Array(0.005642, dtype=float32)
    """
    if dtypes.result_type(x) in dtypes.COMPLEX:
        return wofz(1j * inexact_operand("erfcx", x))
    x, dtype = real_operand("erfcx", x)
    below = x < 0
    size = jnp.where(below, -x, x)
    # Where the polynomials' powers could overflow, 1 / (x √π) is already exact.
    far = size > (2.0**28 if is_double(x) else 2.0**13)
    over, under = [polynomial(c, jnp.where(far, 1, size)) for c in ERFCX[x.aval.dtype]]
    value = _quotient(jnp.where(far, 1 / _ROOT_PI, over), jnp.where(far, size, under))
    return jnp.where(below, 2 * _exp_of_square(jnp.where(below, x, 0)) - value, value).astype(dtype)


@custom_jvp
def _quotient(x, y):
    """x / y, with derivatives that never divide by a power of y, which could overflow."""
    return x / y


@_quotient.defjvp
def _quotient_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    value = _quotient(x, y)
    return value, _quotient(tx - value * ty, y)


@custom_jvp
def _exp_of_square(x):
    """`exp(x²)` with the rounding error of x² added back, since exp would multiply it by x²."""
    # Beyond `limit` the result is infinite; the products of the two parts of x are exact (Dekker).
    limit, factor = (27.0, 2.0**27 + 1) if is_double(x) else (10.0, 2.0**12 + 1)
    x = jnp.minimum(abs(x), limit)
    split = x * factor
    high = split - (split - x)
    low, square = x - high, x * x
    rest = ((high * high - square) + 2 * high * low) + low * low
    return jnp.exp(square) * (1 + rest)


@_exp_of_square.defjvp
def _exp_of_square_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _exp_of_square(x)
    return y, t * (2 * x * y)


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, `exp(-x²) ∫₀ˣ exp(t²) dt`.

    Example:
        >>> from gradix.scipy import special
        >>> special.dawsn(1.0).round(4)
        Array(0.5381, dtype=float32)
    """
    x, dtype = real_operand("dawsn", x)
    return (_dawson_series(x) if is_double(x) else _dawson(x)).astype(dtype)


@custom_jvp
def _dawson(x):
    """Dawson's integral in float32, as a quotient of polynomials."""
    far = abs(x) > 4
    y = jnp.where(far, 4, x)
    over, under = [polynomial(c, y * y) for c in DAWSON]
    inverse = 1 / jnp.where(far, x, 4)
    q = inverse * inverse
    return jnp.where(far, inverse * (0.5 + q * polynomial(DAWSON_TAIL, q)), y * over / under)


@_dawson.defjvp
def _dawson_jvp(primals, tangents):
    """The derivative of the series, since 1 - 2x·y loses its digits far from 0."""
    return _dawson(*primals), jvp(_dawson_series, primals, tangents)[1]


def _dawson_series(x):
    """Power series near 0 and far from it; in between by the sampling theorem, `_rybicki`."""
    edge = 10.0 if is_double(x) else 5.0
    size = abs(x)
    small, far = size < 0.5, size > edge
    s = jnp.where(small, x, 0)
    series = jnp.ones_like(x)
    for k in range(13 if is_double(x) else 8, 0, -1):  # DLMF 7.6.2
        series = 1 - 2 * s * s / (2 * k + 1) * series
    y = jnp.where(far, x, 2 * edge)
    q = 1 / (2 * y * y)
    tail = jnp.ones_like(x)
    for k in range(13, 0, -1):
        tail = 1 + (2 * k - 1) * q * tail
    middle = _rybicki(jnp.where(small | far, 1, x))
    return jnp.where(small, s * series, jnp.where(far, tail / (2 * y), middle))


def _rybicki(x):
    """G. Rybicki, "Dawson's integral and the sampling theorem" (1989)."""
    h = 0.25
    center = lax.stop_gradient(2 * jnp.round(x / (2 * h)))
    off = x - center * h
    # exp(-(off - n h)²) = exp(-off²) exp(2 off h)ⁿ exp(-n² h²); n and -n share their divisor.
    up = jnp.exp(2 * h * off)
    down, squares = 1 / up, center * center
    up_by_two, down_by_two = up * up, down * down
    terms = []
    for n in range(1, 28 if is_double(x) else 18, 2):
        pair = up * (center - n) + down * (center + n)
        terms.append(math.exp(-((n * h) ** 2)) * pair / (squares - n * n))
        up, down = up * up_by_two, down * down_by_two
    total = sum(terms[::-1], jnp.zeros_like(x))  # the smallest terms first
    return jnp.exp(-off * off) * total / _ROOT_PI


# -- Fresnel's integrals ---------------------------------------------------------------------------


@custom_jvp
def _fresnel(x):
    size = abs(x)
    small = size < 1.2
    s = jnp.where(small, size, 0)
    q = (math.pi / 2 * s * s) ** 2
    even, odd = jnp.zeros_like(x), jnp.zeros_like(x)
    for k in range(14, -1, -1):  # DLMF 7.6.4, 7.6.6
        even = (1 / (4 * k + 1)) - even * q / ((2 * k + 1) * (2 * k + 2))
        odd = (1 / (4 * k + 3)) - odd * q / ((2 * k + 2) * (2 * k + 3))
    c_small, s_small = s * even, s * (math.pi / 2 * s * s) * odd
    y = jnp.where(small | (size == np.inf), 2, size)
    whole = jnp.round(y)
    part = y - whole
    # This is x² modulo 4; the square of a whole number is 0 or 1 modulo 4.
    turn = jnp.mod(whole, 2) + jnp.mod(2 * whole * part, 4) + part * part
    phase = lax.complex(jnp.cos(math.pi / 2 * turn), jnp.sin(math.pi / 2 * turn))
    half = _ROOT_PI / 2 * y
    large = (1 - phase * _wofz(lax.complex(half, half))) * lax.complex(jnp.full_like(y, 0.5), jnp.full_like(y, 0.5))
    sign = jnp.sign(x)
    pick = lambda near, far: sign * jnp.where(small, near, jnp.where(size == np.inf, 0.5, far))  # noqa: E731
    return pick(s_small, lax.imag(large)), pick(c_small, lax.real(large))


@_fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    angle = math.pi / 2 * x * x
    return _fresnel(x), (t * jnp.sin(angle), t * jnp.cos(angle))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals, `∫₀ˣ sin(πt²/2) dt` and `∫₀ˣ cos(πt²/2) dt`.

    Example:
        >>> from gradix.scipy import special
        >>> s, c = special.fresnel(1.0)
        >>> s.round(4), c.round(4)
        (Array(0.4383, dtype=float32), Array(0.7799, dtype=float32))
    """
    x, dtype = real_operand("fresnel", x)
    s, c = _fresnel(x)
    return s.astype(dtype), c.astype(dtype)


# -- Owen's T --------------------------------------------------------------------------------------


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function, `∫₀ᵃ exp(-h²(1 + t²)/2) / (1 + t²) dt / 2π`.

    D. Owen, "Tables for computing bivariate normal probabilities" (1956), eq. 2.3 for |a| > 1;
    otherwise by Gauss's quadrature.

    Example:
        >>> from gradix.scipy import special
        >>> special.owens_t(0.0, 1.0).round(4)
        Array(0.125, dtype=float32)
    """
    h, a = promote_dtypes_inexact("owens_t", h, a)
    h, dtype = real_operand("owens_t", h)
    return _owens_t(*jnp.broadcast_arrays(h, convert(a, h.aval.dtype))).astype(dtype)


@custom_jvp
def _owens_t(h, a):
    h, size = abs(h), abs(a)
    steep = size > 1
    ah = jnp.where((h == 0) | (size == 0), 0, h * size)
    first = _quadrature(jnp.where(steep, ah, h), jnp.where(steep, 1 / jnp.where(steep, size, 1), size))
    qh, qah = ndtr(-h), ndtr(-ah)
    near = 0.25 - (0.5 - qh) * (0.5 - qah) - first
    far = 0.5 * (qh + qah) - qh * qah - first
    value = jnp.where(steep, jnp.where(h <= 0.67, near, far), first)
    value = jnp.where((h == 0) & (size == np.inf), 0.25, value)
    return jnp.where(jnp.isnan(a) | jnp.isnan(h), np.nan, jnp.where(a < 0, -value, value)).astype(h.dtype)


def _quadrature(h, a):
    """The integral for a ≤ 1, cut off where the integrand is negligible."""
    nodes, weights = np.polynomial.legendre.leggauss(48 if is_double(h) else 24)
    top = jnp.minimum(a, 8.7 / jnp.maximum(h, 1e-3))
    top = jnp.where(h == np.inf, 0, top)
    tables = (jnp.asarray(((nodes + 1) / 2).astype(h.dtype)), jnp.asarray((weights / 2).astype(h.dtype)))

    def add(i, total):
        x = top * tables[0][i]
        square = jnp.where(h == np.inf, 0, h) ** 2
        return total + tables[1][i] * jnp.exp(-square * (1 + x * x) / 2) / (1 + x * x)

    return top / (2 * math.pi) * lax.fori_loop(0, len(nodes), add, jnp.zeros_like(h))


@_owens_t.defjvp
def _owens_t_jvp(primals, tangents):
    (h, a), (dh, da) = primals, tangents
    in_h = -jnp.exp(-h * h / 2) * lax.erf(a * h / math.sqrt(2)) / (2 * math.sqrt(2 * math.pi))
    in_a = jnp.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a))
    return _owens_t(h, a), dh * in_h + da * in_a
