"""Bessel functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import inexact_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def i0e(x: ArrayLike) -> Array:
    """`exp(-|x|) I₀(x)`.

    Example:
        >>> from gradix.scipy import special
        >>> special.i0e(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return lax.bessel_i0e(inexact_operand("i0e", x))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order zero.

    Example:
        >>> from gradix.scipy import special
        >>> special.i0(1.0).round(4)
        Array(1.2661, dtype=float32, weak_type=True)
    """
    return _i0(inexact_operand("i0", x))


@custom_jvp
def _i0(x):
    return jnp.exp(abs(x)) * lax.bessel_i0e(x)


@_i0.defjvp
def _i0_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _i0(x), t * _i1(x)


def i1e(x: ArrayLike) -> Array:
    """`exp(-|x|) I₁(x)`.

    Example:
        >>> from gradix.scipy import special
        >>> special.i1e(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return lax.bessel_i1e(inexact_operand("i1e", x))


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order one.

    Example:
        >>> from gradix.scipy import special
        >>> special.i1(1.0).round(4)
        Array(0.5652, dtype=float32, weak_type=True)
    """
    return _i1(inexact_operand("i1", x))


@custom_jvp
def _i1(x):
    return jnp.exp(abs(x)) * lax.bessel_i1e(x)


@_i1.defjvp
def _i1_jvp(primals, tangents):
    """`I₀ - I₁/x` (DLMF 10.29.3), whose second term is ½ at zero."""
    (x,), (t,) = primals, tangents
    zero = x == 0
    return _i1(x), t * (_i0(x) - jnp.where(zero, 0.5, _i1(x) / jnp.where(zero, 1, x)))


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders 0 to v.

    They are computed by downward recurrence (J. Miller's algorithm, DLMF 3.6(iii)), which is exact
    where `n_iter` is well above v and |z|.

    Args:
        z: real numbers.
        v: the highest order, an integer that is known while compiling.
        n_iter: the order at which the recurrence begins.

    Returns:
        An array of shape (v + 1, *z.shape), one order a row.

    Raises:
        ValueError: `z` is complex, or `v` is negative.

    Example:
        >>> from gradix.scipy import special
        >>> special.bessel_jn(1.0, v=1).round(4)
        Array([0.7652, 0.4401], dtype=float32)
    """
    z = jnp.asarray(inexact_operand("bessel_jn", z))
    if z.aval.dtype in COMPLEX:
        raise ValueError(f"bessel_jn takes real numbers, but z has dtype {z.aval.dtype}. Take its real part, z.real.")
    v, n_iter = int(v), int(n_iter)
    if v < 0:
        raise ValueError(f"bessel_jn: the highest order v must not be negative, got v={v}.")
    z = z.astype(z.dtype)
    top = max(n_iter, v + 1)
    top += top % 2
    zero = z == 0
    x = jnp.where(zero, 1, z)
    tiny = float(np.finfo(z.dtype).tiny) ** 0.5

    def step(state, k):
        here, above, total = state
        below = 2 * lax.convert_element_type(k + 1, z.dtype) * here / x - above
        total = total + jnp.where((k > 0) & (k % 2 == 0), 2 * below, 0)
        # Only ratios of the values matter, so all of them are scaled down before they overflow.
        size = jnp.where(abs(below) > 1 / tiny, tiny, 1).astype(z.dtype)
        return (below * size, here * size, total * size), (below, size)

    orders = np.arange(top - 1, -1, -1, dtype=np.int32)
    (last, _, total), (values, sizes) = lax.scan(
        step, (jnp.full_like(x, tiny), jnp.zeros_like(x), jnp.zeros_like(x)), orders
    )
    # Each value still lacks the scale factors that were applied at later steps.
    later = jnp.flip(jnp.cumprod(jnp.flip(sizes, 0), 0), 0)
    found = jnp.flip(values * later, 0)[: v + 1] / (total + last)[None]
    first = jnp.asarray((np.arange(v + 1) == 0).astype(z.dtype)).reshape(v + 1, *[1] * z.ndim)
    return jnp.where(zero, first, found)
