"""Attention over keys and values that lie in pages, as a kernel: what the kinds of it share."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.structs import ShapeDtypeStruct
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._programs import num_programs, program_id, when
from gradix.experimental.pallas._specs import ANY, BlockSpec
from gradix.experimental.pallas._tpu_types import PrefetchScalarGridSpec
from gradix.experimental.pallas.ops import _attention


def _kernel(firsts, lengths, pages, q, k, v, *rest, soft_cap: float | None, mask_value: float):
    """One page of a sequence and head: the sums so far are in scratch memory."""
    *scales, o, acc, top, total = rest
    b, page, size = program_id(0), program_id(2), k.shape[0]

    @when(page == 0)
    def _():
        acc[...] = jnp.zeros(acc.shape)
        top[...] = jnp.full(top.shape, mask_value)
        total[...] = jnp.zeros(total.shape)

    place = page * size + lax.iota(np.int32, size)
    is_seen = (place >= firsts[b]) & (place < lengths[b])
    # what lies in a page beyond the sequence may be anything, NaN among it
    keys, values = [jnp.where(is_seen[:, None], x[...].astype(jnp.float32), 0.0) for x in (k, v)]
    if scales:
        by_key, by_value = [jnp.where(is_seen, x[...].astype(jnp.float32), 0.0) for x in scales]
        keys, values = keys * by_key[:, None], values * by_value[:, None]
    s = q[...].astype(jnp.float32) @ keys.T
    if soft_cap is not None:
        s = soft_cap * jnp.tanh(s / soft_cap)
    s = jnp.where(is_seen[None, :], s, mask_value)
    new = jnp.maximum(top[...], s.max(-1))
    p, shrink = jnp.where(is_seen[None, :], jnp.exp(s - new[:, None]), 0.0), jnp.exp(top[...] - new)
    acc[...] = acc[...] * shrink[:, None] + p @ values
    total[...] = total[...] * shrink + p.sum(-1)
    top[...] = new

    @when(page == num_programs(2) - 1)
    def _():
        is_empty = total[...] == 0
        o[...] = (acc[...] / jnp.where(is_empty, 1.0, total[...])[:, None]).astype(o.dtype)


def attention_over_pages(
    q: Any,
    k_pages: Any,
    v_pages: Any,
    firsts: Any,
    lengths: Any,
    page_indices: Any,
    *,
    scales: tuple = (),
    soft_cap: float | None = None,
    mask_value: float = _attention.MASKED,
    name: str,
) -> Any:
    """softmax(q kᵀ) v of one query for each sequence, in float32; zeros for one that sees no tokens.

    Args:
        q: queries (batch, heads, size).
        k_pages, v_pages: (heads of keys, pages, tokens of a page, size).
        firsts, lengths: integers (batch,): a sequence sees its tokens from the first up to its length.
        page_indices: integers (batch, pages of a sequence).
        scales: of keys and values, each (heads of keys, pages, tokens of a page), or nothing.
        name: the name of the kernel.
    """
    (batch, heads, size), (groups, _, page, _) = q.shape, k_pages.shape
    rows, width = heads // groups, v_pages.shape[3]

    def of_page(b, h, p, firsts, lengths, pages):
        return h, pages[b, p]

    queries = BlockSpec((None, None, rows, size), lambda b, h, p, *_: (b, h, 0, 0))
    specs = [BlockSpec((None, None, page, n), lambda *ids: (*of_page(*ids), 0, 0)) for n in (size, width)]
    specs += [BlockSpec((None, None, page), lambda *ids: (*of_page(*ids), 0)) for _ in scales]
    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=3,
        grid=(batch, groups, page_indices.shape[1]),
        in_specs=[queries, *specs],
        out_specs=BlockSpec((None, None, rows, width), lambda b, h, p, *_: (b, h, 0, 0)),
        scratch_shapes=[ANY(s, np.float32) for s in ((rows, width), (rows,), (rows,))],
    )
    out = pallas_call(
        functools.partial(_kernel, soft_cap=soft_cap, mask_value=mask_value),
        ShapeDtypeStruct((batch, groups, rows, width), q.dtype),
        grid_spec=spec,
        name=name,
    )(firsts, lengths, page_indices, q.reshape(batch, groups, rows, size), k_pages, v_pages, *scales)
    return out.reshape(batch, heads, width)
