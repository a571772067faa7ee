"""Attention of heads each of which has a mask of its own, as a kernel."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any, NamedTuple

import numpy as np

from gradix import nn, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops import _attention
from gradix.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask import Mask, MultiHeadMask

DEFAULT_MASK_VALUE = _attention.MASKED


class SegmentIds(NamedTuple):
    """The numbers of segments of queries and keys, (length,); different ones do not look at each other.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu import splash_attention as splash
        >>> splash.SegmentIds(q=[0, 0, 1], kv=[0, 1, 1]).q
        [0, 0, 1]
    """

    q: Array
    kv: Array


class QKVLayout(enum.IntEnum):
    """Which axis is the last in memory; it has no effect here.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu import splash_attention as splash
        >>> splash.QKVLayout.SEQ_MINOR.value
        2
    """

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """The numbers of queries and keys in a block; the other fields have no effect here.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu import splash_attention as splash
        >>> splash.BlockSizes(block_q=64, block_kv=128).block_kv
        128
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Blocks of 128."""
        return cls(128, 128, 128, 128, 128, 128, 128, 128)


class SplashAttentionKernel:
    """Attention under masks: a function of queries, keys and values, made by `make_splash_mha`.

    Attributes:
        mask: booleans (heads, queries, keys), an array.

    Example:
        >>> import numpy as np
        >>> from gradix.experimental.pallas.ops.tpu import splash_attention as splash
        >>> splash.make_splash_mha_single_device(np.ones((1, 2, 2), bool)).mask.shape
        (1, 2, 2)
    """

    def __init__(self, mask: Any, sizes: BlockSizes, is_mqa: bool, save_residuals: bool, soft_cap: float | None):
        self.mask, self.sizes, self.is_mqa = mask, sizes, is_mqa
        self.save_residuals, self.soft_cap = save_residuals, soft_cap

    def __call__(self, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None = None, sinks: Any = None) -> Any:
        """softmax(q kᵀ) v for each head, of what its mask shows; in float32.

        Args:
            q: queries (heads, length, size), scaled by the caller.
            k, v: keys and values (heads, length, size), of as many heads or a divisor of them;
                of `make_splash_mqa`, (length, size).
            segment_ids: the segments of queries and keys, or None.
            sinks: for each head, the score of a key that has no value, or None.
        """
        q, k, v = map(jnp.asarray, (q, k, v))
        if self.is_mqa:
            k, v = k[None], v[None]
        heads = q.shape[0]
        if self.mask.shape != (heads, q.shape[1], k.shape[1]) or heads % k.shape[0]:
            raise ValueError(
                f"the mask is for heads, queries and keys {self.mask.shape}, but q has shape {q.shape} and k "
                f"{k.shape}. The heads of k and v must be as many as those of q, or a divisor."
            )
        k, v = (jnp.repeat(x, heads // x.shape[0], axis=0) for x in (k, v))
        extras = {"seen": jnp.asarray(self.mask)[None]}
        if segment_ids is not None:
            extras |= {"q_ids": jnp.asarray(segment_ids.q)[None], "kv_ids": jnp.asarray(segment_ids.kv)[None]}
        out, lse = _attention.attention(
            q[None],
            k[None],
            v[None],
            extras,
            scale=1.0,
            causal=False,
            blocks=(self.sizes.block_q, self.sizes.block_kv),
            name="splash_attention",
            soft_cap=self.soft_cap,
        )
        out, lse = out[0], lse[0]
        if sinks is not None:
            sinks = jnp.asarray(sinks)[:, None]
            out = (out * nn.sigmoid(lse - sinks)[..., None]).astype(q.dtype)
            lse = jnp.logaddexp(lse, sinks)
        return (out, (lse,)) if self.save_residuals else out


def _made(
    mask: Any,
    *,
    block_sizes: BlockSizes | None = None,
    is_mqa: bool,
    save_residuals: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    if isinstance(mask, Mask):
        mask = mask[:, :, :] if isinstance(mask, MultiHeadMask) else mask[:, :][None]
    if len(np.shape(mask)) != 3:
        raise ValueError(f"a mask has the shape (heads, queries, keys), got {np.shape(mask)}.")
    return SplashAttentionKernel(
        mask, block_sizes or BlockSizes.get_default(), is_mqa, save_residuals, attn_logits_soft_cap
    )


def make_splash_mha(mask: Any, *, head_shards: int, q_seq_shards: int, **options: Any) -> SplashAttentionKernel:
    """Attention of several heads under a mask.

    Args:
        mask: a `MultiHeadMask`, or booleans (heads, queries, keys).
        head_shards, q_seq_shards: accepted; arrays are divided by `shard_map` or shardings.
        options: `block_sizes`, `attn_logits_soft_cap` (scores are kept between its negative and
            itself by tanh), and `save_residuals`, which adds the logarithms of the sums of
            exponentials to the result. Those for a TPU's memory are accepted.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu import splash_attention as splash
        >>> mask = splash.MultiHeadMask([splash.CausalMask((4, 4))] * 2)
        >>> attend = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1)
        >>> x = jnp.ones((2, 4, 8))
        >>> attend(x, x, x).shape
        (2, 4, 8)
    """
    return _made(mask, is_mqa=False, head_shards=head_shards, q_seq_shards=q_seq_shards, **options)


def make_splash_mqa(mask: Any, *, head_shards: int, q_seq_shards: int, **options: Any) -> SplashAttentionKernel:
    """As `make_splash_mha`, with keys and values (length, size) that all heads share.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu import splash_attention as splash
        >>> import gradix.numpy as jnp
        >>> mask = splash.MultiHeadMask([splash.FullMask((4, 6))] * 2)
        >>> attend = splash.make_splash_mqa(mask, head_shards=1, q_seq_shards=1)
        >>> attend(jnp.ones((2, 4, 8)), jnp.ones((6, 8)), jnp.ones((6, 3))).shape
        (2, 4, 3)
    """
    return _made(mask, is_mqa=True, head_shards=head_shards, q_seq_shards=q_seq_shards, **options)


make_splash_mha_single_device = functools.partial(make_splash_mha, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = functools.partial(make_splash_mqa, head_shards=1, q_seq_shards=1)


__dir__ = _own_names(__name__)
