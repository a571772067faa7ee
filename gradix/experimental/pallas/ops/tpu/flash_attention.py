"""Attention of several heads as a kernel, for arrays (batch, heads, length, size)."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops import _attention

DEFAULT_MASK_VALUE = _attention.MASKED


class SegmentIds(NamedTuple):
    """The numbers of segments of queries and keys, (batch, length); different ones do not look at each other.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.flash_attention import SegmentIds, flash_attention
        >>> of = jnp.array([[0, 0, 1, 1]])
        >>> q, v = jnp.ones((1, 1, 4, 8)), jnp.arange(4.0)[:, None] * jnp.ones((1, 1, 4, 8))
        >>> flash_attention(q, q, v, segment_ids=SegmentIds(of, of))[0, 0, :, 0]
        Array([0.5, 0.5, 2.5, 2.5], dtype=float32)
    """

    q: Array
    kv: Array


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """The numbers of queries and keys in a block; the other fields have no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention
        >>> x = jnp.arange(4.0).reshape(1, 1, 4, 1)
        >>> sizes = BlockSizes(block_q=2, block_k_major=2, block_k=2, block_b=1)
        >>> flash_attention(x, x, x, block_sizes=sizes).ravel().round(2)
        Array([1.5 , 2.49, 2.84, 2.95], dtype=float32)
    """

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    @classmethod
    def get_default(cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int, d_model: int) -> BlockSizes:
        """Blocks of 128."""
        return cls(128, 128, 128, 1, 128, 128, 128, 128, 128, 128, 128)


def _extras(ab: Any, segment_ids: SegmentIds | None) -> dict[str, Any]:
    found = {} if ab is None else {"bias": ab}
    return found if segment_ids is None else {**found, "q_ids": segment_ids.q, "kv_ids": segment_ids.kv}


def flash_attention(
    q: Array,
    k: Array,
    v: Array,
    ab: Array | None = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    sm_scale: float = 1.0,
    block_sizes: BlockSizes | None = None,
    debug: bool = False,
) -> Any:
    """softmax(scale · q kᵀ + bias) v for each head, without holding all scores; in float32.

    Args:
        q, k, v: arrays (batch, heads, length, size); the lengths of queries and keys may differ.
        ab: a bias for the scores, (batch, heads, queries, keys), or None.
        segment_ids: the segments of queries and keys, or None.
        causal: whether tokens look at those before them alone.
        sm_scale: what the scores are multiplied by, before the bias.
        block_sizes: the numbers of queries and keys in a block.
        debug: accepted; it has no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.flash_attention import flash_attention
        >>> x = jnp.ones((1, 2, 4, 8))
        >>> flash_attention(x, x, x, causal=True).shape
        (1, 2, 4, 8)
    """
    sizes = block_sizes or BlockSizes(128, 128, 128, 1)
    q, k, v = map(jnp.asarray, (q, k, v))
    return _attention.attention(
        q,
        k,
        v,
        _extras(ab, segment_ids),
        scale=sm_scale,
        causal=causal,
        blocks=(sizes.block_q, sizes.block_k),
        name="flash_attention",
    )[0]


def mha_reference(
    q: Array,
    k: Array,
    v: Array,
    ab: Any,
    segment_ids: SegmentIds | None = None,
    causal: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    sm_scale: float = 1.0,
) -> Any:
    """The same as a plain function, which holds all scores.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.flash_attention import mha_reference
        >>> q, v = jnp.ones((1, 1, 3, 2)), jnp.arange(3.0)[:, None] * jnp.ones((1, 1, 3, 2))
        >>> mha_reference(q, q, v, None, causal=True)[0, 0, :, 0]
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    q, k, v = map(jnp.asarray, (q, k, v))
    return _attention.reference(q, k, v, _extras(ab, segment_ids), scale=sm_scale, causal=causal)


__dir__ = _own_names(__name__)
