"""Elements moved, inserted and removed: roll, insert, delete, resize, trim_zeros."""

from __future__ import annotations

from math import prod
from operator import index as as_int

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import as_dim, is_known_at_most, is_symbolic_shape
from gradix._core.dtypes import INTEGER
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy.axes import are_several, axes_of, axis_of
from gradix.numpy.division import remainder
from gradix.numpy.indexing import take_index
from gradix.numpy.joining import concatenate
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, value_of
from gradix.numpy.selection import where
from gradix.numpy.shapes import broadcast_to as stretched, ravel
from gradix.numpy.sorting import argsort


def concrete(x, why: str) -> np.ndarray:
    """A value known while the program is traced, as a NumPy array.

    Raises:
        ConcretizationTypeError: it is traced; the message says `why` it must not be.
    """
    x = value_of(x)
    if is_unknown(x):
        raise ConcretizationTypeError(x, why)
    return x.host if isinstance(x, ArrayImpl) else np.asarray(x)


# -- roll ------------------------------------------------------------------------------------------


@replayed
def roll(a, shift, axis=None) -> Array:
    """`a` with its elements shifted along axes, those pushed out coming back at the other end.

    Args:
        a: an array.
        shift: by how much, possibly traced; a sequence where `axis` is one.
        axis: one or several; by default the elements are shifted in one row.

    Raises:
        ValueError: `shift` and `axis` have different numbers of entries.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.roll(jnp.arange(5), 2)
        Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = as_operand("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(x), shift, (0,)), x.aval.shape)
    axes = [axis_of(i, x.aval.ndim) for i in (axis if are_several(axis) else (axis,))]
    shifts = _listed_shifts(shift)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(
            "roll: shift and axis must have as many entries, or one of them a single one; got "
            f"{len(shifts)} shifts and {len(axes)} axes."
        )
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    for i, s in zip(
        axes * count if len(axes) == 1 else axes, shifts * count if len(shifts) == 1 else shifts
    ):
        x = _roll_axis(x, s, i)
    return x


def _listed_shifts(shift) -> list:
    """The shifts as Python ints, or as traced scalars."""
    if isinstance(shift, (tuple, list)) and any(isinstance(s, Tracer) for s in shift):
        return list(shift)
    if is_symbolic_shape(shift if isinstance(shift, (tuple, list)) else (shift,)):
        return list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if isinstance(shift, Tracer):
        return (
            [shift]
            if not shift.aval.ndim
            else [take_index(shift, i) for i in range(shift.aval.shape[0])]
        )
    held = concrete(shift, "")
    if held.ndim > 1:
        raise ValueError(
            f"'shift' and 'axis' should be scalars or 1D sequences, got shift of shape {held.shape}."
        )
    if held.dtype.kind not in "iub" and held.size:
        raise TypeError(f"roll: shift must be integers, got dtype {held.dtype}.")
    return held.reshape(-1).tolist()


def _roll_axis(x, shift, axis: int):
    n = x.aval.shape[axis]
    if not n:
        return x
    if not isinstance(shift, Array):
        cut = n - as_dim(shift) % n
        if cut == n:
            return x
        return lax.concatenate(
            [lax.slice_in_dim(x, cut, n, axis=axis), lax.slice_in_dim(x, 0, cut, axis=axis)], axis
        )
    twice = lax.concatenate([x, x], axis)
    start = number(n, np.dtype("int32")) - remainder(convert(shift, np.dtype("int32")), n)
    return lax.dynamic_slice_in_dim(twice, start, n, axis)


# -- insertion and removal -------------------------------------------------------------------------


def insert(arr, obj, values, axis: int | None = None) -> Array:
    """`arr` with `values` inserted before the elements `obj` of an axis.

    Args:
        arr: an array.
        obj: an integer, a slice, or integers or booleans, counted before anything is inserted.
        values: what to insert.
        axis: by default the elements are taken in one row.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.insert(jnp.arange(3), 1, 9)
        Array([0, 9, 1, 2], dtype=int32)
    """
    x = as_operand("insert", arr)
    values = as_operand("insert", values, 2)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if is_symbolic_shape((n,)) and not isinstance(obj, slice):
        obj = as_operand("insert", obj, 1)
    if (
        (is_unknown(obj) or is_symbolic_shape((n,)))
        and obj.aval.ndim < 2
        and obj.aval.dtype in INTEGER
    ):
        return _inserted_at(x, obj, values, axis)
    places, scalar = _places(obj, n, "insert")
    places = np.clip(np.where(places < 0, places + n, places), 0, n)
    if len(places) == 1 and values.aval.ndim:
        values = _for_one_place(values, x, axis, scalar)
        places = np.repeat(places, values.aval.shape[axis])
    shape = (*x.aval.shape[:axis], len(places), *x.aval.shape[axis + 1 :])
    values = stretched(convert(values, x.aval.dtype), shape)
    order = np.argsort(places, kind="stable")
    at = places[order] + np.arange(len(places))
    picks = np.full(n + len(places), -1)
    picks[at] = n + order
    picks[picks < 0] = np.arange(n)
    both = lax.concatenate([x, convert(values, x.aval.dtype, x.aval.weak_type)], axis)
    return take_index(both, (*[slice(None)] * axis, picks.astype(np.int32)))


def _inserted_at(x, obj, values, axis: int):
    """`insert` before traced positions: how many values there are is known nevertheless."""
    n, dtype = x.aval.shape[axis], dtypes.python_scalar_dtype(int)
    if obj.aval.size == 1 and values.aval.ndim:
        values = _for_one_place(values, x, axis, not obj.aval.ndim)
    k = values.aval.shape[axis] if obj.aval.size == 1 and values.aval.ndim else obj.aval.size
    shape = (*x.aval.shape[:axis], k, *x.aval.shape[axis + 1 :])
    both = lax.concatenate(
        [x, convert(stretched(values, shape), x.aval.dtype, x.aval.weak_type)], axis
    )
    zero, one, end = (number(v, dtype) for v in (0, 1, n))
    places = broadcast_to(ravel(convert(obj, dtype)), (k,))
    places = lax.clamp(zero, where(lax.lt(places, zero), lax.add(places, end), places), end)
    order = argsort(places)
    at = lax.add(take_index(places, order), lax.iota(dtype, k))
    old = lax.sub(lax.cumsum(lax.full((n + k,), one).at[at].set(0)), one)
    picks = old.at[at].set(lax.add(order, end))
    return take_index(both, (*[slice(None)] * axis, picks))


def _for_one_place(values, x, axis: int, scalar: bool):
    """Values for one place, as NumPy aligns them: of a scalar, their first axis is the one inserted along."""
    ndim = x.aval.ndim
    if values.aval.ndim > ndim:
        raise ValueError(
            f"insert: values of shape {values.aval.shape} have more axes than the array {x.aval.shape}."
        )
    values = lax.expand_dims(values, range(ndim - values.aval.ndim))
    if not scalar:
        return values
    order = list(range(1, ndim))
    order.insert(axis, 0)
    return lax.transpose(values, order)


def _places(obj, n: int, name: str) -> tuple[np.ndarray, bool]:
    """The positions an argument `obj` names, and whether it is a single integer."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n)), False
    held = concrete(
        as_operand(name, obj, 1),
        f"jnp.{name} needs to know the positions, as they decide the size of the result.",
    )
    if held.dtype == bool:
        if held.shape != (n,):
            raise ValueError(
                f"{name}: a boolean mask must have the size {n} of the axis, got shape {held.shape}."
            )
        return np.flatnonzero(held), False
    if held.size == 0:
        return np.zeros(0, int), False
    if held.dtype.kind not in "iu":
        raise TypeError(f"{name}: positions must be integers or booleans, got dtype {held.dtype}.")
    if held.ndim > 1:
        raise ValueError(
            f"index array argument obj to {name} must be one dimensional or scalar, got shape "
            f"{held.shape}."
        )
    return held.reshape(-1).astype(int), not held.ndim


