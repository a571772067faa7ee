"""Polynomials as rows of coefficients, the highest power first."""

from __future__ import annotations

from operator import index as as_int

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.convolution import convolve
from gradix.numpy.decompositions import eigvals
from gradix.numpy.indexing import take_index
from gradix.numpy.joining import concatenate
from gradix.numpy.promotion import (
    as_operand,
    broadcast_to,
    convert,
    number,
    promote_dtypes,
    promote_dtypes_inexact,
)
from gradix.numpy.rearrangement import trim_zeros
from gradix.numpy.shapes import atleast_1d


@replayed(host=host_implementations.polyval)
def polyval(p, x, *, unroll: int = 16) -> Array:
    """The value of a polynomial at each `x`.

    Args:
        p: coefficients, the highest power first.
        x: where to evaluate.
        unroll: accepted for compatibility: the steps follow each other without a loop.

    Raises:
        ValueError: the coefficients have no axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyval(jnp.array([1, 0, 2]), 3)
        Array(11, dtype=int32)
    """
    del unroll
    p, x = promote_dtypes("polyval", p, x)
    if not p.aval.ndim:
        raise ValueError(f"polyval: coefficients must have an axis, got shape {p.aval.shape}.")
    shape = lax.broadcast_shapes(p.aval.shape[1:], x.aval.shape)
    x = broadcast_to(x, shape)
    out = broadcast_to(number(0, p.aval.dtype), shape)
    times, plus = (
        (lax.bitwise_and, lax.bitwise_or) if p.aval.dtype in dtypes.BOOL else (lax.mul, lax.add)
    )
    for i in range(p.aval.shape[0]):
        out = plus(times(out, x), broadcast_to(take_index(p, i), shape))  # Horner's scheme
    return out


def _aligned(name: str, a1, a2) -> tuple:
    """Coefficients of two polynomials, of the shape of the longer one: the other has zeros in front."""
    a, b = [atleast_1d(p) for p in promote_dtypes(name, a1, a2)]
    shape, n = (
        max(a.aval.shape, b.aval.shape, key=lambda s: s[0]),
        min(a.aval.shape[0], b.aval.shape[0]),
    )
    return tuple([_padded(name, p, shape, n) for p in (a, b)])


def _padded(name: str, p, shape: tuple, n: int):
    if p.aval.shape == shape:
        return p
    own, part = p.aval.shape, (n, *shape[1:])
    if len(own) > len(part) or any(k not in (1, m) for k, m in zip(own[::-1], part[::-1])):
        raise ValueError(
            f"{name}: coefficients of shape {own} do not broadcast to the last {n} ones of shape {shape}."
        )
    return lax.pad(
        broadcast_to(p, part),
        number(0, p.aval.dtype),
        [(shape[0] - n, 0, 0)] + [(0, 0, 0)] * (len(shape) - 1),
    )


@replayed
def polyadd(a1, a2) -> Array:
    """The sum of two polynomials.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([5]))
        Array([1, 7], dtype=int32)
    """
    return lax.add(*_aligned("polyadd", a1, a2))


@replayed
def polysub(a1, a2) -> Array:
    """The difference of two polynomials.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polysub(jnp.array([1, 2]), jnp.array([5]))
        Array([ 1, -3], dtype=int32)
    """
    return lax.sub(*_aligned("polysub", a1, a2))


