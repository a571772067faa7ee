"""Functions that take elements by index arrays and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import INTEGER
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix.numpy import row_host_implementations
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.division import remainder
from gradix.numpy.indexing import take_index
from gradix.numpy.promotion import as_operand, broadcast_to, common_shape, convert, number, promote_dtypes
from gradix.numpy.rearrangement import concrete
from gradix.numpy.searching import nonzero
from gradix.numpy.shapes import ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_INT = np.dtype("int32")


def integer_indices(name: str, indices, error=ValueError, booleans: bool = False) -> Array:
    """Indices as an integer array; `error` is raised for others, booleans too unless allowed."""
    i = as_operand(name, indices, 1)
    if booleans and i.aval.dtype in dtypes.BOOL:
        return convert(i, _INT)
    if i.aval.dtype not in INTEGER:
        raise error(
            f"{name}: indices must be integers, got dtype {dtypes.dtype_name(i.aval.dtype)}. A "
            "boolean mask is an index too: x[mask]."
        )
    return i


# -- take ------------------------------------------------------------------------------------------


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of an array, or its parts, at indices along an axis.

    Args:
        a: an array.
        indices: an array of integers; booleans are the numbers 0 and 1.
        axis: the axis; by default, the array is taken as one row.
        out: not supported.
        mode: what integers out of bounds give: "fill" (the default) for `fill_value`, "clip" for
            the nearest element (for negative ones the first), "wrap" for integers modulo the size.
        unique_indices, indices_are_sorted: promises that indices differ, or ascend.
        fill_value: by default NaN, the least signed integer, the largest unsigned one, or True.

    Returns:
        An array of the dtype and shape of `a`, with the axes of `indices` in the place of the axis.

    Raises:
        IndexError: elements are to be taken from an axis without elements.
        ValueError: `indices` are not integers, or `axis` is out of bounds.
        NotImplementedError: `mode` is "raise", or `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.take(jnp.arange(3.0) * 10, jnp.array([2, -1, 7]))
        Array([20., 20., nan], dtype=float32)
    """
    no_out("take", out)
    x, i = as_operand("take", a), integer_indices("take", indices, booleans=True)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if not n and i.aval.size:
        raise IndexError(
            f"take: axis {axis} of shape {x.aval.shape} has no elements to take, and indices of "
            f"shape {i.aval.shape} ask for some."
        )
    if mode == "raise":
        raise NotImplementedError("take: mode='raise' is not supported. Use 'fill', 'clip' or 'wrap'.")
    if mode == "wrap":
        i = lax._wide_index(i, n)
        i, mode = remainder(i, number(n, i.aval.dtype)), "promise_in_bounds"
    index = (*[slice(None)] * axis, i)
    if mode in (None, "fill", "drop"):
        found = lax._host_get(x, index)
        if found is not None:
            return found
    return take_index(
        x,
        index,
        mode=mode or lax.GatherScatterMode.FILL_OR_DROP,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=mode != "clip",
    )


@replayed(host=row_host_implementations.take_along_axis)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | lax.GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """The elements that indices name along an axis, each in the row of the index itself.

    Args:
        arr: an array.
        indices: an integer array of the rank of `arr`; all axes but `axis` broadcast with those of
            `arr`.
        axis: the axis; None takes `arr` as one row, and `indices` as a vector.
        mode: what integers out of bounds give, as for `take`; "fill" by default.
        fill_value: the value that the mode "fill" gives.
        wrap_negative_indices: whether negative indices count from the end; by default they do, but
            for the mode "promise_in_bounds".

    Returns:
        An array of the dtype of `arr` and the shape of `indices`, broadcast with that of `arr`.

    Raises:
        ValueError: the indices and the array differ in rank, or do not broadcast.
        TypeError: `indices` are not integers.
        IndexError: elements are to be taken from an axis without elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.array([[3, 1], [2, 9]])
        >>> jnp.take_along_axis(x, jnp.argmax(x, axis=1, keepdims=True), axis=1)
        Array([[3],
               [9]], dtype=int32)
    """
    x, i = (as_operand("take_along_axis", arr), integer_indices("take_along_axis", indices, TypeError))
    if axis is None:
        if i.aval.ndim != 1:
            raise ValueError(f"take_along_axis: for axis=None, indices must be a vector, got {i.aval.shape}.")
        x, axis = ravel(x), 0
    if x.aval.ndim != i.aval.ndim:
        raise ValueError(
            "take_along_axis: indices and arr must have the same rank, got shapes "
            f"{i.aval.shape} and {x.aval.shape}. indices[:, None] adds an axis."
        )
    axis = axis_of(axis, x.aval.ndim)
    mode = lax.GatherScatterMode.FILL_OR_DROP if mode is None else lax.GatherScatterMode.asked(mode)
    if wrap_negative_indices is None:
        wrap_negative_indices = mode is not lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if wrap_negative_indices:
        i = lax._index_from_end(i, x.aval.shape[axis])
    if not i.aval.size:
        sizes = [n if d == axis else m if n == 1 else n for d, (n, m) in enumerate(zip(i.aval.shape, x.aval.shape))]
        return lax.full(tuple(sizes), number(0, x.aval.dtype))
    if x.aval.shape[axis] == 0:
        raise IndexError(
            f"take_along_axis: axis {axis} of arr, of shape {x.aval.shape}, has no elements to "
            f"take, and indices of shape {i.aval.shape} ask for some."
        )
    numbers, window, shape = _along_axis(x.aval.shape, i.aval.shape, axis)
    wide = np.dtype(np.int64) if i.aval.dtype == np.int64 else dtypes.index_dtype(_INT, x.aval.shape)
    i = lax.reshape(lax._fitted_index(i, wide), shape)
    return lax.gather(x, i, numbers, window, mode=mode, fill_value=fill_value)


