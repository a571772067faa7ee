"""Polynomials, given by vectors of coefficients, the highest power first."""

from __future__ import annotations

from operator import index as as_int
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dimensions.expression import check_some, has_counts, is_count, larger
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.broadcasting import atleast_1d
from gradix.numpy.convolution import convolve
from gradix.numpy.decompositions import eigvals
from gradix.numpy.indexing import take_index
from gradix.numpy.joining import concatenate
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, promote_dtypes, promote_dtypes_inexact
from gradix.numpy.rearrangement import concrete, trim_zeros
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


@replayed(host=host_implementations.polyval)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial at the elements of `x`.

    Args:
        p: coefficients along the first axis, the highest power first; further axes hold more
            polynomials and broadcast with `x`.
        x: an array of places where to evaluate.
        unroll: it has no effect, since all steps are unrolled.

    Returns:
        An array of the broadcast shape, in the promoted dtype.

    Raises:
        ValueError: `p` is a scalar, or the shapes do not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyval(jnp.array([1, 0, 2]), 3)
        Array(11, dtype=int32)
    """
    del unroll
    p, x = promote_dtypes("polyval", p, x)
    if not p.aval.ndim:
        raise ValueError("polyval: p must have at least one axis, got a scalar.")
    shape = lax.broadcast_shapes(p.aval.shape[1:], x.aval.shape)
    x = broadcast_to(x, shape)
    out = broadcast_to(number(0, p.aval.dtype), shape)
    times, plus = (lax.bitwise_and, lax.bitwise_or) if p.aval.dtype in dtypes.BOOL else (lax.mul, lax.add)
    if is_count(p.aval.shape[0]):
        step = lambda out, c: (plus(times(out, x), broadcast_to(c, shape)), None)  # noqa: E731
        return lax.scan(step, out, p)[0]
    for i in range(p.aval.shape[0]):
        out = plus(times(out, x), broadcast_to(take_index(p, i), shape))  # Horner's scheme
    return out


def _aligned(name: str, a1, a2) -> tuple:
    """Coefficients of two polynomials; the shorter ones are padded with zeros in front."""
    a, b = [atleast_1d(p) for p in promote_dtypes(name, a1, a2)]
    if has_counts((a.aval.shape[0], b.aval.shape[0])):
        return _aligned_counts(name, a, b)
    shape, n = (max(a.aval.shape, b.aval.shape, key=lambda s: s[0]), min(a.aval.shape[0], b.aval.shape[0]))
    return tuple([_padded(name, p, shape, n) for p in (a, b)])


def _aligned_counts(name: str, a, b) -> tuple:
    """As `_aligned`, where values decide a number of coefficients."""
    if a.aval.shape[1:] != b.aval.shape[1:]:
        raise ValueError(f"{name}: coefficients of shapes {a.aval.shape} and {b.aval.shape} differ in their last axes.")
    n, rest = larger(a.aval.shape[0], b.aval.shape[0]), [(0, 0, 0)] * (a.aval.ndim - 1)
    return tuple([lax.pad(p, number(0, p.aval.dtype), [(n - p.aval.shape[0], 0, 0), *rest]) for p in (a, b)])


def _padded(name: str, p, shape: tuple, n: int):
    if p.aval.shape == shape:
        return p
    own, part = p.aval.shape, (n, *shape[1:])
    if len(own) > len(part) or any(k not in (1, m) for k, m in zip(own[::-1], part[::-1])):
        raise ValueError(
            f"{name}: coefficients of shape {own} do not broadcast to the last {n} of those of shape {shape}."
        )
    return lax.pad(
        broadcast_to(p, part), number(0, p.aval.dtype), [(shape[0] - n, 0, 0)] + [(0, 0, 0)] * (len(shape) - 1)
    )


@replayed
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The coefficients of the sum of two polynomials, in the promoted dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([5]))
        Array([1, 7], dtype=int32)
    """
    return lax.add(*_aligned("polyadd", a1, a2))


@replayed
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The coefficients of the difference of two polynomials, in the promoted dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polysub(jnp.array([1, 2]), jnp.array([5]))
        Array([ 1, -3], dtype=int32)
    """
    return lax.sub(*_aligned("polysub", a1, a2))


@replayed(host=host_implementations.polymul)
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The coefficients of the product of two polynomials.

    Args:
        a1, a2: vectors of n and m coefficients, the highest power first.
        trim_leading_zeros: whether to remove leading zeros first; the coefficients must be known
            for that.

    Returns:
        A vector of n + m - 1 coefficients, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
        Array([ 1.,  0., -1.], dtype=float32)
    """
    a, b = [atleast_1d(p) for p in promote_dtypes_inexact("polymul", a1, a2)]
    if trim_leading_zeros:
        a, b = [_without_leading_zeros(p) for p in (a, b)]
    check_some("polymul", (*a.aval.shape, *b.aval.shape))
    if not a.aval.size:
        a = lax.full((1,), number(0, b.aval.dtype))
    if not b.aval.size:
        b = lax.full((1,), number(0, a.aval.dtype))
    return convolve(a, b, mode="full")


