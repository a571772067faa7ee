"""Layer normalisation as a kernel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops._rows import by_rows
from gradix.numpy.promotion import raise_rank

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _normalised(row, weight, bias, eps: float):
    row = row.astype(jnp.float32)
    weight, bias = [raise_rank(jnp.asarray(v, jnp.float32), row.ndim) for v in (weight, bias)]
    centred = row - row.mean(-1, keepdims=True)
    scale = lax.rsqrt((centred**2).mean(-1, keepdims=True) + eps)
    return centred * scale * weight + bias


def _kernel(x, weight, bias, o, *, eps: float):
    o[...] = _normalised(x[...], weight[...], bias[...], eps).astype(o.dtype)


def layer_norm(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
) -> Any:
    """Rows along the last axis, with mean 0 and variance 1, times a weight and plus a bias.

    Args:
        x: an array of floats, of shape (..., n); it is computed with in float32.
        weight, bias: vectors of n elements.
        eps: what is added to the variance.
        num_warps, num_stages, backward_pass_impl, interpret: accepted; they have no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.layer_norm import layer_norm
        >>> layer_norm(jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2), eps=0.0)
        Array([[-1.,  1.]], dtype=float32)
    """
    kernel = functools.partial(_kernel, eps=eps)
    return by_rows(kernel, jnp.asarray(x), weight, bias, name="layer_norm")


def layer_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> Any:
    """The same as a plain function.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.layer_norm import layer_norm_reference
        >>> layer_norm_reference(jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2), eps=0.0)
        Array([[-1.,  1.]], dtype=float32)
    """
    return _normalised(x, weight, bias, eps).astype(x.dtype)


__dir__ = _own_names(__name__)
