"""Functions based on `conv_general_dilated`, such as conv_transpose, and result shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._core.operators import Array
from gradix._ops.basis import inverse
from gradix._ops.comparison import eq
from gradix._ops.conv.conv import conv_general_dilated
from gradix._ops.conv.dimension_numbers import conv_dimension_numbers, conv_general_permutations
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.dot import dot_general
from gradix._ops.operands import as_operand
from gradix._ops.shape import broadcast_in_dim, reshape, rev, transpose
from gradix._ops.window_padding import dilated, padtype_to_pads, window_count

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._ops.conv.dimension_numbers import ConvGeneralDilatedDimensionNumbers
    from gradix._ops.precision import PrecisionLike


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolution with batch and features first (NC…, OI…, NC…).

    Args:
        lhs: the input, of shape (batch, features, *space).
        rhs: the kernel, of shape (output features, features, *window).
        window_strides: the steps of the kernel, one for each axis of space.
        padding: "SAME", "SAME_LOWER" or "VALID".
        precision, preferred_element_type: as for `dot_general`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), "VALID")
        Array([[[2., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """As `conv`, with explicit padding and dilations.

    Args:
        lhs, rhs, window_strides: as for `conv`.
        padding: a name, or pairs (low, high), one for each axis of space.
        lhs_dilation, rhs_dilation: the distance of elements of input and kernel after zeros are
            inserted between them; None is 1.
        precision, preferred_element_type: as for `dot_general`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> x, kernel = jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2))
        >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], (1,), (2,))
        Array([[[1., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_LAYOUTS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed convolution: the adjoint of a strided one, up to the kernel's orientation.

    Args:
        lhs: the input, of rank n + 2.
        rhs: the kernel, of rank n + 2.
        strides: the distance of the input's elements after zeros are inserted, n integers.
        padding: "SAME", "VALID" or (low, high) pairs.
        rhs_dilation: the distance of the kernel's elements after zeros are inserted between them.
        dimension_numbers: layouts; None is channels last (NHWC, HWIO, NHWC).
        transpose_kernel: reverse the kernel's axes of space and exchange its features, so that this
            is exactly the adjoint.
        precision, preferred_element_type: as for `dot_general`.
        use_consistent_padding: explicit pairs give the padding of the convolution of which this is
            the adjoint.

    Raises:
        ValueError: `dimension_numbers` are missing for more than three axes of space.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.conv_transpose(jnp.ones((1, 4, 3)), jnp.ones((3, 3, 2)), (2,), "SAME").shape
        (1, 8, 2)
    """
    lhs, rhs = as_operand("conv_transpose", lhs), as_operand("conv_transpose", rhs)
    ndim = lhs.aval.ndim
    if dimension_numbers is None:
        dimension_numbers = _LAYOUTS.get(ndim)
        if dimension_numbers is None:
            raise ValueError(
                f"conv_transpose has default dimension_numbers for up to 3 axes of space, got lhs of rank "
                f"{ndim}: give dimension_numbers."
            )
    numbers = conv_dimension_numbers(lhs.aval.shape, rhs.aval.shape, dimension_numbers)
    kernel = [rhs.aval.shape[i] for i in numbers.rhs_spec[2:]]
    rhs_dilation = (1,) * (ndim - 2) if rhs_dilation is None else tuple(rhs_dilation)
    extents = [dilated(k, d) for k, d in zip(kernel, rhs_dilation)]
    if isinstance(padding, str):
        pads = [_transposed_padding(k, s, padding) for k, s in zip(extents, strides)]
    elif use_consistent_padding:
        pads = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(extents, padding)]
    else:
        pads = padding
    if transpose_kernel:
        out, inner = numbers.rhs_spec[:2]
        swapped = list(range(ndim))
        swapped[out], swapped[inner] = inner, out
        rhs = transpose(rev(rhs, numbers.rhs_spec[2:]), swapped)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (ndim - 2),
        pads,
        tuple(strides),
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_padding(extent, stride, padding: str):
    """The padding for a result of stride times input (SAME), or that plus the overhang (VALID)."""
    if padding.upper() == "SAME":
        total = extent + stride - 2
        low = extent - 1 if stride > extent - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = extent + stride - 2 + max(extent - stride, 0)
        low = extent - 1
    else:
        raise ValueError(f"conv_transpose padding must be 'SAME', 'VALID' or a sequence of pairs, got {padding!r}.")
    return low, total - low


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The windows of a convolution along the feature axis, by feature, then by place in the window.

    Args:
        lhs: the input, of rank n + 2.
        filter_shape: the n sizes of the window.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision,
            preferred_element_type: as for `conv_general_dilated`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
        Array([[[0., 1., 2.],
                [1., 2., 3.]]], dtype=float32)
    """
    lhs = as_operand("conv_general_dilated_patches", lhs)
    filter_shape = tuple(filter_shape)
    numbers = conv_dimension_numbers(lhs.aval.shape, (1, 1, *filter_shape), dimension_numbers)
    features, size = lhs.aval.shape[numbers.lhs_spec[1]], prod(filter_shape)
    row, column = [broadcasted_iota(np.dtype("int32"), (size, size), i) for i in (0, 1)]
    one_hot = convert_element_type(eq(row, column), lhs.aval.dtype)
    kernel = reshape(broadcast_in_dim(one_hot, (features, size, size), (1, 2)), (features * size, 1, *filter_shape))
    kernel = transpose(kernel, inverse(numbers.rhs_spec))
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution whose kernel differs from place to place.

    Args:
        lhs: the input, of rank n + 2.
        rhs: of rank n + 2; its input feature axis has `features · prod(filter_shape)` elements, its
            axes of space are those of the result.
        filter_shape: the n sizes of the window.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
            `conv_general_dilated`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.conv_general_dilated_local(jnp.ones((1, 1, 3)), jnp.ones((1, 2, 2)), (1,), "VALID", (2,))
        Array([[[2., 2.]]], dtype=float32)
    """
    lhs, rhs = (as_operand("conv_general_dilated_local", lhs), as_operand("conv_general_dilated_local", rhs))
    pair: Any = precision if isinstance(precision, tuple) else (precision, precision)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        precision=None if pair[0] is None else (pair[0], pair[0]),
    )
    numbers = conv_dimension_numbers(lhs.aval.shape, rhs.aval.shape, dimension_numbers)
    out_spec, rhs_spec = numbers.out_spec, numbers.rhs_spec
    y = dot_general(patches, rhs, (((out_spec[1],), (rhs_spec[1],)), (out_spec[2:], rhs_spec[2:])), precision)
    return transpose(y, inverse((*out_spec[2:], *out_spec[:2])))


# -- shapes ----------------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[Any], rhs_shape: Sequence[Any], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple:
    """The shape of a convolution with batch and features first.

    Args:
        lhs_shape: batch, features, and the sizes in space.
        rhs_shape: output features, input features, and the kernel's sizes in space.
        strides: the window's step along each axis in space.
        pads: "SAME", "VALID", or a pair (before, after) for each axis in space.
        batch_group_count: the number of groups of the batch.

    Raises:
        TypeError: there are not as many pads as axes of space.

    Example:
        >>> from gradix import lax
        >>> lax.conv_shape_tuple((8, 3, 32, 32), (16, 3, 5, 5), (2, 2), "SAME")
        (8, 16, 16, 16)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, got {len(pads)}."
        )
    space = [
        window_count(n + low + high, k, s) for n, (low, high), k, s in zip(lhs_shape[2:], pads, rhs_shape[2:], strides)
    ]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def conv_general_shape_tuple(
    lhs_shape: Sequence[Any],
    rhs_shape: Sequence[Any],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple:
    """The shape of a convolution with these layouts.

    Args:
        lhs_shape, rhs_shape: of the operand and the kernel.
        window_strides: the window's step along each axis in space.
        padding: "SAME", "VALID", or a pair (before, after) for each axis in space.
        dimension_numbers: the layouts of operand, kernel and result, as for
            `conv_dimension_numbers`.

    Example:
        >>> from gradix import lax
        >>> lax.conv_general_shape_tuple((8, 32, 32, 3), (5, 5, 3, 16), (1, 1), "VALID", ("NHWC", "HWIO", "NHWC"))
        (8, 28, 28, 16)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple([lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding)
    return tuple([shape[out.index(i)] for i in range(len(out))])


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[Any],
    rhs_shape: Sequence[Any],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple:
    """The shape of a transposed convolution with these layouts.

    Args:
        lhs_shape, rhs_shape: of the operand and the kernel.
        window_strides: how far elements of the operand are spread along each axis in space.
        padding: "SAME", "VALID", or a pair (before, after) for each axis in space.
        dimension_numbers: the layouts of operand, kernel and result, as for
            `conv_dimension_numbers`.

    Example:
        >>> from gradix import lax
        >>> lax.conv_transpose_shape_tuple((8, 16, 16, 3), (4, 4, 3, 16), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
        (8, 32, 32, 16)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    x, w = [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs]
    if isinstance(padding, str):
        padding = [_transposed_padding(k, s, padding) for k, s in zip(w[2:], window_strides)]
    spread = [dilated(n, s) for n, s in zip(x[2:], window_strides)]
    shape = conv_shape_tuple([*x[:2], *spread], w, (1,) * len(spread), padding)
    return tuple([shape[out.index(i)] for i in range(len(out))])