def _along_axis(own: tuple, other: tuple, axis: int):
    """The dimension numbers, slice sizes and shape of the index array for `take_along_axis`."""
    offsets, collapsed, batching, batch_at, kept = [], [], [], [], []
    for d, (n, m) in enumerate(zip(own, other)):
        if d != axis and m == 1 and n != 1:
            offsets.append(d)
            continue
        if d == axis or n == 1 != m:
            collapsed.append(d)
        elif n == m:
            batching.append(d)
            batch_at.append(len(kept))
        else:
            raise ValueError(
                f"take_along_axis: arr of shape {own} and indices of shape {other} do not broadcast along axis {d}."
            )
        kept.append(m)
    numbers = lax.GatherDimensionNumbers(tuple(offsets), tuple(collapsed), (axis,), tuple(batching), tuple(batch_at))
    return numbers, tuple([n if d in offsets else 1 for d, n in enumerate(own)]), (*kept, 1)


# -- put -------------------------------------------------------------------------------------------


# -- choose ----------------------------------------------------------------------------------------


def choose(
    a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """The elements of several arrays, each from the array whose number `a` holds.

    Args:
        a: an integer array.
        choices: a sequence of arrays; they broadcast with `a`.
        out: not supported.
        mode: how to treat integers out of bounds: "raise" (not under a transformation), "wrap" or
            "clip".

    Returns:
        An array of the broadcast shape, in the promoted dtype of the choices.

    Raises:
        ValueError: `a` does not hold integers, an integer is out of bounds, or `mode` is unknown.
        ConcretizationTypeError: `a` is traced, and `mode` is "raise".
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
        Array([10,  2], dtype=int32)
    """
    no_out("choose", out)
    which = as_operand("choose", a)
    if which.aval.dtype not in INTEGER:
        raise ValueError(f"choose: a must hold integers, got dtype {which.aval.dtype}.")
    cases = promote_dtypes("choose", *(lax.unstack(choices, 0) if isinstance(choices, Array) else choices))
    n = len(cases)
    if mode == "raise":
        held = concrete(
            which, "jnp.choose with mode='raise' must know its indices. Use mode='wrap' or mode='clip' instead."
        )
        if ((held < 0) | (held >= n)).any():
            raise ValueError(
                f"invalid entry in choice array: the integers of a must be from 0 to {n - 1}, got {held.min()} to "
                f"{held.max()}. Use mode='wrap' or mode='clip' to allow others."
            )
    elif mode == "wrap":
        which = lax._wide_index(which, n)
        which = remainder(which, number(n, which.aval.dtype))
    elif mode != "clip":
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    shape = common_shape("choose", which, *cases)
    out = lax.select_n(broadcast_to(lax._fitted_index(which, _INT), shape), *[broadcast_to(c, shape) for c in cases])
    return convert(out, out.aval.dtype)


# -- compress --------------------------------------------------------------------------------------


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The parts of an array along an axis at which a condition is true.

    Args:
        condition: a vector of booleans, at most as long as the axis.
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        size: the size of the axis in the result; it is needed if the condition is traced.
        fill_value: the value to fill in if fewer elements of the condition are true.
        out: not supported.

    Returns:
        An array of the dtype and shape of `a`, but for the size of the axis.

    Raises:
        ValueError: `condition` is not a vector or longer than the axis, or `size` does not fit it.
        ConcretizationTypeError: `condition` is traced and `size` is not given.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
        Array([0, 2], dtype=int32)
    """
    no_out("compress", out)
    c, x = as_operand("compress", condition), as_operand("compress", a, 1)
    if c.aval.ndim != 1:
        raise ValueError(f"compress: condition must be a vector, got shape {c.aval.shape}.")
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if c.aval.shape[0] > n:
        rest = take_index(c, slice(n, None))
        if not isinstance(rest, Tracer) and np.any(np.asarray(rest)):
            raise ValueError(
                f"compress: condition of size {c.aval.shape[0]} is true out of bounds of axis {axis} with size {n}."
            )
        c = take_index(c, slice(0, n))
    if size is None:
        (places,) = nonzero(c)
        return take_index(x, (*[slice(None)] * axis, places))
    if size == 0:
        return take_index(x, (*[slice(None)] * axis, slice(0, 0)))
    if not 0 < size <= n:
        raise ValueError(f"compress: size must be from 0 to {n}, the size of axis {axis}, got {size}.")
    (places,) = nonzero(c, size=size, fill_value=n)
    fill = fill_value.item() if isinstance(fill_value, ArrayImpl) else fill_value
    return take_index(x, (*[slice(None)] * axis, places), mode="fill", fill_value=fill)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """A vector of the elements of an array at which a condition is true.

    Args:
        condition: an array of booleans with the size of `arr`.
        arr: an array.
        size: how many elements to return; it is needed if `condition` is traced. Later ones are
            cut, and missing ones are filled in.
        fill_value: the value to fill in.

    Raises:
        ConcretizationTypeError: `condition` is traced and `size` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(4)
        >>> jnp.extract(x > 1, x)
        Array([2, 3], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), 0, size=size, fill_value=fill_value)
