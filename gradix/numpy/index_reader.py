"""Reads the index in `x[index]`: integers, slices, masks, arrays, new axes."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import numpy as np

from gradix import lax
from gradix._base import errors
from gradix._base.config import guards_transfers
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl, as_array
from gradix._core.dimensions.expression import as_dim
from gradix._core.dtypes import BOOL, INTEGER, dtype_name
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown, state
from gradix.numpy.conversion import asarray
from gradix.numpy.index_plan import ARRAY, SLICE, too_many_indices
from gradix.numpy.masks import counted_places, decided_places, decides_sizes

transfers = lazy_module("gradix._base.transfers")
_slices = lazy_module("gradix._core.slices")


def read_index(x: Array, index) -> tuple[Array, tuple, list]:
    """The operand, the key of the index's plan, and the integer arrays of the index, in order.

    Boolean arrays are replaced by the indices at which they are true. A single boolean becomes an
    integer array of one element or none, which indexes a new axis of the operand.

    Raises:
        TypeError: the index is or holds a list, a float, or a string.
        IndexError: the index holds another object that is not an index, or a mask of a wrong shape.
        errors.NonConcreteBooleanIndexError: a mask is traced.
    """
    entries = index if type(index) is tuple else _as_entries(index)
    key: list = []
    arrays: list = []
    special = False
    for i, e in enumerate(entries):
        t = type(e)
        if t is int or e is None or e is Ellipsis:
            key.append(e)
        elif t is slice:
            key.append(_slice_key(e, i))
        else:
            try:
                e = entry_of(e)
            except _HasSlices:
                return read_index(x, _without_slices(entries, x.aval.shape))
            if type(e) is not int:
                special = special or type(e) is bool or e.dtype in BOOL
                arrays.append(e)
                e = (ARRAY, e)
            key.append(e)
    if special:
        return _with_masks(x, key)
    if arrays:
        key = [(ARRAY, e[1].shape) if type(e) is tuple and e[0] == ARRAY else e for e in key]
    return x, tuple(key), arrays


def _as_entries(index) -> tuple:
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, str):
        raise TypeError(_no_string(index))
    if isinstance(index, (list, range)) or (
        hasattr(index, "__len__")
        and hasattr(index, "__getitem__")
        and not hasattr(index, "dtype")
        and not isinstance(index, (dict, set, bytes))
    ):
        kind = "tuple" if any(e is None or e is Ellipsis or isinstance(e, slice) for e in index) else "array"
        raise TypeError(
            f"x[{index!r}]: a {type(index).__name__} is not an index, as it could mean a tuple or "
            f"an array. Write x[{'' if kind == 'tuple' else 'jnp.'}{kind}({index!r})]."
        )
    return (index,)


def _no_string(e) -> str:
    return f"x[{e!r}]: a string is not an index, as arrays have no fields. Use a dict of arrays."


def _slice_key(e: slice, position: int) -> tuple:
    if (
        (e.start is None or type(e.start) is int)
        and (e.stop is None or type(e.stop) is int)
        and (e.step is None or type(e.step) is int)
    ):
        return SLICE, e.start, e.stop, e.step
    ends: list = []
    for end in (e.start, e.stop, e.step):
        if is_unknown(end):
            raise IndexError(
                f"The ends of a slice must be static integers, got the traced {e} at position "
                f"{position}: they determine the shape of the result. Use lax.dynamic_slice(x, "
                "(start,), (size,)) for a part of fixed size at a traced start, jnp.where(mask, x, 0) to keep all "
                "elements, or pass what the ends depend on as static (static_argnums or static_argnames of jit)."
                f"{errors.places_of(end)}"
            )
        try:
            ends.append(None if end is None else as_dim(end))
        except TypeError:
            raise TypeError(
                f"The ends of a slice must be integers or None, got {e} at position {position}, of "
                f"type {type(end).__name__!r}."
            ) from None
    return SLICE, *ends


def entry_of(e) -> Any:
    """An entry but a slice, None or `...`, as an int, a bool, a NumPy array or an `Array`."""
    if isinstance(e, Array):
        return _checked(e)
    if type(e) is np.ndarray:
        if guards_transfers() and state.stage is None:
            what = f"an index of dtype {e.dtype} and shape {e.shape}"
            transfers.check("host_to_device", what)
        return _checked(e)
    if isinstance(e, (bool, np.bool_)):
        return bool(e)
    if isinstance(e, (int, np.integer)):
        return int(e)
    if isinstance(e, str):
        raise TypeError(_no_string(e))
    if isinstance(e, (list, tuple)):
        return _checked(asarray(e)) if len(e) else np.zeros(0, np.int32)
    if isinstance(e, (float, complex, np.generic, np.ndarray)):
        return _checked(np.asarray(e))
    if hasattr(e, "__jax_array__"):
        return _checked(as_array(e))
    if hasattr(e, "__index__"):
        return as_int(e)
    if hasattr(e, "__array__"):
        return _checked(np.asarray(e))
    if hasattr(type(e), "is_dynamic_start"):
        raise _HasSlices
    raise IndexError(
        f"x[{e!r}]: a {type(e).__name__} is not an index. Use integers, slices, ..., None, and "
        "arrays of integers or booleans."
    )


class _HasSlices(Exception):
    """Raised by `entry_of` for what `ds` returns."""


def _without_slices(entries: tuple, shape: tuple) -> tuple:
    """The entries with plain slices, or integer arrays, in place of what `ds` returned.

    The arrays of several starts have axes of their own, so that they select a block. Starts are
    arrays where they are traced, or where the part ends beyond the array.
    """
    for e in entries:
        if getattr(e, "is_dynamic_size", False):
            raise TypeError(f"The size of ds(start, size) must be an int, got {e.size}.")
    traced = [
        i
        for i, e in enumerate(entries)
        if isinstance(e, _slices.Slice) and (e.is_dynamic_start or _ends_outside(entries, i, shape))
    ]
    block = range(traced[0], traced[-1] + 1) if traced else range(0)
    others = [i for i, e in enumerate(entries) if i not in block and hasattr(e, "dtype")]
    if others or any(not isinstance(entries[i], _slices.Slice) for i in block):
        raise NotImplementedError(
            "An index may hold ds(start, size) of a traced start beside slices, with other such parts only "
            f"next to it, and not beside arrays; got {entries}. Use lax.dynamic_slice and index its result."
        )
    out = list(entries)
    for i, e in enumerate(entries):
        if not isinstance(e, _slices.Slice):
            continue
        steps = np.arange(e.size, dtype=np.int32) * np.int32(e.stride)
        if i in block:
            column = (e.size, *[1] * (block[-1] - i))
            start = as_array(e.start)
            out[i] = lax.reshape(
                lax.add(lax.broadcast(start, (e.size,)), lax.convert_element_type(as_array(steps), start.aval.dtype)),
                column,
            )
        else:
            out[i] = slice(e.start, e.start + (e.size - 1) * e.stride + 1 if e.size else e.start, e.stride)
    return tuple(out)


def _ends_outside(entries: tuple, i: int, shape: tuple) -> bool:
    """Whether the part at position `i` of the index may end beyond its axis."""
    used = [e is not None and e is not Ellipsis for e in entries]
    from_end = any(e is Ellipsis for e in entries[:i])
    axis = len(shape) - sum(used[i:]) if from_end else sum(used[:i])
    e, n = entries[i], shape[axis] if axis < len(shape) else 0
    return type(n) is not int or e.start < 0 or e.start + (e.size - 1) * e.stride >= n


def _checked(e):
    """An index array, checked to hold integers or booleans; a 0-d mask becomes a bool."""
    if e.dtype not in INTEGER and e.dtype not in BOOL:
        raise TypeError(
            f"An index must have an integer or boolean dtype, got {dtype_name(e.dtype)}. Convert it: x[i.astype(int)]."
        )
    if e.dtype in BOOL and not e.ndim and not isinstance(e, Tracer):
        return bool(e)
    return e


# -- masks -----------------------------------------------------------------------------------------


def _with_masks(x: Array, key: list) -> tuple[Array, tuple, list]:
    """The operand, key and arrays of an index with masks or single booleans."""
    shape = x.aval.shape
    used = sum([_axes_used(e) for e in key])
    if used > len(shape):
        raise too_many_indices(used, shape)
    new_key, arrays, axis, inserted = [], [], 0, []
    for e in key:
        if e is Ellipsis:
            axis += len(shape) - used
        if type(e) is not tuple or e[0] != ARRAY:
            new_key.append(e)
        elif type(e[1]) is bool:
            inserted.append(axis + len(inserted))
            arrays.append(np.zeros(1 if e[1] else 0, np.int32))
            new_key.append((ARRAY, arrays[-1].shape))
        else:
            found = _places(e[1], shape, axis) if e[1].dtype in BOOL else (e[1],)
            arrays += found
            new_key += [(ARRAY, a.shape) for a in found]
        axis += _axes_used(e)
    return lax.expand_dims(x, inserted) if inserted else x, tuple(new_key), arrays


def _axes_used(e) -> int:
    if e is None or e is Ellipsis:
        return 0
    if type(e) is tuple and e[0] == ARRAY:
        return 0 if type(e[1]) is bool else e[1].ndim if e[1].dtype in BOOL else 1
    return 1


def check_mask_shape(own: tuple, expected: tuple, axis: int) -> None:
    """Raise IndexError for a mask whose shape is not that of the axes it indexes."""
    if own != expected:
        raise IndexError(
            f"A boolean index must have the shape of the axes it indexes, got shape {own} for axes "
            f"of shape {expected} from axis {axis} on."
        )


def _places(mask, shape, axis: int):
    """The indices at which a mask is true, as an array for each of its axes."""
    is_counted = mask.ndim and decides_sizes(mask)
    if is_unknown(mask) and not is_counted:
        raise errors.NonConcreteBooleanIndexError(mask)
    expected = shape[axis : axis + mask.ndim]
    check_mask_shape(mask.shape, expected, axis)
    if is_counted:
        return counted_places(mask)
    if isinstance(mask, Tracer):
        return decided_places(mask)
    return np.nonzero(mask.host if isinstance(mask, ArrayImpl) else mask)
