"""Counts: the Poisson, binomial and multinomial distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._ops.random.random import random_split
from gradix.random.draws import float_dtype, int_dtype, number, parameter, parameter_shape, rejection_sampler, spread
from gradix.random.floats import draw_uniform, split_keys
from gradix.random.gammas import batch_shape, is_any, repeat_while
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_F32 = np.dtype("float32")


def _unit(key, shape, dtype):
    return draw_uniform(key, number(0, dtype), number(1, dtype), shape=shape, dtype=dtype)


def _where(pred, x, y):
    """`x` where `pred` is true, else `y`; numbers get the shape of `pred` and the other's dtype."""
    dtype = next(v.aval.dtype for v in (x, y) if not isinstance(v, (int, float)))
    x, y = [lax.full_like(pred, v, dtype=dtype) if isinstance(v, (int, float)) else v for v in (x, y)]
    return lax.select_n(pred, y, x)


# -- Poisson ---------------------------------------------------------------------------------------


def poisson(
    key: KeyLike,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Poisson random numbers: how many events with rate `lam` happen in a unit of time.

    Args:
        key: a key, typed or raw.
        lam: the mean, a non-negative number or an array.
        shape: the shape of the result; by default that of `lam`.
        dtype: an integer dtype; the default one if None.
        out_sharding: the sharding of the result.

    Returns:
        Non-negative integers. They are -1 where `lam` is NaN or negative, and the largest integer
        where it is too large.

    Raises:
        ValueError: `dtype` is not an integer dtype, or `lam` does not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.poisson(random.key(0), 4.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(poisson, out_sharding, key, lam, shape, dtype)
    dtype, lam = int_dtype("poisson", dtype), parameter("poisson", lam)
    shape = parameter_shape("poisson", shape, lam)
    return _poisson(take_key("poisson", key), lam, shape=shape, dtype=dtype)


@rejection_sampler
def _poisson(key, lam, *, shape, dtype):
    lam = spread(lam, _F32, shape)
    few = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, number(10, _F32)))
    drawn = _where(
        few, _by_waiting(key, _where(few, lam, 0.0), dtype), _by_rejection(key, _where(few, 1e5, lam), dtype)
    )
    return _where(lax.eq(lam, number(0, _F32)), 0, drawn)


def _by_waiting(key, lam, dtype):
    """Poisson numbers by exponential waiting times until their sum exceeds `lam`.

    The method is in D. E. Knuth, The Art of Computer Programming 2, 3.4.1.
    """
    shape, limit = lam.aval.shape, lax.neg(lam)

    def turn(values):
        count, key, total = values
        key, u_key = split_keys(key, 2)
        count = _where(lax.gt(total, limit), lax.add(count, number(1, dtype)), count)
        return count, key, lax.add(total, lax.log(_unit(u_key, shape, _F32)))

    start = lax.full(shape, 0, dtype), key, lax.full(shape, 0, _F32)
    return lax.sub(repeat_while(lambda v: is_any(lax.gt(v[2], limit)), turn, start)[0], number(1, dtype))


def _by_rejection(key, lam, dtype):
    """Poisson numbers by the algorithm PTRS.

    It is that of W. Hörmann, "The transformed rejection method for generating Poisson random
    variables" (1993).
    """
    shape = lam.aval.shape
    c = lambda x: number(x, _F32)  # noqa: E731
    log_lam = lax.log(lam)
    b = lax.add(c(0.931), lax.mul(c(2.53), lax.sqrt(lam)))
    a = lax.add(c(-0.059), lax.mul(c(0.02483), b))
    inv_alpha = lax.add(c(1.1239), lax.div(c(1.1328), lax.sub(b, c(3.4))))
    v_r = lax.sub(c(0.9277), lax.div(c(3.6224), lax.sub(b, c(2.0))))

    def turn(values):
        found, done, key = values
        key, u_key, v_key = split_keys(key, 3)
        u, v = lax.sub(_unit(u_key, shape, _F32), c(0.5)), _unit(v_key, shape, _F32)
        side = lax.sub(c(0.5), lax.abs(u))
        k = lax.floor(lax.add(lax.add(lax.mul(lax.add(lax.div(lax.mul(c(2.0), a), side), b), u), lam), c(0.43)))
        hat = lax.log(lax.div(lax.mul(v, inv_alpha), lax.add(lax.div(a, lax.mul(side, side)), b)))
        mass = lax.sub(lax.add(lax.neg(lam), lax.mul(k, log_lam)), lax.lgamma(lax.add(k, c(1.0))))
        at_once = lax.bitwise_and(lax.ge(side, c(0.07)), lax.le(v, v_r))
        out = lax.bitwise_or(lax.lt(k, c(0.0)), lax.bitwise_and(lax.lt(side, c(0.013)), lax.gt(v, side)))
        accepted = lax.bitwise_or(at_once, lax.bitwise_and(lax.bitwise_not(out), lax.le(hat, mass)))
        return _where(accepted, k, found), lax.bitwise_or(done, accepted), key

    start = lax.full(shape, -1, _F32), lax.full(shape, False, bool), key
    found = repeat_while(lambda v: is_any(lax.bitwise_not(v[1])), turn, start)[0]
    return lax.convert_element_type(found, dtype)


