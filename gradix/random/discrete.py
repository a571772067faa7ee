"""Discrete distributions: coin tosses, categories, waiting times."""

from __future__ import annotations

import functools
import math

from gradix import lax
from gradix._api.constraints import divided
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._ops.canonicalization import canonical_axis
from gradix.random.continuous import draw_gumbel, gumbel_mode, halves
from gradix.random.draws import (
    QUICK,
    converted,
    int_dtype,
    number,
    parameter,
    parameter_shape,
    sampler,
    shape_of,
)
from gradix.random.floats import draw_uniform
from gradix.random.keys import take_key


def _unit(key, shape, dtype):
    return draw_uniform(key, number(0, dtype), number(1, dtype), shape=shape, dtype=dtype)


# -- coins -----------------------------------------------------------------------------------------


def bernoulli(key, p=0.5, shape=None, mode: str = "low", *, out_sharding=None) -> Array:
    """Random booleans that are True with probability `p`.

    Args:
        key: a key, typed or raw.
        p: a probability, a float or an array of floats.
        shape: the result's shape; that of `p` by default.
        mode: "low" uses one word of bits for a toss; "high" two, for probabilities below 10⁻⁷.

    Raises:
        TypeError: `p` is of no float dtype.
        ValueError: `mode` is unknown.

    Example:
        >>> from gradix import random
        >>> random.bernoulli(random.key(0), 0.3, (1000,)).mean()
        Array(0.284, dtype=float32)
    """
    if out_sharding is not None:
        return divided(bernoulli, out_sharding, key, p, shape, mode)
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    p = parameter("bernoulli", p)
    if p.aval.dtype not in dtypes.FLOAT:
        raise TypeError(
            "bernoulli probability `p` must have a floating dtype, got "
            f"{dtypes.dtype_name(p.aval.dtype)}. Write p=0.5, or p.astype(float)."
        )
    shape = parameter_shape("bernoulli", shape, p)
    return _bernoulli(take_key("bernoulli", key), p, shape=shape, mode=mode)


@functools.partial(sampler, quick=QUICK)
def _bernoulli(key, p, *, shape, mode):
    dtype = p.aval.dtype
    p = converted(p, dtype, shape)
    if mode == "low":
        return lax.lt(_unit(key, shape, dtype), p)
    high, low = halves(_unit(key, (2, *shape), dtype))
    low = lax.mul(low, number(float(dtypes.finfo(dtype).eps), dtype))
    return lax.lt(low, lax.sub(p, high))


