"""References that kernels get: refs whose indices may hold a `Slice`, such as `ref[pl.ds(i, 8)]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.boundary import REF, holders
from gradix._base.errors import RefIndexError
from gradix._core.refs import AbstractRef, Ref, View
from gradix._core.trace import is_unknown
from gradix.experimental.pallas._contents import reads_beyond, undefined
from gradix.experimental.pallas._predicates import is_conditional, selected
from gradix.experimental.pallas._races import touched
from gradix.experimental.pallas._simulation import check_near, is_simulated
from gradix.experimental.pallas._specs import Slice


class Sliceable:
    """What `KernelRef` and `KernelView` do differently from other refs."""

    __slots__ = ()
    stand_in: type[Ref]

    @property
    def extents(self: Any) -> tuple:
        """The sizes of the memory in which accesses must lie."""
        return self.shape

    def __init_subclass__(cls) -> None:
        holders[cls] = REF

    def part(self: Any, index):
        parts = expanded(index, self.shape, reads_beyond())
        if parts is None:
            return super().part(index)  # type: ignore[misc]
        return cut(self, self.read(), parts)

    def changed(self: Any, index, value, how: str):
        parts = expanded(index, self.shape)
        if parts is None:
            return super().changed(index, value, how)  # type: ignore[misc]
        return put(self, self.read(), parts, value, how)

    def __getitem__(self: Any, index):
        check_near(self)
        touched(self, index, False)
        return super().__getitem__(index)  # type: ignore[misc]

    def __setitem__(self: Any, index, value) -> None:
        check_near(self)
        touched(self, index, True)
        if isinstance(value, Ref):
            raise ValueError(
                f"Cannot store a Ref into another Ref: {value._name()} is written to {self._name()}. Write its value, "
                "value_ref[...]."
            )
        super().__setitem__(index, value)  # type: ignore[misc]

    @property
    def at(self):
        return _KernelAt(self)

    def reshape(self, *shape) -> Ref:
        """The same elements as a ref of another shape."""
        return Reshaped(self, shape[0] if len(shape) == 1 and not np.isscalar(shape[0]) else shape)

    def bitcast(self, dtype) -> Ref:
        """The same bits as a ref of another dtype; its size scales the second last axis."""
        return Bitcast(self, np.dtype(dtype))


class KernelRef(Sliceable, Ref):
    """A block of an array, or scratch memory, in a kernel."""

    __slots__ = ()

    def write(self, value) -> None:
        super().write(selected(value, self.read()) if is_conditional() else value)


class PaddedRef(KernelRef):
    """Scratch memory in whole tiles, as a TPU has it: accesses may go beyond the shape, where nothing is kept."""

    __slots__ = ()

    @property
    def extents(self) -> tuple:
        rows, lanes = _SUBLANES * max(1, 4 // self.dtype.itemsize), _LANES
        sizes = [1] * (self.ndim - 2) + [rows, lanes][2 - min(self.ndim, 2) :]
        return tuple([-(-n // size) * size for n, size in zip(self.shape, sizes)])

    def whole(self):
        """The elements, and around them what memory holds that is not written."""
        ends = [(0, more - n, 0) for n, more in zip(self.shape, self.extents)]
        return lax.pad(self.read(), undefined((), self.dtype), ends)

    def part(self, index):
        parts = self._parts(index)
        return cut(self, self.whole(), parts) if parts is not None else super().part(index)

    def changed(self, index, value, how: str):
        parts = self._parts(index)
        if parts is None:
            return super().changed(index, value, how)
        return lax.slice(put(self, self.whole(), parts, value, how), [0] * self.ndim, self.shape)

    def _parts(self, index) -> list | None:
        """The index for each axis, if it is of numbers and slices."""
        parts = expanded(index, self.shape, is_number_one=True)
        if parts is None or any(getattr(p, "shape", ()) or isinstance(p, (bool, list)) for p in parts):
            return None
        return [Slice.from_slice(p, n) if isinstance(p, slice) else p for p, n in zip(parts, self.shape)]


PaddedRef.stand_in = PaddedRef
_SUBLANES, _LANES = 8, 128  # of a tile of 32 bits; narrower types are packed along rows


class KernelView(Sliceable, View):
    """A part of such a ref."""

    __slots__ = ()


Sliceable.stand_in = KernelRef


class _KernelAt:
    """`ref.at[i]` is the part of the ref at `i`, to be read and written as a ref."""

    __slots__ = ("ref",)

    def __init__(self, ref):
        self.ref = ref

    def __getitem__(self, index) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(p, Slice) and p.is_dynamic_size for p in parts):
            return DynamicPart(self.ref, index)
        return KernelView(self.ref, index)


class DynamicPart:
    """A part of a ref with slices whose size is traced, to be copied and waited for; it cannot be read and written.

    `window` is the part with the whole axes in place of these slices, and `slices` has them by axes of the window.
    """

    __slots__ = ("base", "index", "window", "slices")

    def __init__(self, base, index):
        parts = expanded(index, base.shape) or []
        if any(getattr(p, "shape", ()) or isinstance(p, (bool, list)) for p in parts):
            raise NotImplementedError(
                f"a slice of traced size cannot be combined with an index by arrays, of {base._name()}. Copy rows one "
                "by one, in a loop."
            )
        self.base, self.index, self.slices = base, index, {}
        axis, whole = 0, []
        for part in parts:
            if isinstance(part, Slice) and part.is_dynamic_size:
                if part.stride != 1:
                    raise NotImplementedError(f"a slice of traced size must have a stride of 1, got {part}.")
                self.slices[axis] = part
                part = slice(None)
            whole.append(part)
            axis += isinstance(part, (slice, Slice))
        self.window = KernelView(base, tuple(whole))

    def _shown(self) -> str:
        sizes = ["?" if a in self.slices else str(n) for a, n in enumerate(self.window.shape)]
        return f"{self.window.dtype}[{','.join(sizes)}]"

    def _refuses(self, *args):
        part = next(iter(self.slices.values()))
        raise NotImplementedError(
            f"the size of a slice must be known where it is read or written, got {part.size}. Take a slice of the "
            "largest size, and mask what is beyond; copies can have traced sizes."
        )

    __getitem__ = __setitem__ = _refuses


def copy_part(source: DynamicPart, target: DynamicPart, add: bool) -> None:
    """Copy, or with `add` add, the elements of a part of traced size; that of the source is the size."""
    value, old = source.window.read(), target.window.read()
    if is_simulated():
        _look_at_last(source, value, source)
        _look_at_last(target, old, source)
    keep: Any = True
    for axis, part in source.slices.items():
        n, start = _number(part.size), _number(target.slices[axis].start)
        place = lax.broadcasted_iota(np.int32, old.shape, axis)
        keep = keep & (place >= start) & (place < start + n)
        rows = jnp.arange(old.shape[axis], dtype=np.int32) - start + _number(part.start)
        value = jnp.take(value, rows, axis, mode="clip")
    target.window.write(jnp.where(keep, old + value if add else value, old))


def _look_at_last(part: DynamicPart, x, sizes: DynamicPart) -> None:
    """Read the last element of a part, for the check of indices."""
    last: list[Any] = [0] * x.ndim
    for axis, own in part.slices.items():
        n = _number(sizes.slices[axis].size)
        last[axis] = jnp.where(n > 0, _number(own.start) + n - 1, 0)
    lax.dynamic_slice(x, _alike(last), (1,) * x.ndim)


def _number(x) -> Any:
    """A start or size as an int32 scalar."""
    return jnp.asarray(x).astype(np.int32)


class Transformed(Sliceable, Ref):
    """A ref to all elements of another one in another form: `_forth` gives it, `_back` undoes it."""

    __slots__ = ("base", "how")

    def __init__(self, base, how):
        self.base, self.how = base, how
        aval = self.read().aval
        super().__init__(AbstractRef(aval, base.aval.memory_space, base.aval.kind), None, base._level)

    def _forth(self, x) -> Any:
        raise NotImplementedError

    def _back(self, x) -> Any:
        raise NotImplementedError

    def read(self):
        return self._forth(self.base.read())

    def write(self, value) -> None:
        self.base.write(self._back(value))


class Reshaped(Transformed):
    """A ref of another shape."""

    __slots__ = ()

    def _forth(self, x):
        return jnp.reshape(x, self.how)

    def _back(self, x):
        return jnp.reshape(x, self.base.shape)


class Bitcast(Transformed):
    """A ref of another dtype; neighbours along the second last axis share a wider element."""

    __slots__ = ()

    def _forth(self, x):
        return bitcast(x, self.how)

    def _back(self, x):
        return bitcast(x, self.base.dtype)


def bitcast(x, dtype):
    """The bits of an array as another dtype; the second last axis grows or shrinks with its width."""
    old, new = x.dtype.itemsize, np.dtype(dtype).itemsize
    if old == new:
        return lax.bitcast_convert_type(x, dtype)
    if x.ndim < 2:
        raise ValueError(
            f"a bitcast from {x.dtype} to {np.dtype(dtype)} changes the second last axis, but the array has "
            f"shape {x.shape}. Reshape it to two axes first."
        )
    *batch, rows, columns = x.shape
    if old > new:
        y = lax.bitcast_convert_type(x, dtype)  # [..., rows, columns, parts]
        return jnp.moveaxis(y, -1, -2).reshape(*batch, rows * (old // new), columns)
    parts = new // old
    if rows % parts:
        raise ValueError(
            f"a bitcast from {x.dtype} to {np.dtype(dtype)} joins {parts} rows, but the shape is {x.shape}."
        )
    y = x.reshape(*batch, rows // parts, parts, columns)
    return lax.bitcast_convert_type(jnp.moveaxis(y, -2, -1), dtype)


# -- indices that hold slices ----------------------------------------------------------------------


def expanded(index, shape, is_traced_number_one: bool = False, is_number_one: bool = False) -> list | None:
    """The entries of an index for each axis, or None if it holds no `Slice`, nor what counts as one."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(isinstance(p, Slice) for p in parts):
        counts = (is_traced_number_one or is_number_one) and not any(p is None for p in parts)
        if not (counts and any(_is_traced_number(p) or is_number_one and isinstance(p, int) for p in parts)):
            return None
    if any(p is None for p in parts):
        raise NotImplementedError(
            "an index with pl.ds(...) cannot add an axis. Add it to the value: ref[pl.ds(i, n)][:, None]."
        )
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if dots:
        i = dots[0]
        parts[i : i + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    if len(parts) > len(shape):
        raise ValueError(f"too many indices: {len(parts)} for a reference of shape {shape}.")
    return [*parts, *[slice(None)] * (len(shape) - len(parts))]


def _window(ref, axis: int, part, size: int) -> tuple[Any, int, Any]:
    """Where the window of one axis begins, its size, and the index within the window."""
    if isinstance(part, slice):
        part = Slice.from_slice(part, size) if part != slice(None) else Slice(0, size)
    if isinstance(part, Slice):
        if part.is_dynamic_size:
            raise NotImplementedError(
                f"the size of a slice must be known, got {part.size}. Take a slice of the largest size, and "
                "mask what is beyond."
            )
        length = (part.size - 1) * part.stride + 1 if part.size else 0
        if not part.is_dynamic_start and not 0 <= part.start <= part.start + length <= size:
            raise RefIndexError(
                f"Out of bound slice: start={part.start}, size={part.size}, stride={part.stride}, dim={size}, "
                f"on axis {axis} of {ref._name()}."
            )
        if length > size:
            raise RefIndexError(
                f"Out of bound slice: size={part.size}, stride={part.stride}, dim={size}, on axis {axis} of "
                f"{ref._name()}."
            )
        return part.start, length, slice(None, None, None if part.stride == 1 else part.stride)
    if not getattr(part, "shape", ()) and not isinstance(part, (bool, list)):
        if isinstance(part, (int, np.integer)) and not -size <= part < size:
            raise RefIndexError(f"Out of bound indexer: idx={part}, dim={size}, on axis {axis} of {ref._name()}.")
        return part, 1, 0
    return 0, size, part


def _windows(ref, parts) -> tuple[list, list, tuple]:
    found = [_window(ref, i, p, n) for i, (p, n) in enumerate(zip(parts, ref.extents))]
    starts, sizes, rest = zip(*found)
    return list(starts), list(sizes), rest


def _is_traced_number(p) -> bool:
    return is_unknown(p) and not p.shape and p.dtype.kind in "iu"


def cut(ref, x, parts):
    """The elements of `x` at the parts of an index."""
    starts, sizes, rest = _windows(ref, parts)
    x = window_beyond(x, starts, sizes) if reads_beyond() else dynamic_window(x, starts, sizes)
    return x if _is_all(rest) else x[rest]


def put(ref, x, parts, value, how: str):
    """The array with the elements at the parts of an index changed."""
    starts, sizes, rest = _windows(ref, parts)
    if how == "set" and _is_all(rest):
        fits = value.ndim <= len(sizes) and all(m in (1, n) for m, n in zip(value.shape[::-1], sizes[::-1]))
        if not fits:
            raise ValueError(
                f"Invalid shape for `ref[index] = value`. The index selects the shape {tuple(sizes)}. Value shape: "
                f"{value.shape}, for {ref._name()}. Write a value that broadcasts to it."
            )
        window = jnp.broadcast_to(value, sizes)
    else:
        window = getattr(dynamic_window(x, starts, sizes).at[rest], how)(value)
    return with_window(x, window, starts)


def _is_all(rest) -> bool:
    return all(isinstance(r, slice) and r == slice(None) for r in rest)


def dynamic_window(x, starts, sizes):
    """The part of an array of those sizes at `starts`, which are moved so that it is inside."""
    if tuple(sizes) == tuple(x.shape):
        return x
    return lax.dynamic_slice(x, _alike(starts), tuple(sizes))


def window_beyond(x, starts, sizes):
    """As `dynamic_window`, with what memory holds that is not written where the part is outside."""
    starts = [jnp.clip(s, -size, n) + size for s, size, n in zip(_alike(starts), sizes, x.shape)]
    x = lax.pad(x, undefined((), x.dtype), [(size, size, 0) for size in sizes])
    return lax.dynamic_slice(x, starts, tuple(sizes))


def with_window(x, window, starts):
    """The array with such a part replaced."""
    if tuple(window.shape) == tuple(x.shape):
        return window
    return lax.dynamic_update_slice(x, window, _alike(starts))


def _alike(starts) -> list:
    """Starts of one dtype."""
    return [
        jnp.asarray(s, np.int32) if isinstance(s, (int, np.integer)) else jnp.asarray(s).astype(np.int32)
        for s in starts
    ]
