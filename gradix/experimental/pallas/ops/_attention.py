"""Attention over blocks of keys, whose sums are carried, so that all scores are never held."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.checkpoint import checkpoint
from gradix._api.structs import ShapeDtypeStruct
from gradix._core.operators import Array
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._programs import align_to, cdiv, program_id
from gradix.experimental.pallas._specs import BlockSpec, ds

# The score of what a query does not look at; finite, so that a row of nothing else has no NaN.
MASKED = -0.7 * float(np.finfo(np.float32).max)


def _kernel(q, k, v, *rest, scale: float, causal: bool, sizes: tuple, extras: tuple, soft_cap: float | None):
    """Blocks of queries against all keys; `sizes` are the blocks and the number of keys."""
    block_q, block_k, n = sizes
    given = dict(zip(extras, rest))
    o, lse = rest[len(extras) :]
    first = program_id(2) * block_q
    queries = q[...].astype(jnp.float32) * scale

    @checkpoint  # the gradient computes the scores of a block again, so that it does not hold all
    def turn(j, carry):
        acc, top, total = carry
        keys = ds(j * block_k, block_k)
        s = queries @ k[keys, :].astype(jnp.float32).T
        if "bias" in given:
            s += given["bias"][:, keys].astype(jnp.float32)
        if soft_cap is not None:
            s = soft_cap * jnp.tanh(s / soft_cap)
        rows = first + lax.broadcasted_iota(np.int32, s.shape, 0)
        columns = j * block_k + lax.broadcasted_iota(np.int32, s.shape, 1)
        seen = columns < n
        if causal:
            seen &= columns <= rows
        if "seen" in given:
            seen &= given["seen"][:, keys]
        if "q_ids" in given:
            seen &= given["q_ids"][...][:, None] == given["kv_ids"][keys][None, :]
        s = jnp.where(seen, s, MASKED)
        new = jnp.maximum(top, s.max(-1))
        p, shrink = jnp.exp(s - new[:, None]), jnp.exp(top - new)
        acc = acc * shrink[:, None] + p @ v[keys, :].astype(jnp.float32)
        return acc, new, total * shrink + p.sum(-1)

    empty = jnp.zeros((block_q, v.shape[-1])), jnp.full(block_q, MASKED), jnp.zeros(block_q)
    acc, top, total = lax.fori_loop(0, cdiv(n, block_k), turn, empty)
    o[...] = (acc / total[:, None]).astype(o.dtype)
    lse[...] = top + jnp.log(total)


def attention(
    q: Array,
    k: Array,
    v: Array,
    extras: dict[str, Any],
    *,
    scale: float,
    causal: bool,
    blocks: tuple[int, int],
    name: str,
    soft_cap: float | None = None,
) -> tuple[Any, Any]:
    """Attention of arrays (batch, heads, length, size), and the logarithm of the sums of exponentials.

    Args:
        extras: a "bias" for the scores, booleans "seen" of the same shape, and "q_ids" and "kv_ids",
            the numbers of segments that do not look at each other, of shape (batch, length).
        blocks: the numbers of queries and keys in a block.
        soft_cap: what scores with their bias are kept below, by tanh, or None.
    """
    (b, h, n, d), m = q.shape, k.shape[2]
    block_q, block_k = min(blocks[0], n), min(blocks[1], m)
    # whole blocks, as what lies beyond an array is NaN, and a cotangent of zero does not undo that
    rows, whole = align_to(n, block_q), align_to(m, block_k)
    q, k, v = _longer(q, 2, rows), _longer(k, 2, whole), _longer(v, 2, whole)
    extras = {key: _longer(x, -1, whole if key != "q_ids" else rows) for key, x in extras.items()}
    extras |= {key: _longer(extras[key], 2, rows) for key in ("bias", "seen") if key in extras}
    queries = BlockSpec((None, None, block_q, d), lambda b, h, i: (b, h, i, 0))
    of_keys = [BlockSpec((None, None, whole, x.shape[-1]), lambda b, h, i: (b, h, 0, 0)) for x in (k, v)]
    specs = {
        "bias": BlockSpec((None, None, block_q, whole), lambda b, h, i: (b, h, i, 0)),
        "seen": BlockSpec((None, None, block_q, whole), lambda b, h, i: (b, h, i, 0)),
        "q_ids": BlockSpec((None, block_q), lambda b, h, i: (b, i)),
        "kv_ids": BlockSpec((None, whole), lambda b, h, i: (b, 0)),
    }
    names = tuple([key for key in specs if key in extras])
    sizes = block_q, block_k, m
    kernel = functools.partial(_kernel, scale=scale, causal=causal, sizes=sizes, extras=names, soft_cap=soft_cap)
    out, lse = pallas_call(
        kernel,
        [ShapeDtypeStruct((b, h, rows, v.shape[-1]), q.dtype), ShapeDtypeStruct((b, h, rows), np.float32)],
        grid=(b, h, rows // block_q),
        in_specs=[queries, *of_keys, *[specs[key] for key in names]],
        out_specs=[
            BlockSpec((None, None, block_q, v.shape[-1]), lambda b, h, i: (b, h, i, 0)),
            BlockSpec((None, None, block_q), lambda b, h, i: (b, h, i)),
        ],
        name=name,
    )(q, k, v, *[extras[key] for key in names])
    return out[:, :, :n], lse[:, :, :n]


def _longer(x: Array, axis: int, n: int) -> Any:
    """The array with zeros after the end of an axis, so that it has `n` elements."""
    x = jnp.asarray(x)
    missing = n - x.shape[axis]
    if not missing:
        return x
    pads = [(0, missing if a == axis % x.ndim else 0) for a in range(x.ndim)]
    return jnp.pad(x, pads)


def reference(q: Array, k: Array, v: Array, extras: dict[str, Any], *, scale: float, causal: bool) -> Any:
    """The same as a plain function, which holds all scores."""
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32) * scale
    if "bias" in extras:
        s += extras["bias"]
    seen = jnp.ones((1, 1, *s.shape[-2:]), bool)
    if causal:
        seen = jnp.tril(seen)
    if "q_ids" in extras:
        seen = seen & (extras["q_ids"][:, None, :, None] == extras["kv_ids"][:, None, None, :])
    s = jnp.where(seen, s, MASKED)
    p = jnp.exp(s - s.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True)).astype(v.dtype)
    return jnp.einsum("bhqk,bhkd->bhqd", p, v).astype(q.dtype)
