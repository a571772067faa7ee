"""The logarithm of the gamma function of complex numbers."""

from __future__ import annotations

import math

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix.scipy.special.faddeeva import is_double

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _shifted(z):
    """z + n, for which Stirling's series holds, `Σ log(z + k)` and `Σ 1/(z + k)` for k < n.

    The sum of the logarithms, unlike the logarithm of the product, is continuous everywhere except
    on the negative real axis.
    """
    radius = 9.0 if is_double(z) else 5.0
    close = lambda v: (lax.real(v) < radius) & (abs(lax.imag(v)) < radius)  # noqa: E731

    def step(state):
        v, logs, quotients = state
        here = close(v)
        return (jnp.where(here, v + 1, v), logs + jnp.where(here, jnp.log(v), 0), quotients + jnp.where(here, 1 / v, 0))

    zero = jnp.zeros_like(z)
    return lax.while_loop(lambda state: jnp.any(close(state[0])), step, (z, zero, zero))


@custom_jvp
def log_gamma(z):
    """log Γ(z), which is analytic except on the negative real axis (DLMF 5.11.1, 5.5.1)."""
    v, logs, _ = _shifted(z)
    q, total = 1 / (v * v), jnp.zeros_like(z)
    for c in _STIRLING[::-1]:
        total = total * q + c
    return (v - 0.5) * jnp.log(v) - v + math.log(2 * math.pi) / 2 + total / v - logs


@custom_jvp
def _digamma(z):
    v, _, quotients = _shifted(z)
    q, total = 1 / (v * v), jnp.zeros_like(z)
    for c in _PSI[::-1]:
        total = total * q + c
    return jnp.log(v) - 0.5 / v - total * q - quotients


@log_gamma.defjvp
def _log_gamma_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return log_gamma(z), t * _digamma(z)


@_digamma.defjvp
def _digamma_jvp(primals, tangents):
    raise NotImplementedError(
        "The second derivative of gamma and loggamma is not implemented for complex numbers. "
        "Differentiate once, or pass real numbers."
    )