def delete(arr, obj, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """`arr` without the elements `obj` of an axis.

    Args:
        arr: an array.
        obj: an integer, a slice, or integers or booleans; an integer, or with
            `assume_unique_indices` an array of different integers, may be traced.
        axis: by default the elements are taken in one row.
        assume_unique_indices: `obj` names no element twice.

    Raises:
        IndexError, ValueError: an index is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.delete(jnp.arange(4), jnp.array([1, 2]))
        Array([0, 3], dtype=int32)
    """
    x = as_operand("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if is_symbolic_shape((n,)) and isinstance(obj, (int, np.integer)):
        return _delete_traced(x, as_operand("delete", obj, 1), axis, n)
    if isinstance(obj, Tracer) and (not obj.aval.ndim or assume_unique_indices):
        return _delete_traced(x, obj, axis, n)
    places, scalar = _places(obj, n, "delete")
    if scalar and not -n <= places[0] < n:
        raise ValueError(
            f"delete: index {places[0]} is out of bounds for axis {axis} with size {n}."
        )
    if ((places < -n) | (places >= n)).any():
        raise IndexError(
            f"delete: indices {places.tolist()} are out of bounds for axis {axis} with size {n}."
        )
    kept = np.ones(n, bool)
    kept[places] = False
    return take_index(x, (*[slice(None)] * axis, np.flatnonzero(kept).astype(np.int32)))


def _delete_traced(x, obj, axis: int, n: int):
    """Without traced positions: each element that stays moves up by the number of removed ones before it."""
    count = n - obj.aval.size
    if is_known_at_most(count, 0):
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    obj = lax.sort(lax.reshape(remainder(obj, n), (obj.aval.size,)))
    places = lax.iota(np.int32, count)
    shifted = lax.sub(obj, lax.iota(obj.aval.dtype, obj.aval.size))
    passed = lax.le(
        lax.broadcast_in_dim(convert(shifted, np.dtype("int32")), (count, obj.aval.size), (1,)),
        lax.broadcast_in_dim(places, (count, obj.aval.size), (0,)),
    )
    places = lax.add(places, lax.reduce_sum(convert(passed, np.dtype("int32")), (1,)))
    return take_index(x, (*[slice(None)] * axis, places))


@replayed
def resize(a, new_shape) -> Array:
    """The elements of `a` in a new shape, repeated from the first when they do not suffice.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.resize(jnp.arange(3), (2, 2))
        Array([[0, 1],
               [2, 0]], dtype=int32)
    """
    x = ravel(a)
    shape = (
        tuple([as_int(n) for n in new_shape])
        if hasattr(new_shape, "__len__")
        else (as_int(new_shape),)
    )
    if any(n < 0 for n in shape):
        raise ValueError(f"all elements of `new_shape` must be non-negative, got {shape}.")
    want, have = prod(shape), x.aval.size
    if not have or not want:
        return lax.full(shape, number(0, x.aval.dtype))
    whole = concatenate([x] * -(-want // have)) if want > have else x
    return lax.reshape(lax.slice_in_dim(whole, 0, want), shape)


def trim_zeros(filt, trim: str = "fb", axis=None) -> Array:
    """`filt` without the zeros at its ends.

    Args:
        filt: an array, not traced: its values decide the size of the result.
        trim: "f" for the front, "b" for the back, "fb" for both.
        axis: the axes to trim; by default all.

    Raises:
        ValueError: `trim` has other letters than "f" and "b".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.trim_zeros(jnp.array([0, 0, 1, 2, 0]))
        Array([1, 2], dtype=int32)
    """
    held = concrete(
        filt,
        "Error arose in the `filt` argument of trim_zeros(): its values decide the size of the "
        "result.",
    )
    x = as_operand("trim_zeros", filt)
    trim = trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}. Use 'f', 'b' or 'fb'.")
    index: list = [slice(None)] * x.aval.ndim
    for i in axes_of(axis, x.aval.ndim):
        there = np.flatnonzero(
            np.any(held != 0, axis=tuple([k for k in range(held.ndim) if k != i]))
        )
        first, last = (there[0], there[-1] + 1) if len(there) else (held.shape[i], held.shape[i])
        if not len(there) and "f" not in trim:
            first, last = 0, 0
        index[i] = slice(int(first) if "f" in trim else None, int(last) if "b" in trim else None)
    return take_index(x, tuple(index))