@replayed(host=host_implementations.polymul)
def polymul(a1, a2, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        a1, a2: coefficients, the highest power first.
        trim_leading_zeros: remove leading zeros first, as NumPy does; not possible for traced
            coefficients.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
        Array([ 1.,  0., -1.], dtype=float32)
    """
    a, b = [atleast_1d(p) for p in promote_dtypes_inexact("polymul", a1, a2)]
    if trim_leading_zeros:
        a, b = [_without_leading_zeros(p) for p in (a, b)]
    if not a.aval.size:
        a = lax.full((1,), number(0, b.aval.dtype))
    if not b.aval.size:
        b = lax.full((1,), number(0, a.aval.dtype))
    return convolve(a, b, mode="full")


def _without_leading_zeros(p):
    p = trim_zeros(p, trim="f")
    return p if p.aval.size else lax.full((1,), number(0, p.aval.dtype))


@replayed
def polydiv(u, v, *, trim_leading_zeros: bool = False) -> tuple:
    """The quotient and the remainder of two polynomials.

    Args:
        u, v: the coefficients of dividend and divisor, the highest power first.
        trim_leading_zeros: remove leading zeros of the remainder, as NumPy does; not possible for
            traced coefficients.

    Returns:
        `(quotient, remainder)`, coefficients with the highest power first.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polydiv(jnp.array([1.0, 3.0, 2.0]), jnp.array([1.0, 1.0]))
        (Array([1., 2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    u, v = [atleast_1d(p) for p in promote_dtypes_inexact("polydiv", u, v)]
    m, n = u.aval.shape[0] - 1, v.aval.shape[0] - 1
    scale = lax.div(number(1.0, v.aval.dtype), take_index(v, 0))
    quotient = []
    for k in range(m - n + 1):
        d = lax.mul(scale, take_index(u, k))
        quotient.append(d)
        u = u.at[k : k + n + 1].add(lax.neg(lax.mul(broadcast_to(d, v.aval.shape), v)))
    q = lax.stack(quotient, 0) if quotient else lax.full((1,), number(0, u.aval.dtype))
    if trim_leading_zeros:
        u = _without_leading_zeros(u)
    return q, u


@replayed
def polyder(p, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Raises:
        ValueError: `m` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyder(jnp.array([1.0, 2.0, 3.0]))
        Array([2., 2.], dtype=float32)
    """
    (p,) = promote_dtypes_inexact("polyder", p)
    m = as_int(m)
    if m < 0:
        raise ValueError(f"Order of derivative must be positive, got m={m}.")
    n = p.aval.shape[0]
    if m == 0:
        return p
    if n <= m:
        return lax.slice_in_dim(p, 0, 0)
    powers = np.arange(n)[::-1][: n - m]
    factors = np.prod([powers - i for i in range(m)], axis=0)
    return lax.mul(
        lax.slice_in_dim(p, 0, n - m), convert(as_operand("polyder", factors), p.aval.dtype)
    )


@replayed
def polyint(p, m: int = 1, k=None) -> Array:
    """The m-th integral of a polynomial.

    Args:
        p: coefficients.
        m: how often to integrate.
        k: the constants of integration, by default 0; one, or one for each time.

    Raises:
        ValueError: `m` is negative, or `k` has another length.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyint(jnp.array([2.0, 2.0]))
        Array([1., 2., 0.], dtype=float32)
    """
    m = as_int(m)
    p, constants = promote_dtypes_inexact("polyint", p, 0 if k is None else k)
    if m < 0:
        raise ValueError(f"Order of integral must be positive, got m={m}.")
    constants = atleast_1d(constants)
    if constants.aval.size == 1:
        constants = broadcast_to(constants, (m,))
    if constants.aval.shape != (m,):
        raise ValueError(
            f"k must be a scalar or a rank-1 array of length 1 or m, got shape {constants.aval.shape} for "
            f"m={m}."
        )
    if m == 0:
        return p
    n = p.aval.shape[0]
    both = concatenate([p, constants])
    powers = np.arange(n + m)[::-1]
    divisors = np.ones(n + m)
    # a coefficient is divided once for each time it is integrated
    for i in range(m):
        done = powers - i
        divisors *= np.where(
            (np.arange(n + m) < n + m - 1 - i) & (done > 0), np.maximum(done, 1), 1
        )
    return lax.div(both, convert(as_operand("polyint", divisors), both.aval.dtype))


@replayed(host=host_implementations.poly)
def poly(seq_of_zeros) -> Array:
    """The coefficients of the polynomial with the given zeros and leading coefficient 1.

    Args:
        seq_of_zeros: a row of zeros, or a square matrix, whose eigenvalues they are.

    Raises:
        ValueError: it is neither a row nor a square matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.poly(jnp.array([1.0, 2.0]))
        Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = promote_dtypes_inexact("poly", seq_of_zeros)
    zeros = atleast_1d(zeros)
    if zeros.aval.ndim == 2 and zeros.aval.size and zeros.aval.shape[0] == zeros.aval.shape[1]:
        zeros = eigvals(zeros)
    if zeros.aval.ndim != 1:
        raise ValueError(
            f"input must be 1d or non-empty square 2d array, got shape {zeros.aval.shape}."
        )
    one = lax.full((1,), number(1, zeros.aval.dtype))
    if not zeros.aval.size:
        return lax.reshape(one, ())
    out = one
    for i in range(zeros.aval.shape[0]):
        out = convolve(
            out, concatenate([one, lax.neg(take_index(zeros, slice(i, i + 1)))]), mode="full"
        )
    return out