def rademacher(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Random signs: -1 or 1 with equal chance.

    Args:
        key: a key, typed or raw.
        shape: the result's shape.
        dtype: any dtype of numbers; the default integer by default.

    Example:
        >>> from gradix import random
        >>> random.rademacher(random.key(0), (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(rademacher, out_sharding, key, shape, dtype)
    dtype = (
        dtypes.python_scalar_dtype(int)
        if dtype is None
        else dtypes.requested_dtype(dtype, "rademacher")
    )
    return _rademacher(
        take_key("rademacher", key), shape=shape_of("rademacher", shape), dtype=dtype
    )


@sampler
def _rademacher(key, *, shape, dtype):
    half = number(0.5, dtypes.python_scalar_dtype(float))
    heads = _bernoulli(key, half, shape=shape, mode="low")
    wide = dtypes.python_scalar_dtype(int) if dtype in dtypes.BOOL else dtype
    signs = lax.sub(
        lax.mul(number(2, wide), lax.convert_element_type(heads, wide)), number(1, wide)
    )
    return lax.convert_element_type(signs, dtype)


# -- categories ------------------------------------------------------------------------------------


def categorical(
    key,
    logits,
    axis: int = -1,
    shape=None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding=None,
) -> Array:
    """Random categories, numbered along an axis of `logits`, by the Gumbel-max trick.

    Args:
        key: a key, typed or raw.
        logits: unnormalised log probabilities, floats.
        axis: the axis of the categories.
        shape: the result's shape: the other axes of `logits`, with axes for more draws before them.
        replace: whether a category may be drawn again.
        mode: of the Gumbel numbers, "low", "high" or None.

    Returns:
        Integers in [0, logits.shape[axis]).

    Raises:
        IndexError: `logits` have no axis, or `axis` is out of bounds.

    Example:
        >>> from gradix import random, numpy as jnp
        >>> random.categorical(random.key(0), jnp.log(jnp.array([0.1, 0.9])), shape=(5,)).shape
        (5,)
    """
    if out_sharding is not None:
        return divided(categorical, out_sharding, key, logits, axis, shape, replace, mode)
    logits = parameter("categorical", logits)
    own = logits.aval.shape
    if not own:
        raise IndexError(
            "categorical takes logits with an axis of categories, got an array of shape ()."
        )
    if not -len(own) <= axis < len(own):
        raise IndexError(
            f"index {axis} is out of bounds: categorical got axis={axis} for logits of shape {own}."
        )
    axis = canonical_axis(axis, len(own))
    dtype = _logits_dtype(logits)
    batch = own[:axis] + own[axis + 1 :]
    shape = batch if shape is None else shape_of("categorical", shape)
    _check_batch(shape, batch, own)
    more = shape[: len(shape) - len(batch)]
    key, mode = take_key("categorical", key), gumbel_mode(mode)
    return (_with_replacement if replace else _without_replacement)(
        key, logits, axis, shape, more, dtype=dtype, mode=mode
    )


def _logits_dtype(logits):
    if logits.aval.dtype not in dtypes.FLOAT:
        raise ValueError(
            f"categorical takes logits of a float dtype, got {dtypes.dtype_name(logits.aval.dtype)}. "
            "They are log probabilities: write jnp.log(p), or logits.astype(float)."
        )
    return logits.aval.dtype


def _check_batch(shape, batch, own) -> None:
    tail = shape[len(shape) - len(batch) :] if batch else ()
    if len(shape) < len(batch) or any(m not in (1, n) for m, n in zip(batch, tail)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: categorical got shape={shape} for logits of shape "
            f"{own}. It "
            f"must end with {batch}, the axes of logits without the categories; draws more go before "
            "them."
        )


def _with_replacement(key, logits, axis, shape, more, *, dtype, mode):
    own = logits.aval.shape
    tail = list(shape[len(more) :])
    tail.insert(axis, own[axis])
    noise = draw_gumbel(key, shape=(*more, *tail), dtype=dtype, mode=mode)
    if more:
        logits = lax.expand_dims(logits, tuple(range(len(more))))
    return lax.argmax(lax.add(noise, logits), axis + len(more), dtypes.python_scalar_dtype(int))


def _without_replacement(key, logits, axis, shape, more, *, dtype, mode):
    own = logits.aval.shape
    count = math.prod(more)
    if count > own[axis]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of categories "
            f"({own[axis]})."
        )
    noise = draw_gumbel(key, shape=own, dtype=dtype, mode=mode)
    _, drawn = lax.top_k(lax.add(logits, noise), count, axis=axis)
    drawn = lax.transpose(drawn, (axis, *[i for i in range(len(own)) if i != axis]))
    return lax.reshape(drawn, shape)


# -- waiting times ---------------------------------------------------------------------------------


def geometric(key, p, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """The number of tosses until the first success, each of probability `p`: 1, 2, …

    Args:
        key: a key, typed or raw.
        p: a probability, a number or an array.
        shape: the result's shape; that of `p` by default.
        dtype: an integer dtype; the default integer by default.

    Example:
        >>> from gradix import random
        >>> random.geometric(random.key(0), 0.2, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(geometric, out_sharding, key, p, shape, dtype)
    dtype, p = int_dtype("geometric", dtype), parameter("geometric", p)
    if p.aval.dtype not in dtypes.FLOAT:
        p = lax.convert_element_type(p, dtypes.python_scalar_dtype(float))
    shape = parameter_shape("geometric", shape, p)
    return _geometric(take_key("geometric", key), p, shape=shape, dtype=dtype)


@sampler
def _geometric(key, p, *, shape, dtype):
    kind = p.aval.dtype
    u, one = _unit(key, shape, kind), number(1, kind)
    u = lax.select_n(lax.eq(u, number(0, kind)), u, lax.full(shape, 1, kind))
    tosses = lax.floor(lax.div(lax.log(u), lax.log1p(lax.neg(converted(p, kind, shape)))))
    return lax.convert_element_type(lax.add(tosses, one), dtype)
