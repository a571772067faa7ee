"""Reading what stands between the brackets of `x[...]`: integers, slices, masks, arrays, new axes."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import numpy as np

from gradix import lax
from gradix._base.config import guards_transfers
from gradix._base.errors import NonConcreteBooleanIndexError
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl, as_array
from gradix._core.dimensions.expression import as_dim
from gradix._core.dtypes import BOOL, INTEGER, dtype_name
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown, state
from gradix.numpy.conversion import asarray
from gradix.numpy.index_plan import ARRAY, SLICE
from gradix.numpy.masks import decided_places

transfers = lazy_module("gradix._base.transfers")

_NO_ARRAYS: list = []


def read_index(x: Array, index) -> tuple[Array, tuple, list]:
    """The operand, the key of the index's plan, and the integer arrays of the index, in order.

    Boolean arrays become the integers where they hold, and a single boolean a new axis of the
    operand with an integer array of one element or none.

    Raises:
        TypeError: an entry that is no index: a list, a float, a string.
        IndexError: an entry that is no index, or a mask that does not fit.
        NonConcreteBooleanIndexError: a traced mask.
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
            e = entry_of(e)
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
        kind = (
            "tuple"
            if any(e is None or e is Ellipsis or isinstance(e, slice) for e in index)
            else "array"
        )
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"`arr[{kind}(seq)]` instead of `arr[seq]`: here x[jnp.{kind}({index!r})].".replace(
                "jnp.tuple", "tuple"
            )
        )
    return (index,)


def _no_string(e) -> str:
    return f"string indexing is not supported; got idx={e!r}. Arrays have no named fields: a dict of arrays has."


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
                f"Slice entries must be static integers. Got {e} at position {position}. The size of a "
                "slice is part of the program: lax.dynamic_slice(x, (start,), (size,)) takes a piece of "
                "fixed size at a traced start, and jnp.where(mask, x, 0) keeps all elements."
            )
        try:
            ends.append(None if end is None else as_dim(end))
        except TypeError:
            raise TypeError(
                f"slice entries must be integers or None, got {e} at position {position}: "
                f"{type(end).__name__!r} object cannot be interpreted as an integer."
            ) from None
    return SLICE, *ends


def entry_of(e) -> Any:
    """One entry that is neither slice, None nor `...`: an int, a bool, a NumPy array or an `Array`."""
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
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays "
        f"are valid indices. Got {e!r}"
    )


def _checked(e):
    """An index array of integers or booleans."""
    if e.dtype not in INTEGER and e.dtype not in BOOL:
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {dtype_name(e.dtype)}. "
            "Convert it: x[i.astype(int)]."
        )
    if e.dtype in BOOL and not e.ndim and not isinstance(e, Tracer):
        return bool(e)
    return e


# -- masks -----------------------------------------------------------------------------------------


def _with_masks(x: Array, key: list) -> tuple[Array, tuple, list]:
    """The key with masks made integer arrays, and single booleans a new axis of the operand."""
    shape = x.aval.shape
    used = sum([_axes_used(e) for e in key])
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed; its shape is "
            f"{shape}."
        )
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


def _places(mask, shape, axis: int):
    """The indices at which a mask holds, an array for each of its axes."""
    if is_unknown(mask):
        raise NonConcreteBooleanIndexError(mask)
    expected = shape[axis : axis + mask.ndim]
    if mask.shape != expected:
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {axis}: got {mask.shape}, "
            f"expected {list(expected)}"
        )
    if isinstance(mask, Tracer):
        return decided_places(mask)
    return np.nonzero(mask.host if isinstance(mask, ArrayImpl) else mask)
