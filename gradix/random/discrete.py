"""Discrete distributions: coin tosses, categories, and waiting times."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from gradix import lax
from gradix._api.constraints import divided
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._ops.canonicalization import canonical_axis
from gradix.random.continuous import draw_gumbel, gumbel_mode, halves
from gradix.random.draws import QUICK, converted, int_dtype, number, parameter, parameter_shape, sampler, shape_of
from gradix.random.floats import draw_uniform
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec


def _unit(key, shape, dtype):
    return draw_uniform(key, number(0, dtype), number(1, dtype), shape=shape, dtype=dtype)


# -- coins -----------------------------------------------------------------------------------------


def bernoulli(
    key: KeyLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random booleans that are True with probability `p`.

    Args:
        key: a key, typed or raw.
        p: a probability, a float or a floating array.
        shape: the shape of the result; by default that of `p`.
        mode: "low" takes one word of random bits for a toss, "high" two, which is needed for
            probabilities below 10⁻⁷.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: `p` is not floating.
        ValueError: `mode` is unknown, or `p` does not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.bernoulli(random.key(0), 0.3, (1000,)).mean()
        Array(0.284, dtype=float32)
        >>> import gradix.numpy as jnp
        >>> random.bernoulli(random.key(0), jnp.array([0.0, 1.0]))
        Array([False,  True], dtype=bool)

    See also:
        `random.uniform`, `random.binomial`, `random.categorical`, `random.choice`.
    """
    if out_sharding is not None:
        return divided(bernoulli, out_sharding, key, p, shape, mode)
    if mode not in ("high", "low"):
        raise ValueError(f"bernoulli: mode must be 'high' or 'low', got {mode!r}.")
    p = parameter("bernoulli", p)
    if p.aval.dtype not in dtypes.FLOAT:
        raise TypeError(
            "bernoulli: p must have a floating dtype, got "
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


def rademacher(
    key: KeyLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random signs: -1 or 1 with equal probability.

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        dtype: a dtype of numbers; the default integer dtype if None.
        out_sharding: the sharding of the result.

    Example:
        >>> from gradix import random
        >>> random.rademacher(random.key(0), (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(rademacher, out_sharding, key, shape, dtype)
    dtype = dtypes.python_scalar_dtype(int) if dtype is None else dtypes.requested_dtype(dtype, "rademacher")
    return _rademacher(take_key("rademacher", key), shape=shape_of("rademacher", shape), dtype=dtype)


@sampler
def _rademacher(key, *, shape, dtype):
    half = number(0.5, dtypes.python_scalar_dtype(float))
    heads = _bernoulli(key, half, shape=shape, mode="low")
    wide = dtypes.python_scalar_dtype(int) if dtype in dtypes.BOOL else dtype
    signs = lax.sub(lax.mul(number(2, wide), lax.convert_element_type(heads, wide)), number(1, wide))
    return lax.convert_element_type(signs, dtype)


# -- categories ------------------------------------------------------------------------------------


def categorical(
    key: KeyLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random categories, as numbers along an axis of `logits`, drawn by the Gumbel-max trick.

    Args:
        key: a key, typed or raw.
        logits: a floating array of unnormalised log probabilities.
        axis: the axis of the categories.
        shape: the shape of the result, which ends with the other axes of `logits`; by default these
            alone.
        replace: whether a category may be drawn again.
        mode: the mode of the Gumbel numbers, "low", "high", "highest" or None.
        out_sharding: the sharding of the result.

    Returns:
        Integers in [0, logits.shape[axis]).

    Raises:
        IndexError: `logits` is a scalar, or `axis` is out of bounds.
        ValueError: `logits` is not floating, `shape` does not fit, or there are more draws without
            replacement than categories.

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
        raise IndexError("categorical: logits must have an axis of categories, got a scalar.")
    if not -len(own) <= axis < len(own):
        raise IndexError(f"categorical: axis {axis} is out of bounds for logits of shape {own}.")
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
            "categorical: logits must have a floating dtype, got "
            f"{dtypes.dtype_name(logits.aval.dtype)}. They are log probabilities: write "
            "jnp.log(p), or logits.astype(float)."
        )
    return logits.aval.dtype


def _check_batch(shape, batch, own) -> None:
    tail = shape[len(shape) - len(batch) :] if batch else ()
    if len(shape) < len(batch) or any(m not in (1, n) for m, n in zip(batch, tail)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: categorical got shape={shape} for logits of "
            f"shape {own}. It must end with {batch}, the axes of logits but for the categories; "
            "axes for more draws come before them."
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
            f"categorical: shape asks for {count} draws without replacement, which must not exceed "
            f"the number of categories, {own[axis]}. Draw fewer, or pass replace=True."
        )
    noise = draw_gumbel(key, shape=own, dtype=dtype, mode=mode)
    _, drawn = lax.top_k(lax.add(logits, noise), count, axis=axis)
    drawn = lax.transpose(drawn, (axis, *[i for i in range(len(own)) if i != axis]))
    return lax.reshape(drawn, shape)


# -- waiting times ---------------------------------------------------------------------------------


def geometric(
    key: KeyLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Geometric random numbers 1, 2, …: how many trials it takes until one succeeds.

    Args:
        key: a key, typed or raw.
        p: the probability of success, a number or an array.
        shape: the shape of the result; by default that of `p`.
        dtype: an integer dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not an integer dtype, or `p` does not broadcast to `shape`.

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
