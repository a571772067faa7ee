"""The convolution of two sparse arrays, by the pairs of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradix import lax, numpy as jnp
from gradix._ops.window_padding import dilated, padtype_to_pads
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_storage import bcoo_fromdense
from gradix.experimental.sparse._layout import elements_of, or_zero
from gradix.numpy.promotion import promote_dtypes

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec
    from gradix._ops.precision import PrecisionLike


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> BCOO:
    """The convolution of two sparse arrays, which has an element for each pair of theirs.

    Args:
        lhs: the input, a BCOO array or an ordinary one, as for `lax.conv_general_dilated`.
        rhs: the kernel, likewise.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as for
            `lax.conv_general_dilated`.
        feature_group_count, batch_group_count: only 1 is supported.
        precision, out_sharding: they have no effect.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        A BCOO array without batch and dense axes, whose indices are neither sorted nor unique.

    Raises:
        NotImplementedError: features or batches are grouped.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[[0.0, 1, 0, 2]]]))
        >>> kernel = sparse.BCOO.fromdense(jnp.array([[[1.0, 3]]]))
        >>> sparse.bcoo_conv_general_dilated(
        ...     x, kernel, window_strides=(1,), padding="VALID"
        ... ).todense()
        Array([[[3., 1., 6.]]], dtype=float32)
    """
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError(
            "bcoo_conv_general_dilated: feature_group_count and batch_group_count must be 1, got "
            f"{feature_group_count} and {batch_group_count}. Convolve the groups one by one."
        )
    spec = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    n = len(spec.lhs_spec) - 2
    strides = tuple(window_strides)
    left = (1,) * n if lhs_dilation is None else tuple(lhs_dilation)
    right = (1,) * n if rhs_dilation is None else tuple(rhs_dilation)
    sizes = [dilated(lhs.shape[a], d) for a, d in zip(spec.lhs_spec[2:], left)]
    window = [dilated(rhs.shape[a], d) for a, d in zip(spec.rhs_spec[2:], right)]
    pads = padtype_to_pads(sizes, window, strides, padding) if isinstance(padding, str) else [tuple(p) for p in padding]
    places = [max((s + low + high - w) // step + 1, 0) for s, w, (low, high), step in zip(sizes, window, pads, strides)]
    shape = [0] * (n + 2)
    for axis, size in zip(spec.out_spec, (lhs.shape[spec.lhs_spec[0]], rhs.shape[spec.rhs_spec[0]], *places)):
        shape[axis] = size

    (x, own), (y, other) = _elements(lhs), _elements(rhs)
    x, y = promote_dtypes("bcoo_conv_general_dilated", x, y)
    i = [jnp.repeat(own[axis], y.size) for axis in spec.lhs_spec]
    k = [jnp.tile(other[axis], x.size) for axis in spec.rhs_spec]
    inside = i[1] == k[1]  # the same feature
    columns = [i[0], k[0]]
    for a in range(n):
        place = i[a + 2] * left[a] + pads[a][0] - k[a + 2] * right[a]
        inside &= place % strides[a] == 0
        place = place // strides[a]
        inside &= (place >= 0) & (place < places[a])
        columns.append(place)
    indices = jnp.stack([columns[spec.out_spec.index(axis)] for axis in range(n + 2)], 1)
    limit = jnp.broadcast_to(jnp.array([shape], indices.dtype), indices.shape)
    data = or_zero(inside, jnp.repeat(x, y.size) * jnp.tile(y, x.size))
    if preferred_element_type is not None:
        data = data.astype(preferred_element_type)
    return BCOO((data, jnp.where(inside[:, None], indices, limit)), shape=tuple(shape))


def _elements(x) -> tuple:
    """The elements of an array as a vector, and their coordinates along each axis."""
    if not isinstance(x, JAXSparse):
        x = bcoo_fromdense(x, nse=x.size)
    return elements_of(x if isinstance(x, BCOO) else x.to_bcoo())  # type: ignore[attr-defined]
