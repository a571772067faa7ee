"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix.nn.normalization import logsumexp, softmax
from gradix.numpy.promotion import as_operand
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_F32 = np.dtype("float32")


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(scale · QKᵀ + bias) V for each head, over the keys that the masks allow.

    In shapes, B is the size of the batch, T and S are the lengths of queries and keys, N and K the
    numbers of heads of queries and of keys, and H is the number of features.

    Args:
        query: an array of shape (B, T, N, H) or (T, N, H).
        key, value: arrays of shape (B, S, K, H) or (S, K, H). N is a multiple of K, and each head
            of keys belongs to N / K heads of queries.
        bias: an array that is added to the products; it broadcasts to the shape (B, N, T, S).
        mask: booleans that broadcast to this shape; where they are False, a query ignores a key.
        scale: the factor of the products; by default 1 / √H.
        is_causal: whether queries ignore later keys.
        query_seq_lengths, key_value_seq_lengths: vectors of size B, the true lengths of the
            sequences. Results for queries after the end are 0.
        local_window_size: how many keys before and after its own place a query sees, one number or
            a pair.
        implementation: "xla" or None.
        return_residual: whether to return the logarithms of the sums of exponentials too.

    Returns:
        An array of the shape and dtype of `query`; or a pair of it and the logarithms, of shape
        (B, T, N) or (T, N).

    Raises:
        ValueError: the shapes do not fit, or the dtypes of `query`, `key` and `value` differ.
        NotImplementedError: `implementation` is neither "xla" nor None.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> q = jnp.ones((1, 4, 2, 8))
        >>> nn.dot_product_attention(q, q, q, is_causal=True).shape
        (1, 4, 2, 8)
    """
    if implementation not in (None, "xla"):
        raise NotImplementedError(
            f"dot_product_attention: implementation must be 'xla' or None, got {implementation!r}. Leave it out."
        )
    q, k, v = [as_operand("dot_product_attention", x) for x in (query, key, value)]
    shape = q.aval.shape
    if q.aval.ndim == 3:
        q, k, v = [lax.expand_dims(x, (0,)) for x in (q, k, v)]
    _check_shapes(q.aval, k.aval, v.aval)
    batch, t, n, _ = q.aval.shape
    s = k.aval.shape[1]
    full = batch, n, t, s
    bias, mask = [None if x is None else _four_axes(name, x, full) for name, x in (("bias", bias), ("mask", mask))]
    allowed = _allowed(mask, t, s, is_causal, local_window_size, query_seq_lengths, key_lengths=key_value_seq_lengths)
    scores = _scores(q, k, 1 / math.sqrt(q.aval.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + lax.convert_element_type(bias, scores.aval.dtype)
    if allowed is not None:
        scores = where(allowed, scores, -0.7 * float(np.finfo(_F32).max))
    out = _weighted_values(softmax(scores), v, q.aval)
    if query_seq_lengths is not None:
        present = lax.lt(lax.iota(np.dtype("int32"), t)[None, :], _lengths(query_seq_lengths)[:, None])
        out = where(present[:, :, None, None], out, 0)
    out = lax.reshape(out, shape)
    if not return_residual:
        return out
    residual = lax.transpose(lax.convert_element_type(logsumexp(scores, axis=-1), q.aval.dtype), (0, 2, 1))
    return out, lax.reshape(residual, shape[:-1])


def _check_shapes(q, k, v) -> None:
    ok = q.ndim == k.ndim == v.ndim == 4 and k.shape == v.shape and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not ok or q.shape[2] % k.shape[2]:
        raise ValueError(
            "dot_product_attention takes query (B, T, N, H) and key and value (B, S, K, H), and N "
            f"must be a multiple of K; got query {q.shape}, key {k.shape}, value {v.shape}."
        )
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(
            f"dot_product_attention: query, key and value must have one dtype, got {q.dtype}, {k.dtype}, {v.dtype}."
        )


def _four_axes(name: str, x, full: tuple):
    x = as_operand("dot_product_attention", x)
    shape = (1,) * (4 - x.aval.ndim) + x.aval.shape
    if len(shape) != 4 or any(m not in (1, n) for m, n in zip(shape, full)):
        raise ValueError(
            f"dot_product_attention: {name} must broadcast to (B, N, T, S) = {full}, got shape {x.aval.shape}."
        )
    return lax.reshape(x, shape)


def _lengths(lengths):
    """Lengths as int32; those of other types that are too large for it become its largest number."""
    return lax._fitted_index(jnp.asarray(lengths), np.dtype("int32"))


def _allowed(mask, t: int, s: int, is_causal: bool, window, query_lengths, *, key_lengths):
    """A mask of the keys that queries see, which broadcasts to (B, N, T, S); None for all keys."""
    parts = [] if mask is None else [lax.ne(mask, False) if mask.aval.dtype != bool else mask]
    line = jnp.arange if is_symbolic_shape((t, s)) else np.arange
    rows, columns = line(t, dtype=np.int32)[:, None], line(s, dtype=np.int32)[None, :]
    if is_causal:
        parts.append(jnp.asarray(columns <= rows)[None, None])
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        parts.append(jnp.asarray((columns >= rows - before) & (columns <= rows + after))[None, None])
    if query_lengths is not None:
        parts.append(jnp.asarray(rows)[None, None] < _lengths(query_lengths)[:, None, None, None])
    if key_lengths is not None:
        parts.append(jnp.asarray(columns)[None, None] < _lengths(key_lengths)[:, None, None, None])
    allowed = None
    for part in parts:
        allowed = part if allowed is None else allowed & part
    return allowed


def _scores(q, k, scale):
    """The products scale · QKᵀ in float32 or wider, of shape (B, N, T, S)."""
    (b, t, n, h), (_, s, heads, _) = q.aval.shape, k.aval.shape
    q = lax.reshape(q, (b, t, heads, n // heads, h))
    wide = _F32 if q.aval.dtype.itemsize < 4 else q.aval.dtype
    # The products have the shape (B, K, T, N/K, S).
    products = lax.dot_general(q, k, (((4,), (3,)), ((0, 2), (0, 2))), preferred_element_type=wide)
    return lax.reshape(lax.transpose(products, (0, 1, 3, 2, 4)), (b, n, t, s)) * scale


def _weighted_values(weights, v, like):
    """The products of weights (B, N, T, S) and values (B, S, K, H), of shape (B, T, N, H)."""
    (b, n, t, s), heads = weights.aval.shape, v.aval.shape[2]
    weights = lax.reshape(lax.convert_element_type(weights, like.dtype), (b, heads, n // heads, t, s))
    # The products have the shape (B, K, N/K, T, H).
    out = lax.dot_general(weights, v, (((4,), (1,)), ((0, 1), (0, 2))))
    return lax.reshape(lax.transpose(out, (0, 3, 1, 2, 4)), like.shape)
