"""Arithmetic of kernels for TPUs: rotations, packed numbers, rounding, and random bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import lax, numpy as jnp, random
from gradix.experimental.pallas._programs import program_id
from gradix.experimental.pallas._refs import bitcast as _bitcast


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Any:
    """The array with its elements moved along an axis by `shift`, those beyond the end to the front.

    Args:
        x: an array.
        shift: an integer, which may be traced.
        axis: the axis.
        stride, stride_axis: how much further each row along another axis is moved.

    Raises:
        ValueError: one of `stride` and `stride_axis` is given alone.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.roll(jnp.arange(4), 1, 0)
        Array([3, 0, 1, 2], dtype=int32)
    """
    if (stride is None) != (stride_axis is None):
        raise ValueError("roll: stride and stride_axis must be given together.")
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    places = lax.broadcasted_iota(np.int32, x.shape, axis)
    further = lax.broadcasted_iota(np.int32, x.shape, stride_axis) * stride
    return jnp.take_along_axis(x, (places - shift - further) % x.shape[axis], axis)


def bitcast(x: Any, ty: Any) -> Any:
    """The bits of an array as another dtype; the second last axis grows or shrinks with its width.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.bitcast(jnp.ones((2, 2), "float32"), "int32")[0, 0]
        Array(1065353216, dtype=int32)
    """
    return _bitcast(x, jnp.dtype(ty))


def stochastic_round(x: Any, random_bits: Any, *, target_dtype: Any) -> Any:
    """A float32 array in a narrower dtype, rounded up with the probability of how close that is.

    Args:
        x: a float32 array.
        random_bits: uint32 numbers of its shape.
        target_dtype: bfloat16 or a float of 8 bits.

    Raises:
        ValueError: the dtypes are others.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import random
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> bits = random.bits(random.key(0), (2,))
        >>> pltpu.stochastic_round(jnp.ones(2), bits, target_dtype=jnp.bfloat16)
        Array([1, 1], dtype=bfloat16)
    """
    target = jnp.dtype(target_dtype)
    if x.dtype != np.float32 or random_bits.dtype != np.uint32 or target.itemsize > 2:
        raise ValueError(
            f"stochastic_round takes a float32 array and uint32 bits, and gives bfloat16 or a float of 8 bits, got "
            f"{x.dtype}, {random_bits.dtype} and {target}."
        )
    dropped = 23 - jnp.finfo(target).nmant
    bits = lax.bitcast_convert_type(x, np.uint32)
    mask = np.uint32((1 << dropped) - 1)
    rounded = (bits + (random_bits & mask)) & ~mask
    value = lax.bitcast_convert_type(rounded, np.float32)
    return jnp.where(jnp.isfinite(x), value, x).astype(target)


def pack_elementwise(xs: Any, *, packed_dtype: Any) -> Any:
    """Arrays of one shape as one of uint32, whose bits hold an element of each, the first lowest.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> low, high = jnp.ones(2), jnp.full(2, 2.0)
        >>> pltpu.pack_elementwise([low, high], packed_dtype=jnp.bfloat16).dtype
        dtype('uint32')
    """
    packed = jnp.dtype(packed_dtype)
    width = packed.itemsize * 8
    out = jnp.zeros(xs[0].shape, np.uint32)
    for i, x in enumerate(xs):
        bits = lax.bitcast_convert_type(x.astype(packed), f"uint{width}").astype(np.uint32)
        out = out | (bits << np.uint32(i * width))
    return out


def unpack_elementwise(x: Any, *, index: int, packed_dtype: Any, unpacked_dtype: Any) -> Any:
    """The array of number `index` that `pack_elementwise` packed.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> packed = pltpu.pack_elementwise([jnp.ones(2), jnp.full(2, 2.0)], packed_dtype=jnp.bfloat16)
        >>> pltpu.unpack_elementwise(packed, index=1, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)
        Array([2., 2.], dtype=float32)
    """
    packed = jnp.dtype(packed_dtype)
    width = packed.itemsize * 8
    bits = lax.bitcast_convert_type(x, np.uint32) >> np.uint32(index * width)
    return lax.bitcast_convert_type(bits.astype(f"uint{width}"), packed).astype(unpacked_dtype)


def to_pallas_key(key: Any) -> Any:
    """A key for kernels; every key of `random` is one here.

    Example:
        >>> from gradix import random
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.to_pallas_key(random.key(0)) == random.key(0)
        Array(True, dtype=bool)
    """
    return key


def sample_block(
    sampler_fn: Any,
    global_key: Any,
    block_size: Any,
    tile_size: Any,
    total_size: Any,
    block_index: Any = None,
    **kwargs: Any,
) -> Any:
    """The part of a random array that one block holds, whatever the size of blocks.

    Args:
        sampler_fn: a function of a key and a shape, such as `random.normal`.
        global_key: the key of the whole array.
        block_size, tile_size, total_size: the shapes of a block, of the tiles of which each has a
            key of its own, and of the whole array.
        block_index: the index of the block; that of the program by default.

    Raises:
        ValueError: a block is not made of whole tiles.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import random
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def rows(block, index):
        ...     place = {"block_index": (index, 0)}
        ...     return pltpu.sample_block(random.uniform, random.key(0), (block, 2), (1, 2), (4, 2), **place)
        >>> jnp.array_equal(jnp.concatenate([rows(2, 0), rows(2, 1)]), rows(4, 0))
        Array(True, dtype=bool)
    """
    if any(b % t for b, t in zip(block_size, tile_size)):
        raise ValueError(f"a block of shape {block_size} is not made of whole tiles of {tile_size}.")
    counts = [b // t for b, t in zip(block_size, tile_size)]
    tiles = [-(-n // t) for n, t in zip(total_size, tile_size)]
    rows = np.stack(np.unravel_index(np.arange(int(np.prod(counts))), counts), -1)
    if block_index is None:
        block_index = [program_id(a) for a in range(len(block_size))]
    out = jnp.zeros(block_size, jnp.float32)
    for row in rows:
        number: Any = 0
        for axis, (i, count, n) in enumerate(zip(row, counts, tiles)):
            number = number * n + block_index[axis] * count + int(i)
        tile = sampler_fn(random.fold_in(global_key, number), tuple(tile_size), **kwargs)
        out = out.astype(tile.dtype)
        out = lax.dynamic_update_slice(out, tile, [int(i) * t for i, t in zip(row, tile_size)])
    return out


def touch(ref: Any) -> None:
    """Mark a reference as used; it has no effect here.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x_ref, out_ref):
        ...     pltpu.touch(x_ref)
        ...     out_ref[:] = x_ref[:]
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([3, 5], dtype=int32)
    """


def trace_value(label: str, value: Any) -> None:
    """Record a value in a profile of a TPU; it has no effect here.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x_ref, out_ref):
        ...     pltpu.trace_value("first", x_ref[0])
        ...     out_ref[:] = x_ref[:]
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([3, 5], dtype=int32)
    """


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """The array in a memory space; all are one here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.with_memory_space_constraint(jnp.arange(2), pltpu.VMEM)
        Array([0, 1], dtype=int32)
    """
    return x
