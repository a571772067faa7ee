"""Reads and writes of references in one call: with masks, in exchange, and combined with what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.refs import Ref, View, get as _get, swap as _swap
from gradix.experimental.pallas._contents import reads_beyond
from gradix.experimental.pallas._races import touched
from gradix.experimental.pallas._refs import PaddedRef, expanded
from gradix.experimental.pallas._simulation import check_near, is_simulated
from gradix.experimental.pallas._specs import Slice
from gradix.experimental.pallas._windows import as_index


def _target(ref, index, is_masked: bool, writes: bool = True) -> tuple[Any, Any]:
    """The reference and index that `ref` at `index` stands for; a view of a reference is opened."""
    if not isinstance(ref, Ref):
        raise TypeError(
            f"expected a reference, got {ref!r} of type {type(ref).__name__}. In a kernel, pass x_ref or "
            "x_ref.at[index], not the value x_ref[...]."
        )
    check_near(ref)
    if not is_masked:  # else it may leave out what a copy has yet to write
        touched(ref, Ellipsis if index is None else index, writes)
    if index is None and isinstance(ref, View):
        return ref.base, ref.index
    return ref, Ellipsis if index is None else index


def load(
    x_ref_or_view: Any,
    idx: Any = None,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """The elements of a reference at an index, of which a mask may leave some out.

    Args:
        x_ref_or_view: a reference, or a part of one, `x_ref.at[index]`.
        idx: an index, which may hold slices with traced starts, `pl.ds(start, size)`.
        mask: booleans that broadcast to the elements; where false, the memory is not read, and so
            the index may be before the beginning or beyond the end.
        other: what the result has where the mask is false; 0 by default.
        cache_modifier, eviction_policy, volatile: accepted; they have no effect here.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x, o):
        ...     at = pl.ds(2, 4)
        ...     o[...] = pl.load(x, (at,), mask=2 + jnp.arange(4) < 5, other=-1.0)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((4,), "float32"))(jnp.arange(5.0))
        Array([ 2.,  3.,  4., -1.], dtype=float32)
    """
    ref, index = _target(x_ref_or_view, idx, mask is not None, writes=False)
    if mask is None:
        return _get(ref, index)
    value = _inside_read(ref, index)
    fill = jnp.asarray(0 if other is None else other).astype(value.dtype)
    keep = _mask(mask, value, ref)
    if not reads_beyond():
        _look_at_farthest(ref, index, keep)
    return jnp.where(keep, value, fill)


def store(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Write elements of a reference at an index, of which a mask may leave some out.

    Args:
        x_ref_or_view: a reference, or a part of one.
        idx: an index, which may hold slices with traced starts, `pl.ds(start, size)`.
        val: the elements, of the dtype of the reference.
        mask: booleans that broadcast to the elements; where false, nothing is written, and so the
            index may be before the beginning or beyond the end.
        eviction_policy: accepted; it has no effect here.

    Raises:
        ValueError: the elements are of another dtype, or do not broadcast to the index.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x_ref, out_ref):
        ...     pl.store(out_ref, slice(None), x_ref[:] + 1)
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([4, 6], dtype=int32)
    """
    swap(x_ref_or_view, idx, val, mask=mask, _wants_old=False)


def swap(
    x_ref_or_view: Any,
    idx: Any,
    val: Any,
    *,
    mask: Any = None,
    eviction_policy: str | None = None,
    _function_name: str = "swap",
    _wants_old: bool = True,
) -> Any:
    """As `store`; returns the elements that were there, and where the mask is false those of `val`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[:] = x_ref[:]
        ...     old = pl.swap(out_ref, 0, 9)
        ...     out_ref[1] = old
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([9, 3], dtype=int32)
    """
    ref, index = _target(x_ref_or_view, idx, mask is not None)
    if mask is None:
        return _swap(ref, index, val, _function_name, _wants_old)
    old = _inside_read(ref, index)
    keep = _mask(mask, old, ref)
    val = _spread("the value", jnp.asarray(val), old, ref)
    _look_at_farthest(ref, index, keep)
    _swap_masked(ref, index, val, keep)
    return jnp.where(keep, old, val.astype(old.dtype)) if _wants_old else None


