"""Attention of one query for each sequence over keys and values that lie in pages, as a kernel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._programs import num_programs, program_id, when
from gradix.experimental.pallas._specs import ANY, BlockSpec
from gradix.experimental.pallas._tpu_types import PrefetchScalarGridSpec
from gradix.experimental.pallas.ops import _attention

DEFAULT_MASK_VALUE = _attention.MASKED


def _kernel(lengths, pages, q, k, v, o, *scratch, soft_cap: float | None):
    """One page of a sequence and head: the sums so far are in scratch memory."""
    acc, top, total = scratch
    b, page, size = program_id(0), program_id(2), k.shape[0]

    @when(page == 0)
    def _():
        acc[...] = jnp.zeros(acc.shape)
        top[...] = jnp.full(top.shape, DEFAULT_MASK_VALUE)
        total[...] = jnp.zeros(total.shape)

    s = q[...].astype(jnp.float32) @ k[...].astype(jnp.float32).T
    if soft_cap is not None:
        s = soft_cap * jnp.tanh(s / soft_cap)
    place = page * size + lax.broadcasted_iota(np.int32, s.shape, 1)
    s = jnp.where(place < lengths[b], s, DEFAULT_MASK_VALUE)
    new = jnp.maximum(top[...], s.max(-1))
    p, shrink = jnp.where(place < lengths[b], jnp.exp(s - new[:, None]), 0.0), jnp.exp(top[...] - new)
    acc[...] = acc[...] * shrink[:, None] + p @ v[...].astype(jnp.float32)
    total[...] = total[...] * shrink + p.sum(-1)
    top[...] = new

    @when(page == num_programs(2) - 1)
    def _():
        o[...] = (acc[...] / total[...][:, None]).astype(o.dtype)


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
    (batch, heads, size), (groups, _, page, _) = q.shape, k_pages.shape
    lengths, page_indices = jnp.asarray(lengths), jnp.asarray(page_indices)
    fits = k_pages.shape[:3] == v_pages.shape[:3] and k_pages.shape[3] == size and heads % groups == 0
    if not fits or lengths.shape != (batch,) or page_indices.shape[:1] != (batch,):
        raise ValueError(
            f"paged_attention got q of shape {q.shape}, pages of shapes {k_pages.shape}, {v_pages.shape}, lengths of "
            f"shape {lengths.shape} and page_indices of shape {page_indices.shape}. Give q (batch, heads, size), pages "
            "(heads of keys, pages, tokens, size), lengths (batch,), page_indices (batch, pages of a sequence)."
        )
    rows, width = heads // groups, v_pages.shape[3]
    queries = BlockSpec((None, None, rows, size), lambda b, h, p, *_: (b, h, 0, 0))
    of_pages = [
        BlockSpec((None, None, page, n), lambda b, h, p, lengths, pages: (h, pages[b, p], 0, 0)) for n in (size, width)
    ]
    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(batch, groups, page_indices.shape[1]),
        in_specs=[queries, *of_pages],
        out_specs=BlockSpec((None, None, rows, width), lambda b, h, p, *_: (b, h, 0, 0)),
        scratch_shapes=[ANY(s, np.float32) for s in ((rows, width), (rows,), (rows,))],
    )
    out = pallas_call(
        functools.partial(_kernel, soft_cap=attn_logits_soft_cap),
        ShapeDtypeStruct((batch, groups, rows, width), q.dtype),
        grid_spec=spec,
        name="paged_attention",
    )(lengths, page_indices, q.reshape(batch, groups, rows, size), k_pages, v_pages)
    return out.reshape(batch, heads, width)


__dir__ = _own_names(__name__)
