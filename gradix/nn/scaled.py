"""Products of matrices in eight or four bits, with a scale for each block of elements."""

from __future__ import annotations

import dataclasses
import functools
from math import prod
from typing import Any, Literal

import ml_dtypes
import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_vjp import custom_vjp
from gradix._api.inspect import eval_shape
from gradix._base.tree import register_pytree_node
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand


@dataclasses.dataclass
class BlockScaleConfig:
    """How an operand is brought to few bits: `data_type` elements, a `scale_type` scale for `block_size` of them.

    Made by `get_scaled_dot_general_config`. The scales are multiples of `global_scale`, where there
    is one; `infer_only` leaves the operands of derivatives as they are.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool = False


register_pytree_node(
    BlockScaleConfig,
    lambda c: ((c.global_scale,), (c.mode, c.block_size, c.data_type, c.scale_type, c.infer_only)),
    lambda aux, children: BlockScaleConfig(aux[0], aux[1], aux[2], aux[3], children[0], aux[4]),
)


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8"], global_scale=None
) -> BlockScaleConfig:
    """How `scaled_dot_general` brings an operand to few bits.

    Args:
        mode: "mxfp8", 8 bits and a power of two for 32 elements; or "nvfp4", 4 bits and an 8-bit
            scale for 16.
        global_scale: for "nvfp4", what the scales are multiples of, an array of one float32; None
            for 1.

    Raises:
        ValueError: the mode is another.

    Example:
        >>> from gradix import nn
        >>> nn.get_scaled_dot_general_config("mxfp8").block_size
        32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None)
    if mode == "nvfp4":
        one = jnp.ones(1, np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, one)
    raise ValueError(f"Unsupported mode: {mode}. There are 'mxfp8' and 'nvfp4'.")


# -- products of scaled blocks ---------------------------------------------------------------------


def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32) -> Array:
    """`einsum("BMK,BNK->BMN")` of operands stored with a scale for each block along K.

    Args:
        lhs: shape (B, M, K).
        rhs: shape (B, N, K).
        lhs_scales: shape (B, M, K / block).
        rhs_scales: shape (B, N, K / block).
        preferred_element_type: the dtype of the result; products and sums are in float32.

    Raises:
        ValueError: ranks or sizes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> a, b, half = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]]), jnp.array([[[0.5]]])
        >>> nn.scaled_matmul(a, b, half, half)
        Array([[[8.]]], dtype=float32)
    """
    a, b, s, t = (as_operand("scaled_matmul", x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    _check_scaled(a.shape, b.shape, s.shape, t.shape)
    out = lax.dot_general(
        _spread(a, s), _spread(b, t), (((2,), (2,)), ((0,), (0,))), precision="highest"
    )
    return out.astype(preferred_element_type)


def _check_scaled(a, b, s, t) -> None:
    if {len(x) for x in (a, b, s, t)} != {3}:
        raise ValueError(
            f"scaled_matmul requires all inputs to be 3-dimensional arrays, got shapes {a}, {b}, {s} and "
            f"{t}."
        )
    for what, x, y in (("inputs a and b", a, b), ("scales", s, t)):
        if (x[0], x[2]) != (y[0], y[2]):
            raise ValueError(
                f"scaled_matmul requires {what} to have matching batch (B) and contract (K) dimensions, "
                f"but got shapes {x} and {y}."
            )
    if a[:2] != s[:2] or b[:2] != t[:2]:
        raise ValueError(
            "scaled_matmul requires scales to match non-contract dimensions of inputs, but got shapes a: "
            f"{a}, b: {b}, a_scales: {s}, b_scales: {t}."
        )
    if not s[2] or a[2] % s[2]:
        raise ValueError(
            f"scaled_matmul requires the {s[2]} scales of a row to be those of blocks of one size, but "
            f"{a[2]} "
            "elements cannot be divided so."
        )


def _spread(x, scales):
    """The values that are meant."""
    return x.astype(np.float32) * jnp.repeat(
        scales.astype(np.float32), x.shape[2] // scales.shape[2], axis=2
    )


# -- few bits --------------------------------------------------------------------------------------


def _quantized(x, config: BlockScaleConfig) -> tuple:
    """Elements and scales along the last axis, and the factor that is left.

    OCP Microscaling Formats v1.0 (2023), section 6.3, for "mxfp8": the scale is the power of two
    that brings the largest element of a block into the range of the elements. For "nvfp4" it is
    that which makes the largest the largest there is.
    """
    x = x.astype(np.float32)
    size = -x.shape[-1] % config.block_size
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size)])
    blocks = x.reshape(*x.shape[:-1], -1, config.block_size)
    largest = abs(blocks).max(-1)
    limit = float(ml_dtypes.finfo(config.data_type).max)
    if config.mode == "mxfp8":
        _, exponent = jnp.frexp(largest)
        scales = lax.stop_gradient(
            jnp.exp2((jnp.clip(exponent - 1 - 8, -127, 127)).astype(np.float32))
        )
        scales = jnp.where(largest > 0, scales, 1).astype(config.scale_type)
        factor = 1
    else:
        factor = jnp.reshape(config.global_scale, ())
        most = float(ml_dtypes.finfo(config.scale_type).max)
        scales = jnp.where(largest > 0, jnp.minimum(largest / limit / factor, most), 1).astype(
            config.scale_type
        )
    wide = scales.astype(np.float32)[..., None] * factor
    # A scale too small for its dtype is 0, and so are its elements.
    elements = jnp.clip(
        jnp.where(wide > 0, blocks / jnp.where(wide > 0, wide, 1), 0), -limit, limit
    )
    return elements.reshape(x.shape).astype(config.data_type), scales, factor


