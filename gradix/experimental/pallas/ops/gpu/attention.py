"""Attention of several heads as a kernel, for arrays (batch, length, heads, size)."""

from __future__ import annotations

import dataclasses
from typing import Any

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops import _attention


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """The numbers of queries and keys in a block; those for the backward pass have no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.attention import BlockSizes, mha
        >>> x = jnp.arange(4.0).reshape(1, 4, 1, 1)
        >>> mha(x, x, x, None, block_sizes=BlockSizes(block_q=2, block_k=2)).ravel().round(2)
        Array([1.5 , 2.49, 2.84, 2.95], dtype=float32)
    """

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Blocks of 128."""
        return cls(128, 128, 32, 32, 32, 32)


_DEFAULT = BlockSizes.get_default()


def mha(
    q: Array,
    k: Array,
    v: Array,
    segment_ids: Array | None,
    sm_scale: float = 1.0,
    causal: bool = False,
    block_sizes: BlockSizes = _DEFAULT,
    backward_pass_impl: str = "triton",
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
) -> Any:
    """softmax(scale · q kᵀ) v for each head, without holding all scores; in float32.

    Args:
        q, k, v: arrays (batch, length, heads, size).
        segment_ids: integers (batch, length), or None; tokens look at those of their own segment.
        sm_scale: what the scores are multiplied by.
        causal: whether tokens look at those before them alone.
        block_sizes: the numbers of queries and keys in a block.
        return_residuals: whether to return the logarithms of the sums of exponentials, too, of
            shape (batch, heads, length).
        backward_pass_impl, num_warps, num_stages, grid, interpret, debug: accepted; they have no
            effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.attention import mha
        >>> x = jnp.ones((1, 4, 2, 8))
        >>> mha(x, x, x, None).shape
        (1, 4, 2, 8)
    """
    out, lse = _attention.attention(
        jnp.swapaxes(q, 1, 2),
        jnp.swapaxes(k, 1, 2),
        jnp.swapaxes(v, 1, 2),
        _segments(segment_ids),
        scale=sm_scale,
        causal=causal,
        blocks=(block_sizes.block_q, block_sizes.block_k),
        name="mha",
    )
    out = jnp.swapaxes(out, 1, 2)
    return (out, lse) if return_residuals else out


def _segments(ids: Any) -> dict[str, Any]:
    return {} if ids is None else {"q_ids": ids, "kv_ids": ids}


def mha_reference(
    q: Array, k: Array, v: Array, segment_ids: Array | None, sm_scale: float = 1.0, causal: bool = False
) -> Any:
    """The same as a plain function, which holds all scores.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.attention import mha, mha_reference
        >>> q, k, v = jnp.arange(3 * 8.0).reshape(3, 1, 4, 2, 1) / 24
        >>> bool(jnp.allclose(mha(q, k, v, None, causal=True), mha_reference(q, k, v, None, causal=True), atol=1e-6))
        True
    """
    q, k, v = [jnp.swapaxes(jnp.asarray(x), 1, 2) for x in (q, k, v)]
    out = _attention.reference(q, k, v, _segments(segment_ids), scale=sm_scale, causal=causal)
    return jnp.swapaxes(out, 1, 2)


__dir__ = _own_names(__name__)