# -- binomial --------------------------------------------------------------------------------------


def binomial(
    key: KeyLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Binomial random numbers: how many of `n` trials succeed, each with probability `p`.

    Args:
        key: a key, typed or raw.
        n: the number of trials, a number or an array.
        p: the probability of success, a number or an array.
        shape: the shape of the result; by default the one to which `n` and `p` broadcast.
        dtype: a floating dtype; the default one if None.

    Returns:
        Integers in [0, n], as floating-point numbers; NaN where `n` is negative or `p` is not a
        probability.

    Raises:
        ValueError: `dtype` is not floating, or `n` and `p` do not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.binomial(random.key(0), 10, 0.5, (3,)).shape
        (3,)
    """
    dtype, n, p = float_dtype("binomial", dtype), parameter("binomial", n), parameter("binomial", p)
    shape = parameter_shape("binomial", shape, n, p)
    drawn = _binomial(take_key("binomial", key), n, p, shape=shape, dtype=_common_float(n, p))
    return lax.convert_element_type(drawn, dtype)


def _common_float(n, p):
    """The dtype in which counts are drawn; half precision, if asked for, would not hold them."""
    return dtypes.to_inexact_dtype(dtypes.result_type(n, p))


@rejection_sampler
def _binomial(key, n, p, *, shape, dtype):
    n, p = spread(n, dtype, shape), spread(p, dtype, shape)
    c = lambda x: number(x, dtype)  # noqa: E731
    lower = lax.lt(p, c(0.5))
    # The rarer outcome is counted.
    q = _where(lower, p, lax.sub(c(1), p))
    no_count = lax.bitwise_or(lax.ne(n, n), lax.lt(n, c(0)))
    no_chance = lax.bitwise_or(lax.ne(q, q), lax.lt(q, c(0)))
    endless = lax.eq(lax.abs(n), c(math.inf))
    safe = _where(no_chance, 0.01, q)
    few = lax.bitwise_or(no_count, lax.le(lax.mul(n, safe), c(10)))
    whole = lax.floor(n)
    some = lax.bitwise_or(few, endless)
    drawn = _where(
        few,
        _by_gaps(key, _where(few, whole, 0.0), safe),
        _by_transformed_rejection(key, _where(some, 1e4, whole), _where(some, 0.5, safe)),
    )
    invalid = lax.bitwise_or(no_chance, no_count)
    drawn = _where(invalid, math.nan, drawn)
    drawn = _where(lax.bitwise_and(endless, lax.bitwise_not(invalid)), math.inf, drawn)
    keep = lax.bitwise_or(lax.bitwise_or(lower, no_count), lax.bitwise_or(lax.ne(q, q), endless))
    return _where(keep, drawn, lax.sub(whole, drawn))


def _by_gaps(key, n, p):
    """Binomial numbers by geometric gaps between successes, until their sum exceeds `n`.

    The method is in L. Devroye, Non-Uniform Random Variate Generation, X.4.3.
    """
    shape, dtype = n.aval.shape, n.aval.dtype
    log_miss = lax.log1p(lax.neg(p))

    def turn(values):
        count, total, key = values
        u_key, key = split_keys(key, 2)
        count = _where(lax.le(total, n), lax.add(count, number(1, dtype)), count)
        gap = lax.ceil(lax.div(lax.log(_unit(u_key, shape, dtype)), log_miss))
        return count, lax.add(total, gap), key

    start = lax.full(shape, 0, dtype), lax.full(shape, 0, dtype), key
    count = repeat_while(lambda v: is_any(lax.le(v[1], n)), turn, start)[0]
    return lax.sub(count, number(1, dtype))


# These are log k! minus Stirling's formula in k + 1, for k = 0 … 9; for larger k the differences
# of tails that occur nearly vanish.
_TAILS = [math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1)) for k in range(10)]


def _tail(k):
    table = ArrayImpl(np.array(_TAILS, k.aval.dtype), make_aval((10,), k.aval.dtype))
    place = lax.convert_element_type(lax.clamp(number(0, k.aval.dtype), k, number(9, k.aval.dtype)), np.dtype("int32"))
    return table[place]  # type: ignore[index]


def _by_transformed_rejection(key, n, p):
    """Binomial numbers by the algorithm BTRS.

    It is that of W. Hörmann, "The generation of binomial random variates" (1993).
    """
    shape, dtype = n.aval.shape, n.aval.dtype
    c = lambda x: number(x, dtype)  # noqa: E731
    one = c(1)
    miss = lax.sub(one, p)
    deviation = lax.sqrt(lax.mul(lax.mul(n, p), miss))
    b = lax.add(c(1.15), lax.mul(c(2.53), deviation))
    a = lax.add(lax.add(c(-0.0873), lax.mul(c(0.0248), b)), lax.mul(c(0.01), p))
    centre = lax.add(lax.mul(n, p), c(0.5))
    v_r = lax.sub(c(0.92), lax.div(c(4.2), b))
    odds = lax.div(p, miss)
    alpha = lax.mul(lax.add(c(2.83), lax.div(c(5.1), b)), deviation)
    mode = lax.floor(lax.mul(lax.add(n, one), p))
    above_mode = lax.add(lax.sub(n, mode), one)
    at_mode = lax.mul(lax.add(mode, c(0.5)), lax.log(lax.div(lax.add(mode, one), lax.mul(odds, above_mode))))
    at_mode_tails = lax.add(_tail(mode), _tail(lax.sub(n, mode)))

    def turn(values):
        found, done, key = values
        key, u_key, v_key = split_keys(key, 3)
        u, v = lax.sub(_unit(u_key, shape, dtype), c(0.5)), _unit(v_key, shape, dtype)
        side = lax.sub(c(0.5), lax.abs(u))
        k = lax.floor(lax.add(lax.mul(lax.add(lax.div(lax.mul(c(2), a), side), b), u), centre))
        hat = lax.log(lax.div(lax.mul(v, alpha), lax.add(lax.div(a, lax.mul(side, side)), b)))
        above = lax.add(lax.sub(n, k), one)
        mass = lax.add(at_mode, lax.mul(lax.add(n, one), lax.log(lax.div(above_mode, above))))
        mass = lax.add(mass, lax.mul(lax.add(k, c(0.5)), lax.log(lax.div(lax.mul(odds, above), lax.add(k, one)))))
        mass = lax.sub(lax.sub(lax.add(mass, at_mode_tails), _tail(k)), _tail(lax.sub(n, k)))
        at_once = lax.bitwise_and(lax.ge(side, c(0.07)), lax.le(v, v_r))
        inside = lax.bitwise_and(lax.ge(k, c(0)), lax.le(k, n))
        accepted = lax.bitwise_or(at_once, lax.bitwise_and(inside, lax.le(hat, mass)))
        return _where(accepted, k, found), lax.bitwise_or(done, accepted), key

    start = lax.full(shape, -1, dtype), lax.full(shape, False, bool), key
    return repeat_while(lambda v: is_any(lax.bitwise_not(v[1])), turn, start)[0]


# -- multinomial -----------------------------------------------------------------------------------


def multinomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Multinomial random vectors: how many of `n` draws fall into each category.

    Args:
        key: a key, typed or raw.
        n: the number of draws; its shape broadcasts to that of `p` without the last axis.
        p: the probabilities of the categories, along the last axis.
        shape: the shape of the result, with the axis of categories last; by default that of `p`.
        dtype: a floating or integer dtype; the default floating one if None.
        unroll: how many categories one step of the loop over them handles.

    Returns:
        Integers in the given dtype, with the sum `n` along the last axis.

    Raises:
        ValueError: `dtype` is neither floating nor integer, or the shapes do not fit.

    Example:
        >>> from gradix import random, numpy as jnp
        >>> random.multinomial(random.key(0), 10, jnp.array([0.2, 0.3, 0.5])).sum()
        Array(10., dtype=float32)
    """
    dtype = float_dtype("multinomial", dtype, dtypes.FLOAT | dtypes.INTEGER, "float or integer")
    n, p = parameter("multinomial", n), parameter("multinomial", p)
    own = p.aval.shape
    if not own:
        raise ValueError("multinomial: p must have an axis of categories, got a scalar.")
    if shape is not None:
        wanted: Any = shape
        *batch, count = batch_shape("multinomial", shape, own, f"p of shape {own}")
        if count != own[-1]:
            raise ValueError(
                f"multinomial: the last size of shape must be {own[-1]}, the number of categories "
                f"of p, got shape={tuple(wanted)}."
            )
        shape = tuple(batch)
    else:
        shape = own[:-1]
    batch_shape("multinomial", shape, n.aval.shape, f"n of shape {n.aval.shape}")
    drawn = _multinomial(
        take_key("multinomial", key), n, p, shape=(*shape, own[-1]), dtype=_common_float(n, p), unroll=unroll
    )
    return lax.convert_element_type(drawn, dtype)


@rejection_sampler
def _multinomial(key, n, p, *, shape, dtype, unroll):
    *batch, count = shape
    p = lax.convert_element_type(p, dtype)
    axis = p.aval.ndim - 1
    left = lax.cumsum(p, axis=axis, reverse=True)
    ratios = lax.div(p, _where(lax.eq(left, number(0, dtype)), 1.0, left))
    ratios = lax.transpose(ratios, (axis, *range(axis)))
    keys = random_split(key, (count,))

    def draw(left, category):
        own_key, ratio = category
        drawn = _binomial(own_key, left, ratio, shape=tuple(batch), dtype=dtype)
        return lax.sub(left, drawn), drawn

    counts = lax.scan(draw, spread(n, dtype, tuple(batch)), (keys, ratios), unroll=unroll)[1]
    return lax.transpose(counts, (*range(1, len(shape)), 0))
