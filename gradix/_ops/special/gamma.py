"""The logarithm of the gamma function and its derivatives, and Hurwitz's zeta."""
from __future__ import annotations

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, mul
from gradix._ops.families import Elementwise
from gradix._ops.operands import operands, scalar_like

_special = lazy_module("scipy.special")
_REAL = INEXACT - COMPLEX


def _host(function):
    """Evaluate in float64, and half precisions in float32."""
    def host(x):
        wide = x if x.dtype == np.float64 else x.astype(np.float64)
        return np.asarray(function(wide)).astype(x.dtype)
    return host


def _host_lgamma(x):
    return np.where(np.isneginf(x), np.inf, _special.gammaln(x))


def _host_digamma(x):
    return np.where((x == 0) | np.isneginf(x), np.nan, _special.psi(x))


def _polygamma_in_m(t, m, x):
    raise ValueError("polygamma gradient with respect to m is not supported: m is the order of a derivative. Give it "
                     "as a constant, or differentiate in x.")


# zeta and polygamma have no host rule: SciPy's differ from XLA's at the poles.
lgamma_p = Elementwise("lgamma", _host(_host_lgamma), lambda t, x: mul(t, digamma(x)), hlo="chlo.lgamma", dtypes=_REAL, singular=True)
digamma_p = Elementwise("digamma", _host(_host_digamma), lambda t, x: mul(t, polygamma(scalar_like(x, 1), x)),
                        hlo="chlo.digamma", dtypes=_REAL, singular=True)
polygamma_p = Elementwise("polygamma", None, _polygamma_in_m,
                          lambda t, m, x: mul(t, polygamma(add(m, scalar_like(m, 1)), x)), hlo="chlo.polygamma",
                          dtypes=_REAL, singular=True)
zeta_p = Elementwise("zeta", None, hlo="chlo.zeta", dtypes=_REAL, singular=True)


def lgamma(x):
    """The logarithm of the size of the gamma function.

    Example:
        >>> from gradix import lax
        >>> lax.lgamma(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(lgamma_p, operands("lgamma", x), {})


def digamma(x):
    """The derivative of `lgamma`.

    Example:
        >>> from gradix import lax
        >>> lax.digamma(1.0).round(4)
        Array(-0.5772, dtype=float32, weak_type=True)
    """
    return bind(digamma_p, operands("digamma", x), {})


def polygamma(m, x):
    """The derivative of `digamma` of order `m`, a whole number of floating type.

    Example:
        >>> from gradix import lax
        >>> lax.polygamma(1.0, 1.0).round(4)
        Array(1.6449, dtype=float32, weak_type=True)
    """
    return bind(polygamma_p, operands("polygamma", m, x), {})


def zeta(x, q):
    """Hurwitz's zeta function, the sum of `(q + k)⁻ˣ` over k = 0, 1, …

    Example:
        >>> from gradix import lax
        >>> lax.zeta(2.0, 1.0).round(4)
        Array(1.6449, dtype=float32, weak_type=True)
    """
    return bind(zeta_p, operands("zeta", x, q), {})
