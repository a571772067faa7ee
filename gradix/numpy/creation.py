"""New arrays: filled with a value, holding coordinates of grids, or computed from indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._api.mapping.vmap import vmap
from gradix._base import config as _config
from gradix._base.tracebacks import boundary
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, copied, is_shared
from gradix._core.dimensions.expression import as_dim
from gradix._core.divisions import explicit_part, sharding_of_type
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix._core.trace import is_staging, state, varying_over
from gradix.numpy.placement import place
from gradix.numpy.promotion import as_operand, broadcast_to, common_shape, convert, number
from gradix.numpy.ranges import arange

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Device, DTypeLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec, Sharding

_BYTE = np.dtype("int8")


# -- filled arrays ---------------------------------------------------------------------------------


def _filled(name: str, shape, value, dtype, device, out_sharding) -> Array:
    dtype = dtypes.requested_dtype(dtype, name, stacklevel=4)
    if dtype == dtypes.float0:
        return _without_values(shape)
    if dtypes.is_extended(dtype):
        x = lax.full_like(lax.full(shape, number(0, _BYTE)), value, dtype)
    else:
        x = lax.full(shape, number(value, dtype))
    return _placed(x, device, out_sharding)


def _without_values(shape) -> Any:
    """A NumPy array of dtype float0, the dtype of derivatives in integers, which holds nothing."""
    return np.zeros(lax.full(shape, number(0, _BYTE)).aval.shape, dtypes.float0)


def _placed(x, device, out_sharding) -> Array:
    """The array on the device or sharding asked for, copied if it is one that is kept for reuse."""
    if type(x) is ArrayImpl and is_shared(x):
        x = copied(x)
    return x if device is None and out_sharding is None else place(x, device, out_sharding)


def zeros(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of zeros.

    Args:
        shape: an int or a sequence of ints.
        dtype: the dtype; the default floating dtype if None.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.zeros(3, int)
        Array([0, 0, 0], dtype=int32)
        >>> jnp.zeros((2, 3)).shape
        (2, 3)

    See also:
        `jnp.zeros_like`, `jnp.ones`, `jnp.full`, `jnp.empty`.
    """
    return _filled("zeros", shape, 0, dtype, device, out_sharding)


