"""The incomplete gamma functions and their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.arithmetic import div, mul, sub
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import eq
from gradix._ops.complex_parts import neg
from gradix._ops.families import Elementwise
from gradix._ops.formulas import HOST, host, program
from gradix._ops.operands import operands, scalar_like
from gradix._ops.select import choose
from gradix._ops.special import igamma_formulas
from gradix._ops.special.gamma import digamma, lgamma
from gradix._ops.special.igamma_formulas import is_near_large_mean, temme_part
from gradix._ops.transcendental import exp, log

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_special = lazy_module("scipy.special")
_REAL = INEXACT - COMPLEX


def _by_scipy(function, upper: bool):
    """A host rule by SciPy in float64.

    Near the mean of a large `a`, where SciPy loses digits, it uses Temme's expansion.
    """

    def rule(a, x):
        kind = np.result_type(a, x)
        a, x = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
        with np.errstate(all="ignore"):
            out = np.asarray(function(a, x))
            near = is_near_large_mean(HOST, a, x) & np.isfinite(a)
            if near.any():
                out = out.copy() if out.ndim else np.array(out)
                out[near] = temme_part(HOST, a[near], x[near], upper)
            if np.isinf(x).any() and np.isinf(a).any():
                out = np.where((x == np.inf) & (a == np.inf), 0.0 if upper else 1.0, out)
        return out.astype(kind)

    return rule


def _density(a, x):
    """x^(a-1) e^-x / Γ(a), the derivative of P in x."""
    less = sub(a, scalar_like(a, 1))
    no_power = bitwise_and(eq(a, scalar_like(a, 1)), eq(x, scalar_like(x, 0)))  # 0·log 0
    power = choose(no_power, mul(less, log(x)), scalar_like(x, 0))
    return exp(sub(sub(power, x), lgamma(a)))


def _second_in_a(t, a, x):
    raise NotImplementedError(
        "igamma_grad_a has no derivative in a: the second derivative of igamma in a is not "
        "known. Differentiate igamma in a once, or wrap it in custom_jvp with a rule of your "
        "own."
    )


def _slope_in_a(t, a, x):
    raise NotImplementedError(
        "random_gamma_grad has no derivative in a: the second derivative of igamma in a is not "
        "known. A second derivative of gamma draws in their shape needs it, so differentiate "
        "the draws once."
    )


def _slope_in_x(t, a, x):
    """Of g = -∂P/∂a / p, with the density p of the draw: ∂g/∂x = ψ(a) - log x - g·∂(log p)/∂x."""
    less = sub(a, scalar_like(a, 1))
    log_slope = sub(div(less, x), scalar_like(x, 1))
    return mul(t, sub(sub(digamma(a), log(x)), mul(random_gamma_grad(a, x), log_slope)))


igamma_p = Elementwise(
    "igamma",
    _by_scipy(lambda a, x: _special.gammainc(a, x), upper=False),
    lambda t, a, x: mul(t, igamma_grad_a(a, x)),
    lambda t, a, x: mul(t, _density(a, x)),
    hlo=program(igamma_formulas.igamma),
    dtypes=_REAL,
)
igammac_p = Elementwise(
    "igammac",
    _by_scipy(lambda a, x: _special.gammaincc(a, x), upper=True),
    lambda t, a, x: mul(t, neg(igamma_grad_a(a, x))),
    lambda t, a, x: mul(t, neg(_density(a, x))),
    hlo=program(igamma_formulas.igammac),
    dtypes=_REAL,
)
igamma_grad_a_p = Elementwise(
    "igamma_grad_a",
    host(igamma_formulas.igamma_grad_a),
    _second_in_a,
    lambda t, a, x: mul(t, mul(_density(a, x), sub(log(x), digamma(a)))),
    hlo=program(igamma_formulas.igamma_grad_a),
    dtypes=_REAL,
)
random_gamma_grad_p = Elementwise(
    "random_gamma_grad",
    host(igamma_formulas.random_gamma_grad),
    _slope_in_a,
    _slope_in_x,
    hlo=program(igamma_formulas.random_gamma_grad),
    dtypes=_REAL,
)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function `P(a, x) = ∫₀ˣ t^(a-1) e⁻ᵗ dt / Γ(a)`.

    It has first derivatives in both operands.

    Args:
        a: positive floats, the shape of the gamma distribution.
        x: floats, not negative, of the dtype of `a`.

    Returns:
        Floats in [0, 1]; NaN where `a` or `x` is negative.

    Raises:
        TypeError: the dtypes differ or are not floats, or the shapes do not go together.

    Example:
        >>> from gradix import lax
        >>> lax.igamma(1.0, 2.0).round(4)
        Array(0.8647, dtype=float32, weak_type=True)
    """
    return bind(igamma_p, operands("igamma", a, x), {})


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function `Q = 1 - P`, accurate where it is small.

    Args:
        a: positive floats, the shape of the gamma distribution.
        x: floats, not negative, of the dtype of `a`.

    Returns:
        Floats in [0, 1]; NaN where `a` or `x` is negative.

    Raises:
        TypeError: the dtypes differ or are not floats, or the shapes do not go together.

    Example:
        >>> from gradix import lax
        >>> lax.igammac(1.0, 2.0).round(4)
        Array(0.1353, dtype=float32, weak_type=True)
    """
    return bind(igammac_p, operands("igammac", a, x), {})


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma(a, x)` in `a`.

    Args:
        a: positive floats.
        x: floats, not negative, of the dtype of `a`.

    Returns:
        Floats of the common shape; NaN where `a` is not positive or `x` is negative.

    Raises:
        TypeError: the dtypes differ or are not floats, or the shapes do not go together.

    Example:
        >>> from gradix import lax
        >>> lax.igamma_grad_a(1.0, 1.0).round(4)
        Array(-0.4317, dtype=float32, weak_type=True)
    """
    return bind(igamma_grad_a_p, operands("igamma_grad_a", a, x), {})


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """How a gamma random number `x` moves with the shape `a` while `igamma(a, x)` stays: `dx/da`.

    This is the derivative of the draw by implicit reparameterisation (Figurnov, Mohamed and Mnih
    2018). It has a derivative in `x`, none in `a`.

    Args:
        a: positive floats, the shape of the gamma distribution.
        x: floats, not negative, of the dtype of `a`: numbers drawn.

    Returns:
        Floats of the common shape; NaN where `a` is not positive or `x` is negative.

    Raises:
        TypeError: the dtypes differ or are not floats, or the shapes do not go together.

    Example:
        >>> from gradix import lax
        >>> lax.random_gamma_grad(1.0, 1.0).round(4)
        Array(1.1736, dtype=float32, weak_type=True)
    """
    return bind(random_gamma_grad_p, operands("random_gamma_grad", a, x), {})
