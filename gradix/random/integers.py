"""Random integers in a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._base.bounded import BoundedCache
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.key_flow import accounted
from gradix._core.operators import Array
from gradix._ops.random.random import generator_of, random_bits, random_bits_p, random_split_p
from gradix.random.draws import (
    EAGER_LIMIT,
    QUICK,
    is_frequent,
    number,
    on_host,
    parameter,
    parameter_shape,
    raise_rank,
    sampler,
    size_of,
)
from gradix.random.floats import split_keys
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec


def randint(
    key: KeyLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform random integers in [minval, maxval).

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        minval, maxval: the bounds, numbers or arrays that broadcast to `shape`. They are clipped to
            the range of `dtype`; its largest number is drawn too if `maxval` is larger.
        dtype: an integer dtype; the default one if None.
        out_sharding: the sharding of the result.

    Returns:
        An array of the given shape and dtype; it is `minval` where `maxval <= minval`.

    Raises:
        TypeError: `dtype` is not an integer dtype.
        ValueError: the bounds do not broadcast to `shape`.
        OverflowError: a Python integer does not fit the default integer dtype.

    Example:
        >>> from gradix import random
        >>> random.randint(random.key(42), (5,), 0, 10)
        Array([4, 4, 1, 9, 9], dtype=int32)
    """
    if out_sharding is not None:
        return divided(randint, out_sharding, key, shape, minval, maxval, dtype)
    dtype = dtypes.python_scalar_dtype(int) if dtype is None else dtypes.requested_dtype(dtype, "randint")
    if dtype not in dtypes.INTEGER:
        raise TypeError(
            f"randint only accepts integer dtypes, got {dtypes.dtype_name(dtype)}. Draw integers "
            "and convert them, or use random.uniform for floats, random.bernoulli for booleans."
        )
    if type(minval) is int and type(maxval) is int:
        minval, maxval = _checked("minval", minval), _checked("maxval", maxval)
        shape = parameter_shape("randint", shape)
    else:
        minval, maxval = _array("minval", minval), _array("maxval", maxval)
        shape = parameter_shape("randint", shape, minval, maxval)
    return draw_integers(take_key("randint", key), minval, maxval, shape=shape, dtype=dtype)


def _checked(name: str, x: int) -> int:
    if -1 << 31 <= x < 1 << 31:
        return x
    info = np.iinfo(dtypes.python_scalar_dtype(int))
    if not info.min <= x <= info.max:
        raise OverflowError(
            f"randint: {name}={x} does not fit {dtypes.python_scalar_dtype(int)}. Draw 32-bit "
            "parts with random.bits, or enable 64-bit integers with jax_enable_x64."
        )
    return x


def _array(name: str, x):
    return parameter("randint", _checked(name, x) if type(x) is int else x)


_counts: BoundedCache[tuple, int] = BoundedCache(4096)


def draw_integers(key, minval, maxval, *, shape: tuple, dtype):
    """Integers drawn with a typed key; those of fewer than 32 bits are drawn as int32."""
    if type(minval) is int and type(maxval) is int and on_host(key) and size_of(shape) <= EAGER_LIMIT:
        if dtype.itemsize < 4 and size_of(shape) <= QUICK or not is_frequent(_counts, (), shape, {"dtype": dtype}):
            return _host_randint(key, minval, maxval, shape, dtype)
        minval, maxval = [number(x, dtypes.python_scalar_dtype(int)) for x in (minval, maxval)]
        if dtype.itemsize >= 4:
            compiled = _randint.compiled  # type: ignore[attr-defined]
            return accounted(compiled, key, minval, maxval, shape=shape, dtype=dtype)
    minval, maxval = parameter("randint", minval), parameter("randint", maxval)
    if dtype.itemsize >= 4:
        return _randint(key, minval, maxval, shape=shape, dtype=dtype)
    info, wide = dtypes.iinfo(dtype), np.dtype("int32")
    low, high = (_clip(_whole(minval, wide), info.min, info.max), _clip(_whole(maxval, wide), info.min, info.max + 1))
    low, high = lax.convert_element_type(low, wide), lax.convert_element_type(high, wide)
    drawn = _randint(key, low, high, shape=shape, dtype=wide)
    return lax.convert_element_type(drawn, dtype)