def ones(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of ones.

    Args:
        shape: an int or a sequence of ints.
        dtype: the dtype; the default floating dtype if None.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ones((2, 2))
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
        >>> jnp.ones(2, dtype="uint8")
        Array([1, 1], dtype=uint8)

    See also:
        `jnp.ones_like`, `jnp.zeros`, `jnp.full`.
    """
    return _filled("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array to be filled later; its elements are zero.

    Args:
        shape: an int or a sequence of ints.
        dtype: the dtype; the default floating dtype if None.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.empty(2)
        Array([0., 0.], dtype=float32)
    """
    return _filled("empty", shape, 0, dtype, device, out_sharding)


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array in which every element, or every row, is `fill_value`.

    Args:
        shape: an int or a sequence of ints.
        fill_value: a number, or an array that broadcasts to `shape`.
        dtype: the dtype; by default that of `fill_value`.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `fill_value` does not broadcast to `shape`.
        TypeError: `fill_value` is a complex number and `dtype` is real.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.full((2, 2), jnp.array([1, 2]))
        Array([[1, 2],
               [1, 2]], dtype=int32)
        >>> jnp.full(2, jnp.inf)
        Array([inf, inf], dtype=float32, weak_type=True)

    See also:
        `jnp.full_like`, `jnp.zeros`, `jnp.ones`, `jnp.broadcast_to`.
    """
    dtype = None if dtype is None else dtypes.requested_dtype(dtype, "full", stacklevel=3)
    if dtype is not None and dtype == dtypes.float0:
        return _without_values(shape)
    value = _value_of("full", fill_value, dtype)
    if not value.aval.ndim:
        x = lax.full(shape, value)
    else:
        whole: Any = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
        if common_shape("full", value, lax.full(whole, number(0, value.aval.dtype))) != whole:
            raise ValueError(
                f"full: fill_value of shape {value.aval.shape} does not broadcast to shape "
                f"{whole}. Give a scalar, or an array whose axes have these sizes or size 1."
            )
        x = broadcast_to(value, tuple([as_dim(n) for n in whole]))
    return _placed(x, device, out_sharding)


def _value_of(name: str, value, dtype):
    if type(value) in (int, float, complex, bool) and dtype is not None:
        if type(value) is complex and dtype not in COMPLEX:
            raise TypeError(
                f"{name}: the complex fill_value {value} does not fit dtype {dtype}. Take its real "
                "part, or ask for a complex dtype."
            )
        return number(value, dtype)
    value = as_operand(name, value, 1)
    return value if dtype is None else convert(value, dtype)


def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Zeros of the shape and dtype of `a`.

    Args:
        a: an array, or anything with a shape and a dtype.
        dtype: the dtype, if it is to be another one.
        shape: the shape, if it is to be another one.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result; by default that of `a`, if `shape` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.zeros_like(jnp.arange(3))
        Array([0, 0, 0], dtype=int32)
        >>> jnp.zeros_like(jnp.ones((2, 2), int), dtype=float, shape=3)
        Array([0., 0., 0.], dtype=float32)

    See also:
        `jnp.zeros`, `jnp.ones_like`, `jnp.full_like`.
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding=out_sharding)


def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Ones of the shape and dtype of `a`.

    Args:
        a: an array, or anything with a shape and a dtype.
        dtype: the dtype, if it is to be another one.
        shape: the shape, if it is to be another one.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result; by default that of `a`, if `shape` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ones_like(jnp.arange(3))
        Array([1, 1, 1], dtype=int32)
        >>> jnp.ones_like(jnp.arange(3), dtype="float16")
        Array([1., 1., 1.], dtype=float16)

    See also:
        `jnp.ones`, `jnp.zeros_like`, `jnp.full_like`.
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding=out_sharding)


def empty_like(
    prototype: Any,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array:
    """An array to be filled later, of the shape and dtype of `prototype`; its elements are zero.

    Args:
        prototype: an array, or anything with a shape and a dtype.
        dtype, shape: the dtype and the shape, if they are to be other ones.
        device: the device, or sharding, to which the array goes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.empty_like(jnp.arange(3))
        Array([0, 0, 0], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device, out_sharding=None)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of the shape and dtype of `a` in which every element is `fill_value`.

    Args:
        a: an array, or anything with a shape and a dtype.
        fill_value: a number, or an array that broadcasts to the shape.
        dtype: the dtype, if it is to be another one.
        shape: the shape, if it is to be another one.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result; by default that of `a`, if `shape` is not given
            and `fill_value` is a scalar.

    Raises:
        ValueError: `fill_value` does not broadcast to the shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.full_like(jnp.arange(3), 7)
        Array([7, 7, 7], dtype=int32)
    """
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = as_operand("full_like", a)
    if isinstance(fill_value, (int, float, complex)) or not np.ndim(fill_value):
        return _like("full_like", a, fill_value, dtype, shape, device, out_sharding=out_sharding)
    return full(
        a.shape if shape is None else shape,
        fill_value,
        a.dtype if dtype is None else dtype,
        device=device,
        out_sharding=out_sharding,
    )


def _like(name, a, value, dtype, shape, device, *, out_sharding):
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = as_operand(name, a)
    weak = dtype is None and dtypes.is_weakly_typed(a)
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, name, stacklevel=4)
    else:
        dtype = dtypes.canonicalize_dtype(a.dtype, allow_extended_dtype=True)
    if dtype == dtypes.float0:
        return _without_values(a.shape if shape is None else shape)
    if dtypes.is_extended(dtype):
        x = lax.full_like(a, value, dtype, shape)
    else:
        fill = _value_of(name, value, dtype)
        x = lax.full(a.shape if shape is None else shape, convert(fill, dtype, weak))
    if state.manual:  # it varies over the mesh axes over which `a` does
        x = varying_over(x, getattr(getattr(a, "aval", a), "vma", frozenset()))
    if device is None and out_sharding is None and shape is None:
        found = _sharding_of(a)
        device, out_sharding = (None, found) if is_staging() else (found, None)
    return _placed(x, device, out_sharding)


def _sharding_of(a):
    """The sharding of an array that another is to be like; None if it has none to pass on."""
    if not isinstance(a, Array) and hasattr(a, "__jax_array__"):
        try:  # It is an object of a library, as a layer's weight, or has no more than a type.
            a = as_operand("zeros_like", a)
        except Exception:
            return None
    aval = getattr(a, "aval", None)
    if type(a) is ArrayImpl and aval.place is not None and not is_staging():
        return a.sharding if aval.place.is_committed else None
    if aval is not None:
        return getattr(aval, "division", None)
    given = sharding_of_type(a)
    if not is_staging():
        return given
    own = getattr(a, "sharding", None)
    if given is None and own is not None and getattr(own, "mesh", None) == _config.state.gradix_mesh:
        given = own  # of a program for devices that are still to be named
    return explicit_part(given, len(a.shape))


# -- functions of the index ------------------------------------------------------------------------


@boundary
def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any
) -> Array:
    """The values of a function of the indices of each element.

    Args:
        function: a function of as many scalars as there are axes; it is traced once, under `vmap`.
        shape: the sizes of the axes.
        dtype: the dtype of the indices.
        **kwargs: further keyword arguments of the function.

    Returns:
        An array whose first axes are those of `shape`, followed by those of the function's result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fromfunction(lambda i, j: i + j, (2, 3), dtype=int)
        Array([[0, 1, 2],
               [1, 2, 3]], dtype=int32)
    """
    shape = tuple([as_dim(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))])
    call = lambda *indices: function(*indices, **kwargs)  # noqa: E731
    for i in reversed(range(len(shape))):
        call = vmap(call, in_axes=tuple([0 if j == i else None for j in range(len(shape))]), axis_size=shape[i])
    return call(*[arange(n, dtype=dtype) for n in shape])


@replayed
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """The coordinates of the points of a grid, given by a vector of coordinates for each axis.

    Args:
        *xi: vectors of sizes n₁, n₂, n₃ …
        copy: only True is allowed, since arrays are immutable.
        sparse: whether axes along which a coordinate does not vary have size 1.
        indexing: 'ij' for arrays of shape (n₁, n₂, n₃ …), in which vector i varies along axis i;
            'xy' for the shape (n₂, n₁, n₃ …), in which the first two axes are swapped.

    Returns:
        A list of arrays, one for each vector and of its dtype.

    Raises:
        ValueError: an array has more than one axis, `indexing` is unknown, or `copy` is False.

    Example:
        >>> import gradix.numpy as jnp
        >>> x, y = jnp.meshgrid(jnp.arange(3), jnp.arange(2))
        >>> y
        Array([[0, 0, 0],
               [1, 1, 1]], dtype=int32)
    """
    if not copy:
        raise ValueError("meshgrid: copy=False is not possible, since arrays are immutable. Leave copy out.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}.")
    vectors = [as_operand("meshgrid", x, i) for i, x in enumerate(xi)]
    if any(x.aval.ndim != 1 for x in vectors):
        raise ValueError(
            "meshgrid: the arguments must be vectors, got the shapes "
            f"{', '.join([str(x.aval.shape) for x in vectors])}. Flatten them with jnp.ravel."
        )
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(order)
    for x, axis in zip(vectors, order):
        shape[axis] = x.aval.shape[0]
    out = []
    for x, axis in zip(vectors, order):
        full_shape = tuple([n if i == axis or not sparse else 1 for i, n in enumerate(shape)])
        out.append(lax.broadcast_in_dim(x, full_shape, (axis,)))
    return out


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The indices of the points of a grid: one array for each axis, stacked along a new first axis.

    Args:
        dimensions: the shape of the grid.
        dtype: the dtype of the indices; the default integer dtype if None.
        sparse: whether to return a tuple of arrays, each with sizes 1 but for its own axis.

    Returns:
        An array of shape (number of axes, *dimensions), or a tuple of arrays.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.indices((2, 2))
        Array([[[0, 0],
                [1, 1]],
        <BLANKLINE>
               [[0, 1],
                [0, 1]]], dtype=int32)
    """
    dtype = dtypes.requested_dtype(int if dtype is None else dtype, "indices", stacklevel=3)
    shape = tuple([as_dim(n) for n in dimensions])
    n = len(shape)
    if sparse:
        shapes = [tuple([size if j == i else 1 for j in range(n)]) for i, size in enumerate(shape)]
        return tuple([lax.broadcast_in_dim(lax.iota(dtype, shape[i]), s, (i,)) for i, s in enumerate(shapes)])
    grids = [lax.broadcasted_iota(dtype, (1, *shape), i + 1) for i in range(n)]
    return lax.concatenate(grids, 0) if grids else lax.full((0,), number(0, dtype))
