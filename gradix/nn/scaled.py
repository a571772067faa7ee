"""Products of matrices with elements of eight or four bits, and a scale for each block of them."""

from __future__ import annotations

import dataclasses
import functools
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import ml_dtypes
import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_vjp import custom_vjp
from gradix._api.inspect import eval_shape
from gradix._base.tree import register_pytree_node
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike


@dataclasses.dataclass
class BlockScaleConfig:
    """How an operand is quantized: as elements of `data_type`, with a scale for each block of them.

    `get_scaled_dot_general_config` makes it. A block has `block_size` elements and a scale of the
    dtype `scale_type`, which is a multiple of `global_scale` if there is one. With `infer_only`,
    the operands of derivatives are not quantized.
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
    mode: Literal["nvfp4", "mxfp8"], global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """A description of how `scaled_dot_general` quantizes an operand.

    Args:
        mode: "mxfp8" for elements of 8 bits with a power of two as the scale of 32 of them, or
            "nvfp4" for elements of 4 bits with an 8-bit scale of 16 of them.
        global_scale: for "nvfp4" the number of which the scales are multiples, a float32 array of
            one element; 1 by default.

    Returns:
        A `BlockScaleConfig`.

    Raises:
        ValueError: the mode is unknown.

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
    raise ValueError(f"mode must be 'mxfp8' or 'nvfp4', got {mode!r}.")


# -- products of scaled blocks ---------------------------------------------------------------------


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """The products `einsum("BMK,BNK->BMN")` of operands with a scale for each block along K.

    Args:
        lhs: an array of shape (B, M, K).
        rhs: an array of shape (B, N, K).
        lhs_scales: an array of shape (B, M, K / size of the blocks).
        rhs_scales: an array of shape (B, N, K / size of the blocks).
        preferred_element_type: the dtype of the result; products and sums are computed in float32.

    Returns:
        An array of shape (B, M, N).

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> a, b, half = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]]), jnp.array([[[0.5]]])
        >>> nn.scaled_matmul(a, b, half, half)
        Array([[[8.]]], dtype=float32)
    """
    a, b, s, t = (as_operand("scaled_matmul", x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    _check_scaled(a.shape, b.shape, s.shape, t.shape)
    out = lax.dot_general(_spread(a, s), _spread(b, t), (((2,), (2,)), ((0,), (0,))), precision="highest")
    return out.astype(preferred_element_type)


def _check_scaled(a, b, s, t) -> None:
    if {len(x) for x in (a, b, s, t)} != {3}:
        raise ValueError(f"scaled_matmul: all operands must have three axes, got shapes {a}, {b}, {s} and {t}.")
    for what, x, y in (("lhs and rhs", a, b), ("their scales", s, t)):
        if (x[0], x[2]) != (y[0], y[2]):
            raise ValueError(f"scaled_matmul: {what} must have the same first and last sizes, got shapes {x} and {y}.")
    if a[:2] != s[:2] or b[:2] != t[:2]:
        raise ValueError(
            "scaled_matmul: scales must have the first two sizes of their operands, got shapes "
            f"{s} for lhs of shape {a}, and {t} for rhs of shape {b}."
        )
    if not s[2] or a[2] % s[2]:
        raise ValueError(
            f"scaled_matmul: rows of {a[2]} elements do not divide into {s[2]} blocks, one for each scale."
        )


def _spread(x, scales):
    """The elements multiplied by their scales, in float32."""
    return x.astype(np.float32) * jnp.repeat(scales.astype(np.float32), x.shape[2] // scales.shape[2], axis=2)


# -- quantized operands ----------------------------------------------------------------------------


def _quantized(x, config: BlockScaleConfig) -> tuple:
    """The quantized elements and scales along the last axis, and the common factor of the scales.

    For "mxfp8", a scale is the power of two that brings the largest element of a block into the
    range of the dtype (OCP Microscaling Formats v1.0, 2023, section 6.3). For "nvfp4", it makes
    the largest element the largest number of the dtype.
    """
    x = x.astype(np.float32)
    size = -x.shape[-1] % config.block_size
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size)])
    blocks = x.reshape(*x.shape[:-1], -1, config.block_size)
    largest = abs(blocks).max(-1)
    limit = float(ml_dtypes.finfo(config.data_type).max)
    if config.mode == "mxfp8":
        _, exponent = jnp.frexp(largest)
        scales = lax.stop_gradient(jnp.exp2((jnp.clip(exponent - 1 - 8, -127, 127)).astype(np.float32)))
        scales = jnp.where(largest > 0, scales, 1).astype(config.scale_type)
        factor = 1
    else:
        factor = jnp.reshape(config.global_scale, ())
        most = float(ml_dtypes.finfo(config.scale_type).max)
        scales = jnp.where(largest > 0, jnp.minimum(largest / limit / factor, most), 1).astype(config.scale_type)
    wide = scales.astype(np.float32)[..., None] * factor
    # A scale too small for its dtype is 0, and so are its elements.
    elements = jnp.clip(jnp.where(wide > 0, blocks / jnp.where(wide > 0, wide, 1), 0), -limit, limit)
    return elements.reshape(x.shape).astype(config.data_type), scales, factor


