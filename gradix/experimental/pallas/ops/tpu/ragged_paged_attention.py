"""Attention over pages for sequences of several queries each, which lie one after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import nn, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops import _attention
from gradix.experimental.pallas.ops._pages import attention_over_pages

DEFAULT_MASK_VALUE = _attention.MASKED


def static_validate_inputs(
    q: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float | None = None,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> None:
    """Raise if shapes, dtypes or parameters of `ragged_paged_attention` do not fit.

    Raises:
        ValueError: they do not; the message says which.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.ragged_paged_attention import static_validate_inputs
        >>> q, pages, one = jnp.ones((4, 2, 8)), jnp.ones((3, 2, 2, 8)), jnp.ones(1, int)
        >>> static_validate_inputs(q, pages, one, jnp.zeros((1, 3), int), jnp.array([0, 4]), one)
    """
    shapes = (
        f"q of shape {q.shape}, kv_pages of shape {kv_pages.shape}, kv_lens of shape {kv_lens.shape}, page_indices of "
        f"shape {page_indices.shape}, cu_q_lens of shape {cu_q_lens.shape}, num_seqs of shape {num_seqs.shape}"
    )
    ranks = [x.ndim for x in (q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs)]
    fits = ranks == [3, 4, 1, 2, 1, 1] and q.shape[2] == kv_pages.shape[3] and kv_pages.shape[2] % 2 == 0
    fits = fits and q.shape[1] % (kv_pages.shape[2] // 2) == 0 and num_seqs.shape == (1,)
    if not fits or page_indices.shape[:1] != kv_lens.shape or cu_q_lens.shape[0] != kv_lens.shape[0] + 1:
        raise ValueError(
            f"ragged_paged_attention got {shapes}. Give q (tokens, heads, size), kv_pages (pages, tokens of a page, "
            "twice the heads of keys, size), kv_lens (sequences,), page_indices (sequences, pages of one), cu_q_lens "
            "(sequences + 1,), num_seqs (1,)."
        )
    for name, x in (("kv_lens", kv_lens), ("page_indices", page_indices), ("cu_q_lens", cu_q_lens)):
        if np.dtype(x.dtype).kind not in "iu":
            raise ValueError(f"ragged_paged_attention needs integers as {name}, got dtype {x.dtype}.")
    if sliding_window is not None and sliding_window <= 0:
        raise ValueError(f"ragged_paged_attention needs a positive sliding_window, got {sliding_window}.")
    if soft_cap is not None and soft_cap == 0.0:
        raise ValueError("ragged_paged_attention divides by soft_cap, got 0. Leave it out for scores without a cap.")


def dynamic_validate_inputs(
    q: Array, kv_pages: Array, kv_lens: Array, page_indices: Array, cu_q_lens: Array, num_seqs: Array, **parameters: Any
) -> None:
    """As `static_validate_inputs`, and check the values, which must not be traced.

    Args:
        parameters: those of `ragged_paged_attention`.

    Raises:
        ValueError: there are more sequences or queries than room for them, or a sequence has more
            queries than tokens, or more tokens than its pages.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.ragged_paged_attention import dynamic_validate_inputs
        >>> q, pages, one = jnp.ones((4, 2, 8)), jnp.ones((3, 2, 2, 8)), jnp.ones(1, int)
        >>> dynamic_validate_inputs(q, pages, one, jnp.zeros((1, 3), int), jnp.array([0, 4]), one)
        Traceback (most recent call last):
            ...
        ValueError: sequence 0 has 4 queries and 1 tokens: the queries are the last of its tokens.
    """
    static_validate_inputs(q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs, **parameters)
    lengths, ends, count = np.asarray(kv_lens), np.asarray(cu_q_lens), int(np.asarray(num_seqs)[0])
    if count > len(lengths):
        raise ValueError(f"num_seqs is {count}, but kv_lens has room for {len(lengths)} sequences.")
    if ends[count] > q.shape[0]:
        raise ValueError(f"cu_q_lens counts {ends[count]} queries, but q has {q.shape[0]}.")
    room = page_indices.shape[1] * kv_pages.shape[1]
    for i in range(count):
        queries = ends[i + 1] - ends[i]
        if queries > lengths[i]:
            raise ValueError(
                f"sequence {i} has {queries} queries and {lengths[i]} tokens: the queries are the last of its tokens."
            )
        if lengths[i] > room:
            raise ValueError(f"sequence {i} has {lengths[i]} tokens, but its pages hold {room}.")


def _places(cu_q_lens, kv_lens, num_seqs, tokens: int, sliding_window: int | None) -> tuple:
    """For each query: its sequence, the first token that it sees, and how many there are up to it."""
    count, number = jnp.asarray(num_seqs)[0], jnp.arange(tokens, dtype=np.int32)
    ends = jnp.where(jnp.arange(len(kv_lens)) < count, cu_q_lens[1:], np.int32(tokens))
    sequence = jnp.minimum(jnp.searchsorted(ends, number, side="right"), len(kv_lens) - 1).astype(np.int32)
    length = kv_lens[sequence] - cu_q_lens[sequence + 1] + number + 1
    length = jnp.where(number < cu_q_lens[count], length, 0).astype(np.int32)
    first = jnp.zeros_like(length) if sliding_window is None else jnp.maximum(length - sliding_window, 0)
    return sequence, first, length


def ragged_paged_attention(
    q: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = DEFAULT_MASK_VALUE,
    k_scale: float | None = None,
    v_scale: float | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> Any:
    """Causal attention of the last queries of each sequence over its tokens in pages; in float32.

    Args:
        q: queries (tokens, heads, size), of one sequence after another.
        kv_pages: (pages, tokens of a page, twice the heads of keys, size): keys and values in turns;
            the heads of queries are a multiple of those of keys.
        kv_lens: integers (sequences,): how many tokens each sequence has, its queries among them.
        page_indices: integers (sequences, pages of a sequence): where its pages lie.
        cu_q_lens: integers (sequences + 1,): where the queries of each sequence begin.
        num_seqs: integers (1,): how many of the sequences there are.
        sm_scale: the factor of scores.
        sliding_window: how many tokens a query sees, up to its own; None for all.
        soft_cap: what scores are kept below, by tanh, or None.
        mask_value: the score of tokens that are not seen.
        k_scale, v_scale: factors of quantised keys and values, or None.
        num_kv_pages_per_block, num_queries_per_block, vmem_limit_bytes: accepted; they have no effect
            here.

    Returns:
        (tokens, heads, size), zeros for queries of no sequence.

    Raises:
        ValueError: shapes or parameters do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
        >>> q, pages = jnp.ones((4, 2, 8)), jnp.ones((3, 2, 2, 8))
        >>> lengths, places = jnp.array([3, 2]), jnp.array([[2, 0], [1, 0]])
        >>> ragged_paged_attention(q, pages, lengths, places, jnp.array([0, 1, 3]), jnp.array([2]))[:, 0, 0]
        Array([1., 1., 1., 0.], dtype=float32)
    """
    args = [jnp.asarray(x) for x in (q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs)]
    static_validate_inputs(*args, sliding_window=sliding_window, soft_cap=soft_cap)
    q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs = args
    sequence, first, length = _places(cu_q_lens, kv_lens, num_seqs, q.shape[0], sliding_window)
    keys, values = [jnp.moveaxis(kv_pages[:, :, i::2], 2, 0) for i in (0, 1)]
    scale = sm_scale if k_scale is None else sm_scale * k_scale
    out = attention_over_pages(
        q.astype(np.float32) * scale,
        keys,
        values,
        first,
        length,
        page_indices[sequence],
        soft_cap=soft_cap,
        mask_value=DEFAULT_MASK_VALUE if mask_value is None else mask_value,
        name="ragged_paged_attention",
    )
    return (out if v_scale is None else out * v_scale).astype(q.dtype)


def ref_ragged_paged_attention(
    queries: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = DEFAULT_MASK_VALUE,
    k_scale: float | None = None,
    v_scale: float | None = None,
) -> Any:
    """The same as a plain function, of as many queries as the sequences have; sizes must not be traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.ragged_paged_attention import ref_ragged_paged_attention
        >>> q, pages = jnp.ones((4, 2, 8)), jnp.ones((3, 2, 2, 8))
        >>> lengths, places = jnp.array([3, 2]), jnp.array([[2, 0], [1, 0]])
        >>> ref_ragged_paged_attention(q, pages, lengths, places, jnp.array([0, 1, 3]), jnp.array([2])).shape
        (3, 2, 8)
    """
    static_validate_inputs(queries, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs, sliding_window=sliding_window)
    heads, size, groups = *queries.shape[1:], kv_pages.shape[2] // 2
    outs = []
    for i in range(int(np.asarray(num_seqs)[0])):
        begin, end, length = int(cu_q_lens[i]), int(cu_q_lens[i + 1]), int(kv_lens[i])
        tokens = kv_pages[page_indices[i]].reshape(-1, 2 * groups, size)[:length].astype(np.float32)
        k = tokens[:, 0::2] if k_scale is None else tokens[:, 0::2] * k_scale
        v = tokens[:, 1::2] if v_scale is None else tokens[:, 1::2] * v_scale
        q = queries[begin:end].reshape(end - begin, groups, heads // groups, size).astype(np.float32)
        s = jnp.einsum("qgrd,tgd->grqt", q, k) * sm_scale
        s = s if soft_cap is None else soft_cap * jnp.tanh(s / soft_cap)
        distance = np.arange(length - (end - begin), length)[:, None] - np.arange(length)
        is_seen = (distance >= 0) & (distance < (length if sliding_window is None else sliding_window))
        p = nn.softmax(jnp.where(is_seen[None, None], s, DEFAULT_MASK_VALUE if mask_value is None else mask_value))
        outs.append(jnp.einsum("grqt,tgd->qgrd", p, v).reshape(end - begin, heads, size))
    return jnp.concatenate(outs).astype(queries.dtype)


__dir__ = _own_names(__name__)
