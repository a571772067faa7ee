"""Logistic and normal distribution functions and their inverses."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gradix import lax, nn
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import convert, inexact_operand, number
from gradix.numpy.selection import where
from gradix.scipy.special.coefficients import ARTANH

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes

    class _OfFloats(Protocol):
        def __call__(self, x: ArrayLike) -> Array: ...


_HALF_ROOT = math.sqrt(0.5)


def _of_floats(name: str, op, summary: str, example: str) -> _OfFloats:
    def function(x: ArrayLike) -> Array:
        return op(inexact_operand(name, x))

    function.__name__ = function.__qualname__ = name
    head = "    Example:\n        >>> from gradix.scipy import special\n"
    function.__doc__ = f"{summary}\n\n{head}        {example}\n    "
    return function


erf = _of_floats(
    "erf",
    lax.erf,
    "The error function, 2/√π ∫₀ˣ exp(−t²) dt.",
    ">>> special.erf(0.0)\n        Array(0., dtype=float32, weak_type=True)",
)
erfc = _of_floats(
    "erfc",
    lax.erfc,
    "1 − erf(x), accurate for large x.",
    ">>> special.erfc(0.0)\n        Array(1., dtype=float32, weak_type=True)",
)
erfinv = _of_floats(
    "erfinv",
    lax.erf_inv,
    "The inverse of `erf`, on [−1, 1].",
    ">>> special.erfinv(0.0)\n        Array(0., dtype=float32, weak_type=True)",
)
expit = _of_floats(
    "expit", lax.logistic, "1 / (1 + e⁻ˣ).", ">>> special.expit(0.0)\n        Array(0.5, dtype=float32, weak_type=True)"
)


@custom_jvp
def _logit(x):
    """Near x = ½ it is 2·artanh(2x - 1), which stays accurate where the logarithm is near 0."""
    s = 2 * x - 1
    z = s * s
    near = 2 * s + 2 * s * z * polynomial(ARTANH[x.aval.dtype], z)
    far = abs(s) > 0.4
    return where(far, lax.log(x / (1 - x)), near)


@_logit.defjvp
def _logit_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _logit(x), t / (x * (1 - x))


def logit(x: ArrayLike) -> Array:
    """log(x / (1 − x)), the inverse of `expit`.

    Example:
        >>> from gradix.scipy import special
        >>> special.logit(0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    x = inexact_operand("logit", x)
    if x.aval.dtype in COMPLEX:
        return lax.log(x / (1 - x))
    wide = np.dtype("float32") if x.aval.dtype.itemsize < 4 else x.aval.dtype
    return convert(_logit(convert(x, wide, x.aval.weak_type)), x.aval.dtype, x.aval.weak_type)


def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    Example:
        >>> from gradix.scipy import special
        >>> special.ndtr(0.0)
        Array(0.5, dtype=float32)
    """
    x = inexact_operand("ndtr", x)
    x = lax.convert_element_type(x, x.aval.dtype)
    return _ndtr(x)


def _ndtr(x):
    w = x * _HALF_ROOT
    size = abs(w)
    tail = lax.erfc(size)
    return 0.5 * where(size < _HALF_ROOT, 1 + lax.erf(w), where(w > 0, 2 - tail, tail))


# The rational approximations of Cephes (Moshier), with the highest power first: one for the middle,
# one for the near part of the tails, one for their far part.
_MIDDLE = (
    (
        -5.99633501014107895267e1,
        9.80010754185999661536e1,
        -5.66762857469070293439e1,
        1.39312609387279679503e1,
        -1.23916583867381258016e0,
    ),
    (
        1.0,
        1.95448858338141759834e0,
        4.67627912898881538453e0,
        8.63602421390890590575e1,
        -2.25462687854119370527e2,
        2.00260212380060660359e2,
        -8.20372256168333339912e1,
        1.59056225126211695515e1,
        -1.18331621121330003142e0,
    ),
)
_NEAR = (
    (
        4.05544892305962419923e0,
        3.15251094599893866154e1,
        5.71628192246421288162e1,
        4.40805073893200834700e1,
        1.46849561928858024014e1,
        2.18663306850790267539e0,
        -1.40256079171354495875e-1,
        -3.50424626827848203418e-2,
        -8.57456785154685413611e-4,
    ),
    (
        1.0,
        1.57799883256466749731e1,
        4.53907635128879210584e1,
        4.13172038254672030440e1,
        1.50425385692907503408e1,
        2.50464946208309415979e0,
        -1.42182922854787788574e-1,
        -3.80806407691578277194e-2,
        -9.33259480895457427372e-4,
    ),
)
_FAR = (
    (
        3.23774891776946035970e0,
        6.91522889068984211695e0,
        3.93881025292474443415e0,
        1.33303460815807542389e0,
        2.01485389549179081538e-1,
        1.23716634817820021358e-2,
        3.01581553508235416007e-4,
        2.65806974686737550832e-6,
        6.23974539184983293730e-9,
    ),
    (
        1.0,
        6.02427039364742014255e0,
        3.67983563856160859403e0,
        1.37702099489081330271e0,
        2.16236993594496635890e-1,
        1.34204006088543189037e-2,
        3.28014464682127739104e-4,
        2.89247864745380683936e-6,
        6.79019408009981274425e-9,
    ),
)


def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: a standard normal number is below `ndtri(p)` with probability `p`.

    Args:
        p: probabilities, of dtype float32 or float64.

    Returns:
        An array of the shape and dtype of `p`; NaN outside [0, 1].

    Raises:
        TypeError: `p` has another dtype than float32 and float64.

    Example:
        >>> from gradix.scipy import special
        >>> special.ndtri(0.5)
        Array(0., dtype=float32)
    """
    p = inexact_operand("ndtri", p)
    if p.aval.dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise TypeError(
            f"ndtri takes float32 or float64, but p has dtype {p.aval.dtype}. Convert it with p.astype('float32')."
        )
    return _ndtri(p)


@custom_jvp
def _ndtri(p):
    upper = p > 1 - math.exp(-2)
    q = where(upper, 1 - p, p)
    q = where(q == 0, 0.5, q)
    w = q - 0.5
    square = w * w
    middle = (w + w * square * _ratio(_MIDDLE, square)) * -math.sqrt(2 * math.pi)
    z = lax.sqrt(-2 * lax.log(q))
    first = z - lax.log(z) / z
    tail = where(z >= 8, first - _ratio(_FAR, 1 / z) / z, first - _ratio(_NEAR, 1 / z) / z)
    x = where(q > math.exp(-2), middle, tail)
    x = where(upper, x, -x)
    return where(p == 0, -math.inf, where(p == 1, math.inf, x))


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    (p,), (t,) = primals, tangents
    x = _ndtri(p)
    return x, t * (math.sqrt(2 * math.pi) * lax.exp(x * x / 2))  # 1 / density


def _ratio(polynomials, x):
    over, under = [polynomial(c, x) for c in polynomials]
    return over / under


def polynomial(coefficients, x):
    """The polynomial at `x`, with the coefficients of the highest power first."""
    total: Any = number(coefficients[0], x.aval.dtype)
    for c in coefficients[1:]:
        total = total * x + c
    return total


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), which is accurate also where `ndtr(x)` rounds to 0 or 1.

    Args:
        x: an array of dtype float32 or float64.
        series_order: how many terms of the asymptotic series to use far below 0, at most 30.

    Raises:
        TypeError: `x` has another dtype, or `series_order` is not an integer.
        ValueError: `series_order` is not within [0, 30].

    Example:
        >>> from gradix.scipy import special
        >>> special.log_ndtr(-100.0).round(2)
        Array(-5005.52, dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError(f"series_order must be a Python integer, got {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"series_order must be within [0, 30], got {series_order}.")
    x = inexact_operand("log_ndtr", x)
    if x.aval.dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise TypeError(
            f"log_ndtr takes float32 or float64, but x has dtype {x.aval.dtype}. Convert it with x.astype('float32')."
        )
    return _log_ndtr(x, series_order)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _log_ndtr(x, series_order):
    lower = number(-20.0 if x.aval.dtype.itemsize == 8 else -10.0, x.aval.dtype)
    far, above = x < lower, x > 0
    # The tail serves both sides: above 0 the result is log1p(-tail), which keeps its digits.
    tail = 0.5 * lax.erfc(abs(x) * _HALF_ROOT)
    z = lax.min(x, lower)
    share = _series(z, series_order) / (z * -math.sqrt(2 * math.pi))
    below = lax.log(where(far, share, where(above, 0.5, tail)))
    below = where(far, below - x * x / 2, below)
    return where(above, lax.log1p(-where(above, tail, 0)), below)


@_log_ndtr.defjvp
def _log_ndtr_jvp(series_order, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _log_ndtr(x, series_order)
    near = lax.exp(-(x * x / 2) - y - 0.5 * math.log(2 * math.pi))  # density / ndtr
    # Far below 0 the exponents would cancel; the series is already divided by the density.
    far = number(-20.0 if x.aval.dtype.itemsize == 8 else -10.0, x.aval.dtype)
    low = lax.min(x, far)
    return y, t * where(x < far, -low / _series(low, max(series_order, 10)), near)


def _series(x, order: int):
    """1 − 1/x² + 3/x⁴ − 15/x⁶ … (Abramowitz and Stegun 26.2.12), nested to avoid overflow."""
    inverse, total = 1 / x, lax.full_like(x, 1)
    for n in range(order, 0, -1):
        total = 1 - (2 * n - 1) * (inverse * inverse) * total
    return total


def softmax(x: ArrayLike, /, *, axis: Axes | None = None) -> Array:
    """eˣ / Σ eˣ along `axis`, which is one axis, several, or by default all of them.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import special
        >>> special.softmax(jnp.zeros(2))
        Array([0.5, 0.5], dtype=float32)
    """
    return nn.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: Axes | None = None) -> Array:
    """The logarithm of `softmax` along `axis`, accurate also where `softmax` underflows.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import special
        >>> special.log_softmax(jnp.zeros(2))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return nn.log_softmax(x, axis=axis)
