"""Arrays made without operands: iota, full, empty."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, as_made, is_number
from gradix._core.aval import make_aval
from gradix._core.divisions import sharding_of_type
from gradix._core.dtypes import COMPLEX, NUMERIC
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind, state, varying_over
from gradix._ops.basis import broadcast_in_dim_p, broadcast_to, zeros
from gradix._ops.canonicalization import canonical_shape, check_sizes, memoised
from gradix._ops.convert import convert, convert_element_type
from gradix._ops.families import NonDifferentiable
from gradix._ops.operands import arrays
from gradix._ops.sharding import divided

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, Shape, Size
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec, Sharding


class _Nullary(NonDifferentiable, Primitive):
    """A primitive without operands, so staging is the only transformation that reaches it."""

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), None


class Iota(_Nullary):
    """0, 1, 2, ... along one axis of an array."""

    takes_sharding = True

    @memoised
    def abstract(self, *, dtype, shape, dimension):
        if dtype not in NUMERIC:
            raise TypeError(
                f"iota does not accept dtype {dtypes.dtype_name(dtype)}. Accepted dtypes are subtypes of "
                "integer, floating, complexfloating."
            )
        check_sizes("iota", shape)
        if not 0 <= dimension < len(shape):
            raise ValueError(
                f"iota dimension must be between 0 and len(shape), got dimension={dimension} for shape={shape}"
            )
        return make_aval(shape, dtype)

    def host(self, *, dtype, shape, dimension):
        n = shape[dimension]
        line = np.arange(n, dtype=dtype) if dtype.kind in "iuf" and dtype.itemsize > 2 else np.arange(n).astype(dtype)
        if len(shape) == 1:
            return line
        out = np.empty(shape, dtype)
        out[...] = line.reshape([n if i == dimension else 1 for i in range(len(shape))])
        return out

    def lower(self, em, out, *, dtype, shape, dimension):
        return em.iota(out, dimension)

    def show(self, params):
        return {**params, "sharding": None}


class Empty(_Nullary):
    """An array to be filled later; its elements are zero."""

    @memoised
    def abstract(self, *, dtype, shape):
        check_sizes("empty", shape)
        return make_aval(shape, dtype)

    def host(self, *, dtype, shape):
        return np.zeros(shape, dtypes.physical_dtype(dtype))

    def lower(self, em, out, *, dtype, shape):
        return em.splat(0, out)

    def show(self, params):
        return {**params, "out_sharding": None}


iota_p, empty_p = Iota("iota"), Empty("empty")


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1, ..., size - 1.

    Example:
        >>> from gradix import lax
        >>> lax.iota("float32", 3)
        Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike,
    shape: Sequence[Size],
    dimension: int,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of `shape` holding each element's position along the axis `dimension`.

    Args:
        dtype: of real numbers.
        shape: the sizes of the axes.
        dimension: the axis along which numbers grow.

    Example:
        >>> from gradix import lax
        >>> lax.broadcasted_iota("int32", (2, 2), 1)
        Array([[0, 1],
               [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return divided(broadcasted_iota, out_sharding, dtype, shape, dimension)
    dtype = dtypes.requested_dtype(dtype, "iota")
    return bind(iota_p, (), {"dtype": dtype, "shape": canonical_shape(shape), "dimension": index(dimension)})


def full(
    shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Sharding | None = None
) -> Array:
    """An array of `shape` in which every element is the scalar `fill_value`.

    Args:
        shape: an int or a sequence of ints.
        fill_value: a scalar.
        dtype: the result's dtype; by default that of the value, weakly typed if it is a Python
            number.
        sharding: where the result lies, or how it is divided; traced results ignore it.

    Raises:
        TypeError: `fill_value` is not a scalar.

    Example:
        >>> from gradix import lax
        >>> lax.full((2,), 7, "int8")
        Array([7, 7], dtype=int8)
    """
    shape = canonical_shape(shape)
    if np.ndim(fill_value) if not isinstance(fill_value, Array) else fill_value.aval.ndim:
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}.")
    filled = _filled(shape, as_array(fill_value) if dtype is None else _scalar_of(fill_value, dtype))
    return filled if sharding is None else _on(filled, sharding)


def _on(x, sharding):
    """`x` under a sharding; what is traced lies nowhere."""
    if type(x) is not ArrayImpl:
        return x
    spec = getattr(sharding, "spec", ())
    if len(spec) > x.aval.ndim and all(e is None for e in spec[x.aval.ndim :]):
        sharding = sharding.update(spec=spec.update(partitions=spec[: x.aval.ndim]))
    return x.to_device(sharding)


def _scalar_of(value, dtype):
    """A fill value as a scalar of a dtype.

    Raises:
        TypeError: a Python complex for a real dtype.
    """
    if type(value) is complex and dtypes.as_dtype(dtype) not in COMPLEX:
        raise TypeError(
            f"the complex fill_value {value} does not fit dtype {dtypes.as_dtype(dtype)}. Take its .real part."
        )
    return convert_element_type(value, dtype)


def _filled(shape, value):
    """A scalar array broadcast to `shape`, which outside of traces is done by NumPy."""
    check_sizes("full", shape)
    if not shape:
        return as_made(value) if type(value) is ArrayImpl and is_number(value) else value
    return bind(broadcast_in_dim_p, (value,), {"shape": shape, "broadcast_dimensions": ()})


def full_like(
    x: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """An array like `x`, of its shape and dtype unless others are given, filled with a scalar.

    Args:
        x: an array, or anything with a shape and dtype.
        fill_value: a scalar.
        dtype: the result's; None for that of `x`.
        shape: the result's; None for that of `x`.
        sharding: where the result lies; None for where `x` was put, if that is one device
            or the shape is the same.

    Example:
        >>> from gradix import lax
        >>> lax.full_like(lax.iota("int32", 2), 7)
        Array([7, 7], dtype=int32)
    """
    if not hasattr(x, "shape"):
        x = as_array(x)
    shape = x.shape if shape is None else canonical_shape(shape)
    if sharding is None and type(x) is ArrayImpl:
        place = x.aval.place
        stays = place is not None and place.is_committed
        if stays and (shape == x.shape or place.device is not None):
            sharding = x.sharding
    elif sharding is None and state.stage is None and not isinstance(x, Array) and shape == tuple(x.shape):
        sharding = sharding_of_type(x)
    weak = dtype is None and dtypes.is_weakly_typed(x)
    want = dtypes.requested_dtype(x.dtype if dtype is None else dtype, "full_like")
    if dtypes.is_extended(want):
        filled = _filled_keys(shape, fill_value, want)
    else:
        filled = full(shape, fill_value, want)
        filled = convert(filled, want, True) if weak else filled
    if state.manual:  # it varies over the mesh axes over which `x` does
        filled = varying_over(filled, getattr(getattr(x, "aval", x), "vma", frozenset()))
    return filled if sharding is None else _on(filled, sharding)


def _filled_keys(shape, value, dtype):
    """An array of keys whose words all have the given value, or which are copies of one key."""
    given = getattr(value, "aval", None)
    if given is not None and given.dtype == dtype:
        return broadcast_to(value, shape)
    scalar = ArrayImpl(dtype.filled(int(np.asarray(value))), make_aval((), dtype))
    return _filled(shape, scalar)


def zeros_like_array(x):
    """Zeros of the shape, dtype and weak type of `x`."""
    return zeros(as_array(x).aval)


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """An array of `shape` whose elements are to be set later; here they are zero.

    Example:
        >>> from gradix import lax
        >>> lax.empty((2,), "int32")
        Array([0, 0], dtype=int32)
    """
    if out_sharding is not None:
        return divided(empty, out_sharding, shape, dtype)
    return bind(empty_p, (), {"dtype": dtypes.requested_dtype(dtype, "empty"), "shape": canonical_shape(shape)})


def stage(x: Any, /) -> Array:
    """A number or NumPy array as a constant of the program that is being traced.

    Raises:
        TypeError: `x` is neither a number nor an array.

    Example:
        >>> from gradix import lax
        >>> lax.stage(2)
        Array(2, dtype=int32, weak_type=True)
    """
    if isinstance(x, (list, tuple)):
        raise TypeError(
            f"stage takes a number or an array, got a {type(x).__name__}. Use gradix.numpy.asarray, or "
            "gradix.tree.map(lax.stage, ...) for each of its elements."
        )
    return arrays("stage", x)[0]
