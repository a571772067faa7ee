"""The softmax as a kernel."""

from __future__ import annotations

from typing import Any

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas.ops._rows import by_rows


def _kernel(x, o):
    row = x[...].astype(jnp.float32)
    e = jnp.exp(row - row.max())
    o[...] = (e / e.sum()).astype(o.dtype)


def softmax(x: Array, *, axis: int = -1, num_warps: int = 4, interpret: bool = False, debug: bool = False) -> Any:
    """exp(x) divided by its sum along an axis, which is computed in float32.

    Args:
        x: an array of floats with an axis at least.
        axis: the axis.
        num_warps, interpret, debug: accepted; they have no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.gpu.softmax import softmax
        >>> softmax(jnp.zeros((2, 4)))[0]
        Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    moved = jnp.moveaxis(jnp.asarray(x), axis, -1)
    return jnp.moveaxis(by_rows(_kernel, moved, name="softmax"), -1, axis)


__dir__ = _own_names(__name__)
