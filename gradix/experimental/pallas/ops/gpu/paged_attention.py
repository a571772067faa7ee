"""Attention of one query for each sequence over pages, with the arguments of that for GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import nn, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops import _attention
from gradix.experimental.pallas.ops._pages import attention_over_pages

DEFAULT_MASK_VALUE = _attention.MASKED


def paged_attention(
    q: Array,
    k_pages: Array,
    v_pages: Array,
    block_tables: Array,
    lengths: Array | None,
    k_scales_pages: Array | None = None,
    v_scales_pages: Array | None = None,
    *,
    block_h: int = 16,
    pages_per_compute_block: int = 8,
    k_splits: int = 16,
    num_warps: int = 8,
    num_stages: int = 2,
    interpret: bool = False,
    debug: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """softmax(q kᵀ) v of one query for each sequence, whose keys and values are in pages; in float32.

    Args:
        q: queries (batch, heads, size), scaled by the caller.
        k_pages, v_pages: (heads of keys, pages, tokens of a page, size); the heads of queries are a
            multiple of those of keys.
        block_tables: integers (batch, pages of a sequence): where its pages lie.
        lengths: integers (batch,): how many tokens each sequence has; None for all of its pages.
        k_scales_pages, v_scales_pages: factors of quantised keys and values (heads of keys, pages,
            tokens of a page), or None.
        mask_value: the score of tokens beyond a sequence.
        attn_logits_soft_cap: what scores are kept below, by tanh, or None.
        block_h, pages_per_compute_block, k_splits, num_warps, num_stages, interpret, debug: accepted;
            they have no effect here.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.paged_attention import paged_attention
        >>> pages = jnp.ones((1, 4, 2, 8))
        >>> paged_attention(jnp.ones((1, 2, 8)), pages, pages, jnp.array([[2, 0]]), jnp.array([3])).shape
        (1, 2, 8)
    """
    q, k_pages, v_pages, block_tables = map(jnp.asarray, (q, k_pages, v_pages, block_tables))
    (batch, heads, size), (groups, _, page, _) = q.shape, k_pages.shape
    whole = jnp.full((batch,), page * block_tables.shape[-1], np.int32)
    lengths = whole if lengths is None else jnp.asarray(lengths)
    scales = [None if x is None else jnp.asarray(x) for x in (k_scales_pages, v_scales_pages)]
    fits = k_pages.shape[:3] == v_pages.shape[:3] and k_pages.shape[3] == size and heads % groups == 0
    fits &= all(x is None or x.shape == k_pages.shape[:3] for x in scales)
    if not fits or lengths.shape != (batch,) or block_tables.shape[:1] != (batch,):
        shapes = [None if x is None else x.shape for x in scales]
        raise ValueError(
            f"paged_attention got q of shape {q.shape}, pages of shapes {k_pages.shape}, {v_pages.shape}, block_tables "
            f"of shape {block_tables.shape}, lengths of shape {lengths.shape} and scales of shapes {shapes}. Give q "
            "(batch, heads, size), pages (heads of keys, pages, tokens, size), scales without the size, block_tables "
            "(batch, pages of a sequence), lengths (batch,)."
        )
    if all(x is None for x in scales):
        scales = []
    else:
        scales = [jnp.ones(k_pages.shape[:3], np.float32) if x is None else x for x in scales]
    return attention_over_pages(
        q,
        k_pages,
        v_pages,
        jnp.zeros((batch,), np.int32),
        lengths,
        block_tables,
        scales=tuple(scales),
        soft_cap=attn_logits_soft_cap,
        mask_value=mask_value,
        name="paged_attention",
    )


def paged_attention_reference(
    q: Array,
    k: Array,
    v: Array,
    lengths: Array,
    *,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """The same of keys and values that are not in pages, as a plain function.

    Args:
        q: queries (batch, heads, size), scaled by the caller.
        k, v: (batch, tokens, heads of keys, size).
        lengths: integers (batch,): how many tokens each sequence has.
        mask_value: the score of tokens beyond a sequence.
        attn_logits_soft_cap: what scores are kept below, by tanh, or None.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.paged_attention import paged_attention_reference
        >>> tokens = jnp.ones((1, 5, 1, 8))
        >>> paged_attention_reference(jnp.ones((1, 2, 8)), tokens, tokens, jnp.array([3])).shape
        (1, 2, 8)
    """
    batch, heads, size = q.shape
    tokens, groups = k.shape[1:3]
    s = jnp.einsum("bgrd,btgd->bgrt", q.reshape(batch, groups, heads // groups, size), k)
    if attn_logits_soft_cap is not None:
        s = attn_logits_soft_cap * jnp.tanh(s / attn_logits_soft_cap)
    is_seen = jnp.arange(tokens)[None, None, None] < jnp.asarray(lengths)[:, None, None, None]
    p = nn.softmax(jnp.where(is_seen, s.astype(np.float32), mask_value))
    return jnp.einsum("bgrt,btgd->bgrd", p, v.astype(np.float32)).reshape(batch, heads, -1).astype(q.dtype)


__dir__ = _own_names(__name__)
