"""Associated Legendre functions and spherical harmonics; Bernoulli's numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._core.trace import is_unknown
from gradix.numpy.axes import known_int
from gradix.numpy.promotion import as_operand, inexact_operand, promote_dtypes_inexact

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B₀ to Bₙ, with B₁ = -½.

    Args:
        n: the index of the last number, a non-negative integer.

    Raises:
        ValueError: `n` is negative.

    Example:
        >>> from gradix.scipy import special
        >>> special.bernoulli(2).round(4)
        Array([ 1.    , -0.5   ,  0.1667], dtype=float32)
    """
    n = known_int(n, "argument n of bernoulli")
    if n < 0:
        raise ValueError(f"n must be a non-negative integer, got {n}.")
    values = [float(b) for b in _exact_bernoulli(min(n, 60))]
    # From index 61 on, the zeta function of DLMF 25.6.2 rounds to 1.
    for k in range(61, n + 1):
        size = 0.0 if k % 2 else 2 * math.exp(min(math.lgamma(k + 1) - k * math.log(2 * math.pi), 709))
        values.append(-size if k % 4 == 0 else size)
    return jnp.asarray(np.array(values).astype(dtypes.python_scalar_dtype(float)))


def _exact_bernoulli(n: int) -> list:
    """B₀ to Bₙ as fractions, by `Σₖ C(m + 1, k) Bₖ = 0`."""
    found: list[Any] = [Fraction(1)]
    for m in range(1, n + 1):
        found.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(found)) / (m + 1))
    return found


def _orders(m, n) -> tuple[int, int]:
    m, n = known_int(m, "order m"), known_int(n, "degree n")
    if m < 0 or n < 0:
        raise ValueError(f"The order m and the degree n must not be negative, got m={m}, n={n}.")
    return m, n


def _vector(name: str, z):
    z = inexact_operand(name, z)
    if z.aval.ndim != 1:
        raise ValueError(f"{name}: z must be a 1D array, got shape {z.aval.shape}. Flatten it with z.ravel().")
    return z


def _table(m: int, n: int, z, root, normalized: bool):
    """All `Pₗᵐ(z)`, of shape (m + 1, n + 1, *z.shape); `root` is √(1 - z²).

    The recurrence goes upwards in the degree l from `Pₘᵐ` (DLMF 14.10.3).
    """
    zero, rows = jnp.zeros_like(z), []
    start = jnp.full_like(z, math.sqrt(1 / (4 * math.pi)) if normalized else 1)
    for order in range(m + 1):
        if order:
            start = -start * root * (math.sqrt((2 * order + 1) / (2 * order)) if normalized else 2 * order - 1)
        row, before, here = [zero] * min(order, n + 1), zero, start
        for degree in range(order, n + 1):
            row.append(here)
            up, back = _step(degree, order, normalized)
            before, here = here, up * z * here - back * before
        rows.append(jnp.stack(row))
    return jnp.stack(rows)


def _step(degree: int, order: int, normalized: bool) -> tuple[float, float]:
    """The recurrence's weights for the next degree: those of the last two degrees' values."""
    after = degree + 1
    if not normalized:
        return (2 * degree + 1) / (after - order), (degree + order) / (after - order)
    up = math.sqrt((2 * degree + 1) * (2 * degree + 3) / ((after - order) * (after + order)))
    back = (
        math.sqrt(
            (2 * degree + 3)
            * (degree - order)
            * (degree + order)
            / ((2 * degree - 1) * (after - order) * (after + order))
        )
        if degree > order
        else 0.0
    )
    return up, back


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of the orders 0 to m and the degrees 0 to n.

    They have the Condon-Shortley sign, (-1)ᵐ.

    Args:
        m: the highest order.
        n: the highest degree.
        z: a vector of numbers between -1 and 1.
        is_normalized: whether to multiply by the normalization of spherical harmonics.

    Returns:
        An array of shape (m + 1, n + 1, len(z)).

    Raises:
        ValueError: `z` is not a vector, or `m` or `n` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import special
        >>> special.lpmn_values(1, 1, jnp.array([0.6]), False)[:, :, 0].round(4)
        Array([[ 1. ,  0.6],
               [ 0. , -0.8]], dtype=float32)
    """
    m, n = _orders(m, n)
    z = _vector("lpmn_values", z)
    return _table(m, n, z, jnp.sqrt((1 - z) * (1 + z)), bool(is_normalized))


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions of the orders 0 to m and degrees 0 to n, with derivatives.

    Args:
        m: the highest order.
        n: the highest degree.
        z: a vector of numbers between -1 and 1.

    Returns:
        The values and their derivatives in z, two arrays of shape (m + 1, n + 1, len(z)). For
        degrees above 0 the derivatives are NaN at z = -1 and z = 1.

    Raises:
        ValueError: `z` is not a vector, or `m` or `n` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import special
        >>> special.lpmn(1, 1, jnp.array([0.6]))[1][:, :, 0].round(4)
        Array([[0.  , 1.  ],
               [0.  , 0.75]], dtype=float32)
    """
    m, n = _orders(m, n)
    z = _vector("lpmn", z)
    points = z[None, None, :]
    values = _table(m, n, z, jnp.sqrt((1 - z) * (1 + z)), False)
    degrees, orders = np.arange(n + 1)[None, :, None], np.arange(m + 1)[:, None, None]
    inside = jnp.asarray((degrees > 0) & (degrees >= orders))
    sums = degrees + orders
    before = jnp.pad(values, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    degrees, sums = jnp.asarray(degrees.astype(z.dtype)), jnp.asarray(sums.astype(z.dtype))
    slopes = (degrees * points * values - sums * before) / (points * points - 1)
    return values, jnp.where(inside, slopes, 0)


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """The spherical harmonics `Yₙᵐ(θ, φ)`; the four operands broadcast.

    Args:
        n: the degrees, which are non-negative integers.
        m: the orders, which are integers between -n and n.
        theta: the polar angles; beyond [0, π] the Legendre functions are those of cos(theta).
        phi: the azimuthal angles.
        diff_n: only None is supported.
        n_max: the highest degree; by default the largest value of `n`.

    Returns:
        A complex array of the shape to which the operands broadcast.

    Raises:
        NotImplementedError: `diff_n` is given.
        ValueError: `n` is traced and `n_max` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import special
        >>> special.sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0])).real.round(4)
        Array([0.4886], dtype=float32)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; differentiate with gradix.grad or gradix.jvp.")
    n, m = as_operand("sph_harm_y", n), as_operand("sph_harm_y", m, 1)
    theta, phi = promote_dtypes_inexact("sph_harm_y", theta, phi)
    if n_max is None:
        if is_unknown(n):
            raise ValueError("sph_harm_y: the degrees n are traced, so the highest is not known; pass it as n_max.")
        n_max = int(np.max(np.asarray(n), initial=0))
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    sine = jnp.sin(theta)  # √(1 - cos² θ), which is not negative where theta is beyond [0, π]
    table = _table(n_max, n_max, jnp.cos(theta), jnp.where(sine < 0, -sine, sine), True)
    order = abs(m)
    degree, row = jnp.clip(n, 0, n_max)[None, None], jnp.clip(order, 0, n_max)[None, None]
    value = jnp.take_along_axis(jnp.take_along_axis(table, row, 0), degree, 1)[0, 0]
    value = jnp.where((order > n) | (n < 0), 0, value)
    value = jnp.where((m < 0) & (order % 2 == 1), -value, value)
    angle = m.astype(phi.dtype) * phi
    return lax.complex(value * jnp.cos(angle), value * jnp.sin(angle))