def _mask(mask, elements, ref):
    """A mask for the elements that are read or written.

    Raises:
        TypeError: it holds something other than booleans.
        ValueError: it does not broadcast to the elements.
    """
    mask = jnp.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(f"a mask must hold booleans, got {mask.aval.str_short()} for {ref._name()}. Write mask != 0.")
    return _spread("the mask", mask, elements, ref)


def _spread(what: str, x, elements, ref):
    shape = elements.shape
    if x.ndim > len(shape) or any(m not in (1, n) for m, n in zip(x.shape[::-1], shape[::-1])):
        raise ValueError(
            f"{what} of shape {x.shape} does not broadcast to the elements at the index, which have shape {shape}, of "
            f"{ref._name()}."
        )
    return jnp.broadcast_to(x, shape)


def _look_at_farthest(ref, index, keep) -> None:
    """In a simulation, read an element for the check of indices: the farthest one that a mask keeps.

    The access itself moves its slices inside, where the check finds nothing.
    """
    parts = expanded(index, ref.shape) if is_simulated() else None
    if parts is None or not all(isinstance(p, (slice, Slice)) for p in parts):
        return
    places: list = []
    for axis, (part, n) in enumerate(zip(parts, ref.extents)):
        part = Slice.from_slice(part, n) if isinstance(part, slice) else part
        is_kept = keep.any(tuple([a for a in range(keep.ndim) if a != axis]))
        at = as_index(part.start) + part.stride * jnp.arange(part.size, dtype=np.int32)
        lowest, highest = jnp.where(is_kept, at, 0).min(initial=0), jnp.where(is_kept, at, 0).max(initial=0)
        places.append(jnp.where(lowest < 0, lowest, highest))
    x = ref.whole() if isinstance(ref, PaddedRef) else ref.read()
    lax.dynamic_slice(x, places, (1,) * len(places))


# -- masks beyond the end --------------------------------------------------------------------------


def _moved(ref, index) -> tuple[Any, dict]:
    """The index with its traced slices moved inside the reference, and by how much along each axis.

    The axes are those of the elements. Slices that are moved have a stride of 1; the number of
    elements by which one is moved goes with how many it has then, and with the stride that it had.
    """
    parts = expanded(index, ref.shape)
    if parts is None:
        return index, {}
    shifts, axis, out = {}, 0, []
    for part, n in zip(parts, ref.extents):
        length = (part.size - 1) * part.stride + 1 if isinstance(part, Slice) else 0
        if isinstance(part, Slice) and (part.is_dynamic_start or not 0 <= part.start <= n - length):
            if length > n:
                raise ValueError(
                    f"a masked access of {length} elements of an axis of {n}: take a smaller slice, or a larger block."
                )
            start = jnp.clip(as_index(part.start), 0, n - length)
            shifts[axis] = (as_index(part.start) - start, length, part.stride)
            part = Slice(start, length)
        out.append(part)
        axis += isinstance(part, (slice, Slice)) or bool(getattr(part, "shape", ()))
    return tuple(out), shifts


def _inside_read(ref, index):
    """The elements at an index; those beyond the end are any."""
    index, shifts = _moved(ref, index)
    value = _get(ref, index)
    for axis, (shift, length, stride) in shifts.items():
        value = _shifted(value, axis, shift, length)
        value = lax.slice_in_dim(value, 0, length, stride, axis) if stride > 1 else value
    return value


def _shifted(value, axis: int, shift, length: int):
    """The elements moved to lower indices along an axis, or for less than 0 to higher ones; zeros replace them."""
    pads = [(length, length, 0) if a == axis else (0, 0, 0) for a in range(value.ndim)]
    longer = lax.pad(value, jnp.zeros((), value.dtype), pads)
    return lax.dynamic_slice_in_dim(longer, length + jnp.clip(shift, -length, length), length, axis)


