"""slice and pad, each the transpose of the other."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index, itemgetter
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval, seen
from gradix._core.dimensions.expression import as_dim, has_counts, is_count, is_symbolic_dim, larger, within_size
from gradix._core.divisions import resized
from gradix._core.operators import Array
from gradix._core.primitive import Linear, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, reduce_sum, to_axis, to_front, zeros
from gradix._ops.canonicalization import canonical_axis, canonical_shape, check_sizes, memoised
from gradix._ops.families import Structural
from gradix._ops.operands import arrays, scalar_like
from gradix._ops.select import choose
from gradix._ops.shape import reshape, squeeze
from gradix._ops.sharding import summed_like

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Size

_slice, _int = slice, index


class Slice(Structural):
    """The elements from `start_indices` up to `limit_indices`, every `strides`-th."""

    rearranges = True

    @memoised
    def abstract(self, x, *, start_indices, limit_indices, strides):
        shape = x.shape
        steps = strides or (1,) * len(shape)
        for name, given in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", steps)):
            if len(given) != len(shape):
                raise TypeError(
                    f"slice {name} must have length equal to the number of dimensions of the operand, got "
                    f"{name} {given} for operand shape {shape}."
                )
        check_sizes("slice", start_indices, "start_indices")
        if any(type(n) is int and type(d) is int and n > d for n, d in zip(limit_indices, shape)):
            raise TypeError(
                f"slice limit_indices must be less than or equal to operand shape, got limit_indices "
                f"{limit_indices} for operand shape {shape}."
            )
        if any(type(a) is int and type(b) is int and a > b for a, b in zip(start_indices, limit_indices)):
            raise TypeError(
                f"slice limit_indices must be greater than or equal to start_indices, got start_indices "
                f"{start_indices} and limit_indices {limit_indices}."
            )
        if any(s <= 0 for s in steps):
            raise TypeError(f"slice strides must be positive, got {strides}. lax.rev reverses an axis.")
        sizes = [(b - a + (s - 1)) // s if s != 1 else b - a for a, b, s in zip(start_indices, limit_indices, steps)]
        return make_aval(tuple(sizes), x.dtype, x.weak_type)

    def specialise(self, x, *, start_indices, limit_indices, strides):
        return itemgetter(_slices(start_indices, limit_indices, strides))

    def host(self, x, *, start_indices, limit_indices, strides):
        return x[_slices(start_indices, limit_indices, strides)]

    def transpose(self, ct, x, *, start_indices, limit_indices, strides):
        shape = x.aval.shape
        config = []
        for n, a, m, s in zip(shape, start_indices, ct.aval.shape, strides or (1,) * len(shape)):
            extent = m if s == 1 else m + larger(m - 1, 0) * (s - 1)
            config.append((a, n - a - extent, s - 1))
        return [pad(ct, summed_like(scalar_like(ct, 0), ct), config)]

    def batch(self, size, args, axes, *, start_indices, limit_indices, strides):
        (x,), (a,) = args, axes
        params = {
            "start_indices": _insert(start_indices, a, 0),
            "limit_indices": _insert(limit_indices, a, x.aval.shape[a]),
            "strides": None if strides is None else _insert(strides, a, 1),
        }
        return bind(self, (x,), params), a

    def divide(self, mesh, avals, outs, params):
        return [resized(self.name, avals[0], outs[0].shape, mesh)]

    def lower(self, em, out, x, *, start_indices, limit_indices, strides):
        return em.slice(x, start_indices, limit_indices, strides, out)


@memoised
def _slices(start_indices, limit_indices, strides):
    return tuple(
        [_slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, strides or (1,) * len(start_indices))]
    )


def _insert(xs, i, x) -> tuple:
    return (*xs[:i], x, *xs[i:])


class Pad(Primitive):
    """An array with padding around and between its elements; negative padding removes elements."""

    live = "moves"

    @memoised
    def abstract(self, x, value, *, padding_config):
        if x.dtype != value.dtype:
            raise TypeError(
                f"pad operand and padding_value must be same dtype: got {dtypes.dtype_name(x.dtype)} and "
                f"{dtypes.dtype_name(value.dtype)}."
            )
        if value.shape:
            raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}")
        if len(padding_config) != x.ndim:
            raise ValueError(
                f"length of padding_config must equal the number of axes of operand, got padding_config "
                f"{padding_config} for operand shape {x.shape}"
            )
        if any(i < 0 for _, _, i in padding_config):
            raise ValueError(
                f"interior padding in padding_config must be nonnegative, got padding_config {padding_config}"
            )
        shape = tuple([_padded(n, *c) for n, c in zip(x.shape, padding_config)])
        if any(type(n) is int and n < 0 for n in shape):
            raise ValueError(
                f"Dimension size after padding is not at least 0, got result shape {shape}, for "
                f"padding_config {padding_config} and operand shape {x.shape}"
            )
        return make_aval(shape, x.dtype, x.weak_type and value.weak_type)

    def host(self, x, value, *, padding_config):
        shape, kept, target = _placement(x.shape, padding_config)
        if shape == x.shape and kept is None:
            return x
        out = np.empty(shape, x.dtype)
        out[...] = value
        out[target] = x if kept is None else x[kept]
        return out

    def jvp(self, primals, tangents, *, padding_config):
        out = bind(self, primals, {"padding_config": padding_config})
        t, tv = tangents
        if t is None and tv is None:
            return out, None
        x, value = primals
        return out, pad(zeros(x.aval) if t is None else t, zeros(value.aval) if tv is None else tv, padding_config)

    def transpose(self, ct, x, value, *, padding_config):
        cut = [(-lo, -hi, 0) for lo, hi, _ in padding_config]
        kept = pad(ct, summed_like(scalar_like(ct, 0), ct), cut)
        shape, steps = x.aval.shape, [i + 1 for _, _, i in padding_config]
        for axis, step in enumerate(steps):
            if step > 1 and is_count(shape[axis]):
                kept, steps[axis] = _first_of_each(kept, axis, shape[axis], step), 1
        if any(step > 1 for step in steps):
            kept = slice(kept, (0,) * ct.aval.ndim, kept.aval.shape, steps)
        back = None
        if type(value) is Linear:  # the sum of the cotangent over the padding
            ones = broadcast_in_dim(False, shape, ()) if has_counts(shape) else np.zeros(shape, bool)
            outside = pad(ones, True, padding_config)
            everywhere = tuple(range(ct.aval.ndim))
            back = reduce_sum(choose(outside, scalar_like(ct, 0), ct), everywhere)
        return [kept if type(x) is Linear else None, back]

    def batch(self, size, args, axes, *, padding_config):
        (x, value), (a, av) = args, axes
        if av is None:
            return bind(self, (x, value), {"padding_config": _insert(padding_config, a, (0, 0, 0))}), a
        # Each example has its own value: pad with zeros, and put the values in place of the padding.
        shape = x.aval.shape if a is None else x.aval.shape[:a] + x.aval.shape[a + 1 :]
        inside = to_axis(size, pad(np.ones(shape, bool), False, padding_config), None, 0)
        filler = zeros(make_aval((), value.aval.dtype, value.aval.weak_type))
        padded = pad(to_front(size, x, a), filler, ((0, 0, 0), *padding_config))
        values = broadcast_in_dim(value, padded.aval.shape, (0,))
        return choose(inside, values, padded), 0

    def divide(self, mesh, avals, outs, params):
        return [resized(self.name, avals[0], outs[0].shape, mesh)]

    def lower(self, em, out, x, value, *, padding_config):
        lo, hi, interior = zip(*padding_config) if padding_config else ((), (), ())
        return em.pad(x, value, lo, hi, interior, out)


def _padded(n, lo, hi, interior):
    """An axis's size after padding."""
    return n + (lo + hi) + (larger(n - 1, 0) * interior if interior else 0)