def _product(a, b, configs, dtype):
    """`einsum("BMK,BNK->BMN")` in few bits."""
    x, s, f = _quantized(a, configs[0])
    y, t, g = _quantized(b, configs[1])
    return (scaled_matmul(x, y, s, t, np.float32) * (f * g)).astype(dtype)


@functools.partial(custom_vjp, nondiff_argnums=(3,))
def _scaled_product(a, b, configs, dtype):
    return _product(a, b, configs, dtype)


def _forward(a, b, configs, dtype):
    return _product(a, b, configs, dtype), (a, b, configs)


def _backward(dtype, res, ct):
    """`ct Bᵀ` and `ctᵀ A`, in few bits too; rounding counts as the identity."""
    a, b, configs = res
    lhs, rhs, out = configs
    swap = functools.partial(jnp.swapaxes, axis1=1, axis2=2)

    def times(x, y, first, second, like):
        if out.infer_only or second.infer_only:
            full = lax.dot_general(
                x.astype(np.float32), y.astype(np.float32), (((2,), (2,)), ((0,), (0,)))
            )
            return full.astype(like.dtype)
        return _product(x, y, (first, second), like.dtype)

    zeros = [None if c.global_scale is None else jnp.zeros_like(c.global_scale) for c in configs]
    blank = [dataclasses.replace(c, global_scale=z) for c, z in zip(configs, zeros)]
    return times(ct, swap(b), out, rhs, a), times(swap(ct), swap(a), out, lhs, b), blank


_scaled_product.defvjp(_forward, _backward)


def scaled_dot_general(
    lhs,
    rhs,
    dimension_numbers,
    preferred_element_type=np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """A contraction whose operands, and those of its derivatives, are brought to few bits first.

    Args:
        lhs, rhs: arrays.
        dimension_numbers: as for `lax.dot_general`.
        preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
        configs: of `lhs`, of `rhs` and of the cotangent, each by `get_scaled_dot_general_config`;
            None for the contraction as it is.
        implementation: has no effect.

    Raises:
        TypeError: the dtype of the result is another.
        ValueError: there are not three configs.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
        >>> nn.scaled_dot_general(jnp.full((1, 32), 3.0), jnp.ones((1, 32)), (((1,), (1,)), ((), ())), configs=configs)
        Array([[96.]], dtype=float32)
    """
    lhs, rhs = as_operand("scaled_dot_general", lhs), as_operand("scaled_dot_general", rhs)
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)
    if dtype not in (np.float32, np.float16, dtypes.bfloat16):
        raise TypeError(
            f"Only support preferred_element_type in (f32, bf16, f16), but got {dtypes.dtype_name(dtype)}."
        )
    if len(configs) != 3:
        raise ValueError(
            f"scaled_dot_general needs three configs, of lhs, rhs and the cotangent, got {len(configs)}."
        )
    (lc, rc), (lb, rb) = dimension_numbers
    shape = eval_shape(lambda x, y: lax.dot_general(x, y, dimension_numbers), lhs, rhs).shape
    a, b = _as_matrices(lhs, lc, lb), _as_matrices(rhs, rc, rb)
    return _scaled_product(a, b, list(configs), dtype).reshape(shape)


def _as_matrices(x, contracted, batch):
    """(B, M, K): the batch axes in one, the others in one, the contracted ones in one."""
    free = [i for i in range(x.ndim) if i not in contracted and i not in batch]
    sizes = [prod([x.shape[i] for i in axes]) for axes in (batch, free, contracted)]
    return jnp.transpose(x, (*batch, *free, *contracted)).reshape(sizes)
