"""Elements taken and put by index arrays and masks: take, take_along_axis, choose, compress, put, place."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import INTEGER
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix.numpy import row_host_implementations
from gradix.numpy.at import IndexUpdateHelper
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.cumulative import cumsum
from gradix.numpy.division import remainder
from gradix.numpy.indexing import index_from_end, take_index
from gradix.numpy.promotion import (
    as_operand,
    broadcast_to,
    common_shape,
    convert,
    number,
    promote_dtypes,
)
from gradix.numpy.rearrangement import concrete, resize
from gradix.numpy.searching import nonzero
from gradix.numpy.selection import where
from gradix.numpy.shapes import ravel

_INT = np.dtype("int32")


def _integers(name: str, indices, error=ValueError, booleans: bool = False) -> Array:
    i = as_operand(name, indices, 1)
    if booleans and i.aval.dtype in dtypes.BOOL:
        return convert(i, _INT)
    if i.aval.dtype not in INTEGER:
        raise error(
            f"{name}: indices must have an integer type, got {dtypes.dtype_name(i.aval.dtype)}. A boolean mask "
            "is an index too: x[mask]."
        )
    return i


# -- take ------------------------------------------------------------------------------------------


def take(
    a,
    indices,
    axis: int | None = None,
    out=None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value=None,
) -> Array:
    """The elements, or slices, of `a` at `indices` along an axis.

    Args:
        a: an array.
        indices: integers of any shape; booleans are the numbers 0 and 1.
        axis: by default the elements are taken from one row.
        out: not supported.
        mode: what integers out of bounds take: "fill" (the default): `fill_value`; "clip": the
            nearest element, negative ones the first; "wrap": modulo the size.
        unique_indices, indices_are_sorted: promises about `indices`.
        fill_value: by default NaN, the least signed integer, the largest unsigned one, or True.

    Raises:
        IndexError: elements are taken of an axis that has none.
        NotImplementedError: `mode` is "raise".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.take(jnp.arange(3.0) * 10, jnp.array([2, -1, 7]))
        Array([20., 20., nan], dtype=float32)
    """
    no_out("take", out)
    x, i = as_operand("take", a), _integers("take", indices, booleans=True)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if not n and i.aval.size:
        raise IndexError(
            f"Cannot do a non-empty jnp.take() from an empty axis: axis {axis} of shape {x.aval.shape}."
        )
    if mode == "raise":
        raise NotImplementedError(
            "The 'raise' mode to jnp.take is not supported. Use 'fill', 'clip' or 'wrap'."
        )
    if mode == "wrap":
        i, mode = remainder(i, number(n, i.aval.dtype)), "promise_in_bounds"
    index = (*[slice(None)] * axis, i)
    if mode in (None, "fill", "drop"):
        found = lax._host_get(x, index)
        if found is not None:
            return found
    return take_index(
        x,
        index,
        mode=mode or "fill",
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=mode != "clip",
    )


@replayed(host=row_host_implementations.take_along_axis)
def take_along_axis(
    arr,
    indices,
    axis: int | None = -1,
    mode=None,
    fill_value=None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """For each position, the element of the same row of `arr` that `indices` names.

    Args:
        arr: an array.
        indices: integers; its other axes broadcast against those of `arr`.
        axis: the axis `indices` counts along; None takes both in one row.
        mode: as for `take`: "fill" by default.
        fill_value: what mode "fill" puts where an index is out of bounds.
        wrap_negative_indices: whether negative indices count from the end; True by default.

    Raises:
        ValueError: the indices and the array differ in rank, or do not broadcast.
        IndexError: elements are taken of an axis that has none.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.array([[3, 1], [2, 9]])
        >>> jnp.take_along_axis(x, jnp.argmax(x, axis=1, keepdims=True), axis=1)
        Array([[3],
               [9]], dtype=int32)
    """
    x, i = as_operand("take_along_axis", arr), _integers("take_along_axis", indices, TypeError)
    if axis is None:
        if i.aval.ndim != 1:
            raise ValueError(
                f"take_along_axis indices must be 1D if axis=None, got shape {i.aval.shape}"
            )
        x, axis = ravel(x), 0
    if x.aval.ndim != i.aval.ndim:
        raise ValueError(
            f"indices and arr must have the same number of dimensions; {i.aval.ndim} vs. {x.aval.ndim}. "
            "indices[:, None] adds an axis."
        )
    axis = axis_of(axis, x.aval.ndim)
    mode = "fill" if mode is None else mode
    if wrap_negative_indices is None or wrap_negative_indices:
        i = index_from_end(i, x.aval.shape[axis])
    if not i.aval.size:
        sizes = [
            n if d == axis else m if n == 1 else n
            for d, (n, m) in enumerate(zip(i.aval.shape, x.aval.shape))
        ]
        return lax.full(tuple(sizes), number(0, x.aval.dtype))
    if x.aval.shape[axis] == 0:
        raise IndexError(
            f"take_along_axis: axis {axis} of arr, of shape {x.aval.shape}, has no elements to take, and "
            f"indices of shape {i.aval.shape} ask for some."
        )
    numbers, window, shape = _along_axis(x.aval.shape, i.aval.shape, axis)
    i = lax.reshape(convert(i, _INT) if i.aval.dtype != np.int64 else i, shape)
    return lax.gather(x, i, numbers, window, mode=mode, fill_value=fill_value)


def _along_axis(own: tuple, other: tuple, axis: int):
    """Dimension numbers, slice sizes and the shape of the index array for `take_along_axis`."""
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
                f"take_along_axis: arr of shape {own} and indices of shape {other} do not broadcast along "
                f"axis {d}."
            )
        kept.append(m)
    numbers = lax.GatherDimensionNumbers(
        tuple(offsets), tuple(collapsed), (axis,), tuple(batching), tuple(batch_at)
    )
    return numbers, tuple([n if d in offsets else 1 for d, n in enumerate(own)]), (*kept, 1)


# -- put -------------------------------------------------------------------------------------------


def _not_in_place(name: str, inplace: bool, error=ValueError) -> None:
    if inplace:
        raise error(
            f"gradix.numpy.{name} cannot modify arrays in-place, because arrays are immutable. Pass "
            "inplace=False to instead return an updated array."
        )


def put(a, ind, v, mode: str | None = None, *, inplace: bool = True) -> Array:
    """`a` with the elements at `ind`, counted in one row, set to the values `v`, repeated as needed.

    Args:
        a: an array of any shape.
        ind: integers, of any shape.
        v: values, which repeat as needed.
        mode: for integers out of bounds: "clip" (the default) or "wrap".
        inplace: must be False: arrays are immutable, so the result is a new one.

    Raises:
        ValueError: `mode` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.put(jnp.zeros(4), jnp.array([0, 2]), 5, inplace=False)
        Array([5., 0., 5., 0.], dtype=float32)
    """
    _not_in_place("put", inplace)
    x, i, v = as_operand("put", a), ravel(as_operand("put", ind, 1)), ravel(as_operand("put", v, 2))
    if not x.aval.size or not i.aval.size or not v.aval.size:
        return x
    if mode == "wrap":
        i = remainder(i, number(x.aval.size, i.aval.dtype))
    elif mode not in (None, "clip"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}.")
    v = v if v.aval.size == i.aval.size else resize(v, (i.aval.size,))
    out = IndexUpdateHelper(ravel(x))[i].set(v, mode="clip")
    return lax.reshape(out, x.aval.shape)


def put_along_axis(
    arr, indices, values, axis: int | None, inplace: bool = True, *, mode: str | None = None
) -> Array:
    """`arr` with, in each row, the elements that `indices` names set to `values`.

    Args:
        arr: an array.
        indices: integers, of its rank.
        values: what is set; it broadcasts to the shape of `indices`.
        axis: the axis; None takes the array as one row.
        inplace: must be False: arrays are immutable, so the result is a new one.
        mode: for integers out of bounds, as in `x.at[...].set`.

    Raises:
        ValueError: the indices and the array differ in rank.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[0], [1]]), 5.0, axis=1, inplace=False)
        Array([[5., 0.],
               [0., 5.]], dtype=float32)
    """
    _not_in_place("put_along_axis", inplace)
    x, i = as_operand("put_along_axis", arr), _integers("put_along_axis", indices, TypeError)
    shape = x.aval.shape
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    if x.aval.ndim != i.aval.ndim:
        raise ValueError(
            f"indices and arr must have the same number of dimensions; {i.aval.ndim} vs. {x.aval.ndim}"
        )
    index: list = []
    for d, n in enumerate(x.aval.shape):
        place = [1] * x.aval.ndim
        place[d] = n
        index.append(i if d == axis else lax.reshape(lax.iota(np.int32, n), tuple(place)))
    return lax.reshape(IndexUpdateHelper(x)[tuple(index)].set(values, mode=mode), shape)


def place(arr, mask, vals, *, inplace: bool = True) -> Array:
    """`arr` with the elements where `mask` holds set to the values `vals` in turn, which repeat as needed.

    Args:
        arr: an array.
        mask: booleans, of as many elements.
        vals: values, which repeat as needed.
        inplace: must be False: arrays are immutable, so the result is a new one.

    Raises:
        ValueError: `arr` and `mask` differ in size, or there are no values.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(5)
        >>> jnp.place(x, x > 1, jnp.array([7, 8]), inplace=False)
        Array([0, 1, 7, 8, 7], dtype=int32)
    """
    _not_in_place("place", inplace)
    x, m, v = (
        as_operand("place", arr),
        as_operand("place", mask, 1),
        ravel(as_operand("place", vals, 2)),
    )
    if m.aval.size != x.aval.size:
        raise ValueError(
            f"place: arr and mask must be the same size, got shapes {x.aval.shape} and {m.aval.shape}."
        )
    if not v.aval.size:
        raise ValueError("Cannot place values from an empty array")
    flat = ravel(m)
    flat = flat if flat.aval.dtype == bool else lax.ne(flat, number(0, flat.aval.dtype))
    turn = remainder(lax.sub(cumsum(convert(flat, _INT)), number(1, _INT)), v.aval.size)
    out = where(flat, convert(take_index(v, turn), x.aval.dtype), ravel(x))
    return lax.reshape(out, x.aval.shape)


def fill_diagonal(a, val, wrap: bool = False, *, inplace: bool = True) -> Array:
    """`a` with its main diagonal set to `val`, a scalar or values in turn.

    Args:
        a: an array whose axes, if more than two, have one size.
        val: a scalar, or values that are repeated as needed.
        wrap: must be False: NumPy's diagonal of a tall matrix that begins anew.
        inplace: must be False: arrays are immutable, so the result is a new one.

    Raises:
        ValueError: the array has less than two axes, or axes of different sizes.
        NotImplementedError: `wrap` or `inplace` is asked for.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3, inplace=False)
        Array([[3., 0.],
               [0., 3.]], dtype=float32)
    """
    _not_in_place("fill_diagonal", inplace, NotImplementedError)
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    x, v = as_operand("fill_diagonal", a), as_operand("fill_diagonal", val, 1)
    shape = x.aval.shape
    if len(shape) < 2:
        raise ValueError(f"array must be at least 2-d, got shape {shape}.")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}.")
    n = min(shape)
    i = lax.iota(np.int32, n)
    v = v if v.aval.size == 1 and not v.aval.ndim else resize(ravel(v), (n,))
    return IndexUpdateHelper(x)[(i,) * len(shape)].set(v)


# -- choose ----------------------------------------------------------------------------------------


def choose(a, choices, out=None, mode: str = "raise") -> Array:
    """Each element from the array among `choices` that `a` names.

    Args:
        a: integers.
        choices: a sequence of arrays; `a` and these broadcast together.
        out: not supported.
        mode: for integers out of bounds: "raise" (not under a transformation), "wrap" or "clip".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
        Array([10,  2], dtype=int32)
    """
    no_out("choose", out)
    which = as_operand("choose", a)
    if which.aval.dtype not in INTEGER:
        raise ValueError(f"`a` array must be integer typed, got {which.aval.dtype}.")
    cases = promote_dtypes(
        "choose", *(lax.unstack(choices, 0) if isinstance(choices, Array) else choices)
    )
    n = len(cases)
    if mode == "raise":
        held = concrete(
            which,
            "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use "
            "mode='wrap' or mode='clip' instead.",
        )
        if ((held < 0) | (held >= n)).any():
            raise ValueError(
                f"invalid entry in choice array: choices are 0 to {n - 1}, got {held.min()} to "
                f"{held.max()}."
            )
    elif mode == "wrap":
        which = remainder(which, number(n, which.aval.dtype))
    elif mode != "clip":
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    shape = common_shape("choose", which, *cases)
    out = lax.select_n(
        broadcast_to(convert(which, _INT), shape), *[broadcast_to(c, shape) for c in cases]
    )
    return convert(out, out.aval.dtype)


# -- compress --------------------------------------------------------------------------------------


def compress(
    condition, a, axis: int | None = None, *, size: int | None = None, fill_value=0, out=None
) -> Array:
    """The slices of `a` along an axis where `condition` holds.

    Args:
        condition: as many booleans as the axis is long, or fewer.
        a: an array.
        axis: by default the elements are taken in one row.
        size: the size of the result's axis, needed where the condition is traced.
        fill_value: what fills it up.
        out: not supported.

    Raises:
        ValueError: `condition` is no vector, is longer than the axis, or `size` does not fit it.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
        Array([0, 2], dtype=int32)
    """
    no_out("compress", out)
    c, x = as_operand("compress", condition), as_operand("compress", a, 1)
    if c.aval.ndim != 1:
        raise ValueError(f"condition must be a 1D array, got shape {c.aval.shape}.")
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if c.aval.shape[0] > n:
        rest = take_index(c, slice(n, None))
        if not isinstance(rest, Tracer) and np.any(np.asarray(rest)):
            raise ValueError(
                f"condition contains entries that are out of bounds: it is longer than the {n} elements "
                f"of axis {axis}."
            )
        c = take_index(c, slice(0, n))
    if size is None:
        (places,) = nonzero(c)
        return take_index(x, (*[slice(None)] * axis, places))
    if size == 0:
        return take_index(x, (*[slice(None)] * axis, slice(0, 0)))
    if not 0 < size <= n:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got "
            f"size={size} for a.shape[axis]={n}"
        )
    (places,) = nonzero(c, size=size, fill_value=n)
    fill = fill_value.item() if isinstance(fill_value, ArrayImpl) else fill_value
    return take_index(x, (*[slice(None)] * axis, places), mode="fill", fill_value=fill)


def extract(condition, arr, *, size: int | None = None, fill_value=0) -> Array:
    """The elements of `arr` where `condition` holds, in one row.

    Args:
        condition: booleans, of as many elements as `arr`.
        arr: an array.
        size: how many elements to return, needed where `condition` is traced: later ones are cut,
            missing ones filled up.
        fill_value: what to fill up with.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(4)
        >>> jnp.extract(x > 1, x)
        Array([2, 3], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), 0, size=size, fill_value=fill_value)
