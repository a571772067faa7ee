"""The least kernel."""

from __future__ import annotations

from typing import Any

from gradix._api.structs import ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.experimental.pallas._call import pallas_call


def double_kernel(x_ref: Any, y_ref: Any) -> None:
    """Write twice the array.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas.ops.tpu.example_kernel import double_kernel
        >>> pl.pallas_call(double_kernel, gradix.ShapeDtypeStruct((3,), "int32"))(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    y_ref[...] = x_ref[...] * 2


def double(x: Array) -> Any:
    """Twice an array.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.example_kernel import double
        >>> double(jnp.arange(3.0))
        Array([0., 2., 4.], dtype=float32)
    """
    return pallas_call(double_kernel, ShapeDtypeStruct(x.shape, x.dtype))(x)


__dir__ = _own_names(__name__)
