"""Attention of one query for each sequence over keys and values that lie in pages, as a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops import _attention
from gradix.experimental.pallas.ops._pages import attention_over_pages

DEFAULT_MASK_VALUE = _attention.MASKED


def paged_attention(
    q: Array,
    k_pages: Array,
    v_pages: Array,
    lengths: Array,
    page_indices: Array,
    *,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    pages_per_compute_block: int | None = None,
    megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Any:
    """softmax(q kᵀ) v of one query for each sequence, whose keys and values are in pages; in float32.

    Args:
        q: queries (batch, heads, size), scaled by the caller.
        k_pages, v_pages: (heads of keys, pages, tokens of a page, size); the heads of queries are a
            multiple of those of keys.
        lengths: integers (batch,): how many tokens each sequence has.
        page_indices: integers (batch, pages of a sequence): where its pages lie. Those beyond its
            length must be numbers of pages as well, such as 0.
        attn_logits_soft_cap: what scores are kept below, by tanh, or None.
        mask_value, pages_per_compute_block, megacore_mode, inline_seq_dim: accepted; they have no
            effect here.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.paged_attention import paged_attention
        >>> pages = jnp.ones((1, 4, 2, 8))
        >>> paged_attention(jnp.ones((1, 2, 8)), pages, pages, jnp.array([3]), jnp.array([[2, 0]])).shape
        (1, 2, 8)
    """
    q, k_pages, v_pages = map(jnp.asarray, (q, k_pages, v_pages))
    (batch, heads, size), groups = q.shape, k_pages.shape[0]
    lengths, page_indices = jnp.asarray(lengths), jnp.asarray(page_indices)
    fits = k_pages.shape[:3] == v_pages.shape[:3] and k_pages.shape[3] == size and heads % groups == 0
    if not fits or lengths.shape != (batch,) or page_indices.shape[:1] != (batch,):
        raise ValueError(
            f"paged_attention got q of shape {q.shape}, pages of shapes {k_pages.shape}, {v_pages.shape}, lengths of "
            f"shape {lengths.shape} and page_indices of shape {page_indices.shape}. Give q (batch, heads, size), pages "
            "(heads of keys, pages, tokens, size), lengths (batch,), page_indices (batch, pages of a sequence)."
        )
    return attention_over_pages(
        q,
        k_pages,
        v_pages,
        jnp.zeros(lengths.shape, np.int32),
        lengths,
        page_indices,
        soft_cap=attn_logits_soft_cap,
        name="paged_attention",
    )


__dir__ = _own_names(__name__)