def _product(a, b, configs, dtype):
    """The products `einsum("BMK,BNK->BMN")` of quantized operands."""
    x, s, f = _quantized(a, configs[0])
    y, t, g = _quantized(b, configs[1])
    return (scaled_matmul(x, y, s, t, np.float32) * (f * g)).astype(dtype)


@functools.partial(custom_vjp, nondiff_argnums=(3,))
def _scaled_product(a, b, configs, dtype):
    return _product(a, b, configs, dtype)


def _forward(a, b, configs, dtype):
    return _product(a, b, configs, dtype), (a, b, configs)


def _backward(dtype, res, ct):
    """`ct Bᵀ` and `ctᵀ A` of quantized operands; rounding has the derivative of the identity."""
    a, b, configs = res
    lhs, rhs, out = configs
    swap = functools.partial(jnp.swapaxes, axis1=1, axis2=2)

    def times(x, y, first, second, like):
        if out.infer_only or second.infer_only:
            full = lax.dot_general(x.astype(np.float32), y.astype(np.float32), (((2,), (2,)), ((0,), (0,))))
            return full.astype(like.dtype)
        return _product(x, y, (first, second), like.dtype)

    zeros = [None if c.global_scale is None else jnp.zeros_like(c.global_scale) for c in configs]
    blank = [dataclasses.replace(c, global_scale=z) for c, z in zip(configs, zeros)]
    return times(ct, swap(b), out, rhs, a), times(swap(ct), swap(a), out, lhs, b), blank


_scaled_product.defvjp(_forward, _backward)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: lax.DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """A contraction whose operands, and those of its derivatives, are quantized first.

    Args:
        lhs, rhs: arrays.
        dimension_numbers: the dimension numbers, as for `lax.dot_general`.
        preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
        configs: a list of three results of `get_scaled_dot_general_config`, for `lhs`, `rhs` and
            the cotangent; None leaves the operands as they are.
        implementation: it has no effect.

    Returns:
        An array of the shape that `lax.dot_general` gives.

    Raises:
        TypeError: `preferred_element_type` is another dtype.
        ValueError: `configs` does not have three entries.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
        >>> numbers = (((1,), (1,)), ((), ()))
        >>> x, y = jnp.full((1, 32), 3.0), jnp.ones((1, 32))
        >>> nn.scaled_dot_general(x, y, numbers, configs=configs)
        Array([[96.]], dtype=float32)
    """
    lhs, rhs = as_operand("scaled_dot_general", lhs), as_operand("scaled_dot_general", rhs)
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)
    if dtype not in (np.float32, np.float16, dtypes.bfloat16):
        raise TypeError(
            "scaled_dot_general: preferred_element_type must be float32, bfloat16 or float16, got "
            f"{dtypes.dtype_name(dtype)}."
        )
    if len(configs) != 3:
        raise ValueError(
            f"scaled_dot_general: configs must have three entries, for lhs, rhs and the cotangent, got {len(configs)}."
        )
    (lc, rc), (lb, rb) = dimension_numbers
    shape = eval_shape(lambda x, y: lax.dot_general(x, y, dimension_numbers), lhs, rhs).shape
    a, b = _as_matrices(lhs, lc, lb), _as_matrices(rhs, rc, rb)
    return _scaled_product(a, b, list(configs), dtype).reshape(shape)


def _as_matrices(x, contracted, batch):
    """The array in the shape (B, M, K): batch axes, other axes and contracted axes are joined."""
    free = [i for i in range(x.ndim) if i not in contracted and i not in batch]
    sizes = [prod([x.shape[i] for i in axes]) for axes in (batch, free, contracted)]
    return jnp.transpose(x, (*batch, *free, *contracted)).reshape(sizes)