def _swap_masked(ref, index, value, keep) -> None:
    """Write the elements that are kept, and leave the others and those beyond the end."""
    index, shifts = _moved(ref, index)
    for axis, (shift, length, stride) in shifts.items():
        value, keep = [_shifted(_spaced(x, axis, stride), axis, -shift, length) for x in (value, keep)]
    old = _get(ref, index)
    if value.dtype != old.dtype:
        _swap(ref, index, value, "swap", False)  # it raises the error that tells of dtypes
    _swap(ref, index, jnp.where(keep, value, old), "swap", False)


def _spaced(x, axis: int, stride: int):
    """The elements with zeros between them along an axis."""
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, (stride - 1) * (a == axis)) for a in range(x.ndim)])


# -- combined with what is there -------------------------------------------------------------------


def _atomic(name: str, how: Callable | str, what: str, value: int, shown: str) -> Callable[..., Any]:
    def atomic(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        ref, index = _target(x_ref_or_view, idx, mask is not None)
        old = _inside_read(ref, index) if mask is not None else _get(ref, index)
        val = jnp.asarray(val)
        if isinstance(how, str) and mask is None:
            ref.write(ref.changed(index if index is not Ellipsis else (Ellipsis,), val, how))
        else:
            combined = _COMBINED[how](old, val) if isinstance(how, str) else how(old, val)
            swap(ref, index, combined.astype(old.dtype), mask=mask, _wants_old=False)
        return old

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"""{what}; returns what was there.

    Programs that run after one another here take turns, so that no update is lost.

    Args:
        x_ref_or_view: a reference, or a part of one.
        idx: an index; of elements that it names twice, both updates count.
        val: what to combine with.
        mask: booleans; where false, nothing is read or written.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[:] = x_ref[:]
        ...     pl.{name}(out_ref, 0, {value})
        >>> two = gradix.ShapeDtypeStruct((2,), "int32")
        >>> pl.pallas_call(kernel, out_shape=two)(jnp.array([3, 5]))
        Array({shown}, dtype=int32)
    """
    return atomic


_COMBINED: dict[str, Callable] = {"add": jnp.add, "max": jnp.maximum, "min": jnp.minimum}

atomic_add = _atomic("atomic_add", "add", "Add to the elements of a reference at an index", 10, "[13,  5]")
atomic_max = _atomic(
    "atomic_max", "max", "Raise the elements of a reference at an index to at least a value", 4, "[4, 5]"
)
atomic_min = _atomic(
    "atomic_min", "min", "Lower the elements of a reference at an index to at most a value", 2, "[2, 5]"
)
atomic_and = _atomic(
    "atomic_and", jnp.bitwise_and, "Combine elements of a reference at an index by bitwise and", 6, "[2, 5]"
)
atomic_or = _atomic(
    "atomic_or", jnp.bitwise_or, "Combine elements of a reference at an index by bitwise or", 6, "[7, 5]"
)
atomic_xor = _atomic(
    "atomic_xor", jnp.bitwise_xor, "Combine elements of a reference at an index by exclusive or", 6, "[5, 5]"
)
atomic_xchg = _atomic(
    "atomic_xchg",
    lambda old, new: jnp.broadcast_to(new, old.shape),
    "Replace elements of a reference at an index",
    9,
    "[9, 5]",
)


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Replace a scalar by `val` if it equals `cmp`; returns what was there.

    Raises:
        ValueError: the reference is not to a scalar.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[...] = x_ref[...]
        ...     pl.atomic_cas(out_ref, 3, 8)
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((), "int32"))(jnp.int32(3))
        Array(8, dtype=int32)
    """
    target, index = _target(ref, None, False)
    old = _get(target, index)
    if old.shape or jnp.shape(cmp) or jnp.shape(val):
        raise ValueError(
            f"atomic_cas: ref, cmp and val must be scalars, got shapes {old.shape}, {jnp.shape(cmp)} and "
            f"{jnp.shape(val)}. Use ref.at[i]."
        )
    _swap(target, index, jnp.where(old == cmp, jnp.asarray(val).astype(old.dtype), old), "swap", False)
    return old