def _without_leading_zeros(p):
    concrete(p, "How many leading zeros a polynomial has determines the shape of the result.")
    p = trim_zeros(p, trim="f")
    return p if p.aval.size else lax.full((1,), number(0, p.aval.dtype))


@replayed
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple:
    """The coefficients of the quotient and of the remainder of two polynomials.

    Args:
        u, v: vectors of the coefficients of the dividend and the divisor, the highest power first.
        trim_leading_zeros: whether to remove leading zeros of the remainder; the coefficients must
            be known for that.

    Returns:
        A pair of vectors, in a floating or complex dtype; the remainder has the size of `u`.

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
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The coefficients of the m-th derivative of a polynomial, in a floating or complex dtype.

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
        raise ValueError(f"polyder: m must not be negative, got {m}.")
    n = p.aval.shape[0]
    if m == 0:
        return p
    if is_count(n):
        n = larger(n - m, 0)
        powers = lax.sub(as_operand("polyder", n - 1 + m), lax.iota(np.int32, n))
        factors = powers
        for i in range(1, m):
            factors = factors * (powers - i)
        return lax.mul(lax.slice_in_dim(p, 0, n), convert(factors, p.aval.dtype))
    if n <= m:
        return lax.slice_in_dim(p, 0, 0)
    powers = np.arange(n)[::-1][: n - m]
    factors = np.prod([powers - i for i in range(m)], axis=0)
    return lax.mul(lax.slice_in_dim(p, 0, n - m), convert(as_operand("polyder", factors), p.aval.dtype))


@replayed
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The coefficients of the m-th integral of a polynomial.

    Args:
        p: a vector of n coefficients, the highest power first.
        m: how many times to integrate.
        k: the constants of integration, one for all times or one for each; 0 by default.

    Returns:
        A vector of n + m coefficients, in a floating or complex dtype.

    Raises:
        ValueError: `m` is negative, or `k` does not have one element or m.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyint(jnp.array([2.0, 2.0]))
        Array([1., 2., 0.], dtype=float32)
    """
    m = as_int(m)
    p, constants = promote_dtypes_inexact("polyint", p, 0 if k is None else k)
    if m < 0:
        raise ValueError(f"polyint: m must not be negative, got {m}.")
    constants = atleast_1d(constants)
    if constants.aval.size == 1:
        constants = broadcast_to(constants, (m,))
    if constants.aval.shape != (m,):
        raise ValueError(
            f"polyint: k must be a scalar or a vector of 1 or m={m} constants, got shape {constants.aval.shape}."
        )
    if m == 0:
        return p
    n = p.aval.shape[0]
    both = concatenate([p, constants])
    if is_count(n):
        return lax.div(both, convert(_divisors(n + m, m), both.aval.dtype))
    powers = np.arange(n + m)[::-1]
    divisors = np.ones(n + m)
    # Each coefficient is divided as many times as it is integrated.
    for i in range(m):
        done = powers - i
        divisors *= np.where((np.arange(n + m) < n + m - 1 - i) & (done > 0), np.maximum(done, 1), 1)
    return lax.div(both, convert(as_operand("polyint", divisors), both.aval.dtype))


def _divisors(n, m: int):
    """By what `polyint` divides, for a number of coefficients that values decide."""
    place = lax.iota(np.int32, n)
    last = lax.convert_element_type(as_operand("polyint", n - 1), np.int32)
    out = lax.full((n,), number(1, np.dtype("float32")))
    for i in range(m):
        done = last - place - i
        is_divided = lax.bitwise_and(place < last - i, done > 0)
        out = out * where(is_divided, done, 1)
    return out


@replayed(host=host_implementations.poly)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with the given zeros and leading coefficient 1.

    Args:
        seq_of_zeros: a vector of n zeros, or an n by n matrix whose eigenvalues they are.

    Returns:
        A vector of n + 1 coefficients, the highest power first, in a floating or complex dtype.

    Raises:
        ValueError: `seq_of_zeros` is neither a vector nor a square matrix.

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
            f"poly: seq_of_zeros must be a vector or a non-empty square matrix, got shape {zeros.aval.shape}."
        )
    one = lax.full((1,), number(1, zeros.aval.dtype))
    n = zeros.aval.shape[0]
    if is_count(n):
        check_some("poly", zeros.aval.shape)
        grown = lambda c, z: (c.at[1:].add(-z * c[:-1]), None)  # noqa: E731
        return lax.scan(grown, concatenate([one, lax.full((n,), number(0, zeros.aval.dtype))]), zeros)[0]
    if not zeros.aval.size:
        return lax.reshape(one, ())
    out = one
    for i in range(zeros.aval.shape[0]):
        out = convolve(out, concatenate([one, lax.neg(take_index(zeros, slice(i, i + 1)))]), mode="full")
    return out