def _whole(x, dtype):
    return x if x.aval.dtype in dtypes.INTEGER else lax.convert_element_type(x, dtype)


def _clip(x, least: int, most: int):
    """Integers clipped to two bounds, as far as their dtype holds these."""
    dtype = x.aval.dtype
    info = dtypes.iinfo(dtype)
    least, most = max(least, int(info.min)), min(most, int(info.max))
    return lax.min(lax.full((), most, dtype), lax.max(lax.full((), least, dtype), x))


@sampler
def _randint(key, minval, maxval, *, shape, dtype):
    info, rank, width = dtypes.iinfo(dtype), len(shape), 8 * dtype.itemsize
    minval, maxval = _whole(minval, dtype), _whole(maxval, dtype)
    top = lax.full((), min(int(info.max), int(dtypes.iinfo(maxval.aval.dtype).max)), maxval.aval.dtype)
    beyond = lax.gt(maxval, top)
    low = raise_rank(lax.convert_element_type(_clip(minval, info.min, info.max), dtype), rank)
    high = raise_rank(lax.convert_element_type(_clip(maxval, info.min, info.max), dtype), rank)
    first, second = [random_bits(k, width, shape) for k in split_keys(key, 2)]
    words = first.aval.dtype
    span = lax.convert_element_type(lax.sub(high, low), words)
    span = lax.select_n(lax.le(high, low), span, lax.full(span.aval.shape, 1, words))
    beyond = lax.bitwise_and(raise_rank(beyond, rank) if beyond.aval.ndim else beyond, lax.gt(high, low))
    span = lax.select_n(beyond, span, lax.add(span, lax.full((), 1, words)))
    # The first word counts 2ⁿ times as much as the second; 2ⁿ mod span is made of its square root.
    factor = lax.rem(lax.full((), 1 << width // 2, words), span)
    factor = lax.rem(lax.mul(factor, factor), span)
    offset = lax.add(lax.mul(lax.rem(first, span), factor), lax.rem(second, span))
    return lax.add(low, lax.convert_element_type(lax.rem(offset, span), dtype))


def _host_randint(key, minval: int, maxval: int, shape, dtype) -> ArrayImpl:
    """As `_randint`, for bounds that are Python integers; NumPy draws the numbers."""
    drawn = np.dtype("int32") if dtype.itemsize < 4 else dtype
    info, width = dtypes.iinfo(dtype), 8 * drawn.itemsize
    narrow = drawn is not dtype
    low = min(max(minval, int(info.min)), int(info.max))
    high = min(max(maxval, int(info.min)), int(info.max) + narrow)
    beyond = maxval > int(info.max) and not narrow
    span = 1 if high <= low else high - low + beyond
    words = np.dtype(f"uint{width}")
    whose = generator_of(key)
    halves = random_split_p.host(key.host, shape=(2,), **whose)
    # Arrays have at least one axis, since NumPy warns when a scalar wraps around.
    first, second = [random_bits_p.host(halves[i, ...], bit_width=width, shape=shape or (1,), **whose) for i in (0, 1)]
    if span >> width == 0:
        modulus, factor = (words.type(span), words.type(((1 << width // 2) % span) ** 2 % (1 << width) % span))
        first = np.remainder(first, modulus) * factor + np.remainder(second, modulus)
        second = np.remainder(first, modulus)
    out = second.astype(drawn) + drawn.type(low)
    return ArrayImpl((out.astype(dtype) if narrow else out).reshape(shape), make_aval(shape, dtype))