def _first_of_each(x, axis: int, n, step: int):
    """The first of each `step` elements, `n` of them; values decide `n`, which is no quotient of sizes then."""
    before, after = x.aval.shape[:axis], x.aval.shape[axis + 1 :]
    config = [(0, n * step - d if i == axis else 0, 0) for i, d in enumerate(x.aval.shape)]
    parts = reshape(pad(x, scalar_like(x, 0), config), (*before, n, step, *after))
    return reshape(slice_in_dim(parts, 0, 1, axis=axis + 1), (*before, n, *after))


@memoised
def _placement(shape, padding_config):
    """The padded shape, the part of the operand that stays (None: all), and where it goes."""
    kept, target, trivial = [], [], True
    out = tuple([_padded(n, *c) for n, c in zip(shape, padding_config)])
    for n, m, (lo, _, interior) in zip(shape, out, padding_config):
        step = interior + 1
        # the first element at or after the start
        first = -(lo // step) if lo < 0 else 0
        last = min(n, (m - 1 - lo) // step + 1) if m > 0 else first
        count = max(last - first, 0)
        trivial = trivial and count == n
        start = lo + first * step
        kept.append(_slice(first, first + count))
        target.append(_slice(start, start + (count - 1) * step + 1, step) if count else _slice(0, 0))
    return out, None if trivial else tuple(kept), tuple(target)


slice_p, pad_p = Slice("slice"), Pad("pad")


def slice(
    operand: ArrayLike,
    start_indices: Sequence[Size],
    limit_indices: Sequence[Size],
    strides: Sequence[int] | None = None,
) -> Array:
    """The part of `operand` from `start_indices` up to `limit_indices`, every `strides`-th element.

    Args:
        operand: an array.
        start_indices, limit_indices: an integer for each axis, the first index taken and the first
            one not.
        strides: an integer for each axis; 1 by default.

    Example:
        >>> from gradix import lax
        >>> lax.slice(lax.iota("int32", 6), (1,), (6,), (2,))
        Array([1, 3, 5], dtype=int32)
    """
    (operand,) = arrays("slice", operand)
    starts = canonical_shape(start_indices, "start_indices")
    limits = canonical_shape(limit_indices, "limit_indices")
    if seen.counts is not None:
        starts, limits = _inside(starts, limits, operand.aval.shape)
    params = {
        "start_indices": starts,
        "limit_indices": limits,
        "strides": None if strides is None else canonical_shape(strides, "strides"),
    }
    return bind(slice_p, (operand,), params)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """`operand[start_index:limit_index:stride]` along `axis`; negative indices count from the end.

    Args:
        operand: an array.
        start_index, limit_index: Python integers, or None for the ends of the axis.
        stride: the step, a positive integer.
        axis: the axis; negative ones count from the end.

    Example:
        >>> from gradix import lax
        >>> lax.slice_in_dim(lax.iota("int32", 6), -2, None)
        Array([4, 5], dtype=int32)
    """
    (operand,) = arrays("slice_in_dim", operand)
    shape = operand.aval.shape
    axis = canonical_axis(axis, len(shape))
    n = shape[axis]
    start, limit = [
        default if i is None else _from_end(index(i) if hasattr(i, "__index__") else i, n)
        for i, default in ((start_index, 0), (limit_index, n))
    ]
    starts = tuple([start if i == axis else 0 for i in range(len(shape))])
    limits = tuple([limit if i == axis else m for i, m in enumerate(shape)])
    strides = tuple([as_dim(stride) if i == axis else 1 for i in range(len(shape))])
    if seen.counts is not None:
        starts, limits = _inside(starts, limits, shape)
    return bind(slice_p, (operand,), {"start_indices": starts, "limit_indices": limits, "strides": strides})


def _inside(starts, limits, shape) -> tuple:
    """The ends of a slice, cut to sizes that values decide, which may be less."""
    if len(starts) == len(limits) == len(shape):
        starts = tuple([within_size(a, n) for a, n in zip(starts, shape)])
        limits = tuple([within_size(b, n) for b, n in zip(limits, shape)])
        limits = tuple([larger(a, b) if a is not b and is_count(n) else b for a, b, n in zip(starts, limits, shape)])
    return starts, limits


def _from_end(i, n):
    return i + n if type(i) is int and i < 0 else i


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """`operand[index]` along `axis`, which stays with size 1 unless `keepdims` is False.

    Args:
        operand: an array.
        index: a Python integer, or a symbolic size; negative ones count from the end.
        axis: the axis; negative ones count from the end.
        keepdims: whether the axis stays, with size 1.

    Raises:
        IndexError: `index` is out of bounds.

    Example:
        >>> from gradix import lax
        >>> lax.index_in_dim(lax.iota("int32", 6), -1, keepdims=False)
        Array(5, dtype=int32)
    """
    (operand,) = arrays("index_in_dim", operand)
    axis = canonical_axis(axis, operand.aval.ndim)
    n = operand.aval.shape[axis]
    i = _from_end(index if is_symbolic_dim(index) else _int(index), n)
    if not 0 <= i < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
    out = slice_in_dim(operand, i, i + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[Size, Size, int]]) -> Array:
    """`operand` with `padding_value` before, after and between its elements.

    Args:
        operand: an array.
        padding_value: a scalar of its dtype.
        padding_config: for each axis `(low, high, interior)`; negative `low` and `high` remove
            elements.

    Raises:
        ValueError: `padding_config` does not hold three numbers for each axis.

    Example:
        >>> from gradix import lax
        >>> lax.pad(lax.iota("int32", 3), 9, [(1, -1, 1)])
        Array([9, 0, 9, 1, 9], dtype=int32)
    """
    operand, padding_value = arrays("pad", operand, padding_value)
    config = tuple([canonical_shape(c, "padding_config") for c in padding_config])
    if any(len(c) != 3 for c in config):
        raise ValueError(f"padding_config must hold (low, high, interior) for each axis, got {config}")
    return bind(pad_p, (operand, padding_value), {"padding_config": config})
