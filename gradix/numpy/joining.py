"""Arrays put together and taken apart: concatenate, stack, block, split, tile, repeat, append."""

from __future__ import annotations

from itertools import accumulate
from operator import index as as_int

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError, InconclusiveDimensionOperation
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import (
    as_dim,
    is_symbolic_dim,
    is_undecided_remainder,
)
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.cumulative import cumsum
from gradix.numpy.indexing import take_index
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, promote_dtypes
from gradix.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, expand_dims, ravel

# -- together --------------------------------------------------------------------------------------


def _sequence(name: str, arrays) -> list:
    """The arrays of a sequence, or the rows of one array."""
    if isinstance(arrays, (Array, np.ndarray)):
        x = as_operand(name, arrays)
        if not x.aval.ndim:
            raise ValueError(f"{name}: iteration over a 0-d array; pass a sequence of arrays.")
        return lax.unstack(x, 0)
    if not hasattr(arrays, "__len__") or isinstance(arrays, (str, bytes, dict)):
        raise TypeError(
            f"{name} requires a sequence of arrays, got {type(arrays)}."
            + (" Write list(...) around the generator." if hasattr(arrays, "__next__") else "")
        )
    if not len(arrays):
        raise ValueError(f"Need at least one array to {name}.")
    return [as_operand(name, x, i) for i, x in enumerate(arrays)]


def _in_one_dtype(name: str, xs, dtype) -> list:
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, name)
        return [convert(x, dtype) for x in xs]
    first = xs[0].aval
    if all(
        x.aval is first or (x.aval.dtype == first.dtype and x.aval.weak_type == first.weak_type)
        for x in xs
    ):
        return xs
    return promote_dtypes(name, *xs)


def concatenate(arrays, axis: int | None = 0, dtype=None) -> Array:
    """Arrays one after the other along an axis.

    Args:
        arrays: a sequence of arrays that agree but along the axis.
        axis: None puts the elements of all in one row.
        dtype: of the result; by default the dtype they promote to.

    Raises:
        ValueError: no arrays, or arrays without axes.
        TypeError: shapes that do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.concatenate([jnp.arange(2), jnp.ones(1)])
        Array([0., 1., 1.], dtype=float32)
    """
    xs = _sequence("concatenate", arrays)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    if not xs[0].aval.ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated. jnp.stack joins scalars.")
    return lax.concatenate(_in_one_dtype("concatenate", xs, dtype), axis_of(axis, xs[0].aval.ndim))


def concat(arrays, /, *, axis: int | None = 0) -> Array:
    """Arrays one after the other along an axis: `concatenate` by the name of the array standard.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.concat([jnp.arange(2), jnp.arange(1)])
        Array([0, 1, 0], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays, axis: int = 0, out=None, dtype=None) -> Array:
    """Arrays of one shape along a new axis.

    Args:
        arrays: arrays of one shape, or an array whose rows they are.
        axis: where the new axis stands; negative ones count from the end.
        dtype: the result's; None for NumPy's promotion.

    Raises:
        ValueError: no arrays, or shapes that differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.stack([jnp.arange(2), jnp.ones(2)], axis=1)
        Array([[0., 1.],
               [1., 1.]], dtype=float32)
    """
    no_out("stack", out)
    xs = _sequence("stack", arrays)
    shape = xs[0].aval.shape
    if any(x.aval.shape != shape for x in xs):
        raise ValueError(
            "All input arrays must have the same shape, got "
            f"{', '.join([str(x.aval.shape) for x in xs])}."
        )
    return lax.stack(_in_one_dtype("stack", xs, dtype), axis_of(axis, len(shape) + 1))


@replayed
def vstack(tup, dtype=None) -> Array:
    """Arrays one below the other, along axis 0; those of one axis are rows.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.vstack([jnp.arange(2), jnp.arange(2)]).shape
        (2, 2)
    """
    return concatenate([atleast_2d(x) for x in _sequence("vstack", tup)], 0, dtype)


@replayed
def hstack(tup, dtype=None) -> Array:
    """Arrays side by side, along axis 1; those of one axis along that.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.hstack([jnp.arange(2), 5])
        Array([0, 1, 5], dtype=int32)
    """
    xs = [atleast_1d(x) for x in _sequence("hstack", tup)]
    return concatenate(xs, 0 if xs[0].aval.ndim == 1 else 1, dtype)


@replayed
def dstack(tup, dtype=None) -> Array:
    """Arrays one behind the other, along axis 2.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.dstack([jnp.ones((2, 3)), jnp.ones((2, 3))]).shape
        (2, 3, 2)
    """
    return concatenate([atleast_3d(x) for x in _sequence("dstack", tup)], 2, dtype)


@replayed
def column_stack(tup) -> Array:
    """Arrays side by side; those of one axis are columns.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.column_stack([jnp.arange(2), jnp.arange(2)])
        Array([[0, 0],
               [1, 1]], dtype=int32)
    """
    xs = _sequence("column_stack", tup)
    return concatenate([x if x.aval.ndim > 1 else lax.reshape(x, (x.aval.size, 1)) for x in xs], 1)


@replayed
def block(arrays) -> Array:
    """An array put together from nested lists of blocks: the innermost side by side, the outer ones below each other.

    Raises:
        ValueError: lists of unequal depth, or an empty one.
        TypeError: a tuple among the lists.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.block([[jnp.ones((1, 2)), jnp.zeros((1, 1))], [jnp.zeros((1, 3))]])
        Array([[1., 1., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    out, _ = _joined_blocks(arrays)
    return out


def _joined_blocks(arrays):
    """The array of nested lists, and how deep they are nested."""
    if isinstance(arrays, tuple):
        raise ValueError(
            "gradix.numpy.block does not allow tuples, got " + repr(arrays) + ". Nest lists."
        )
    if not isinstance(arrays, list):
        return as_operand("block", arrays), 1
    if not arrays:
        raise ValueError("block: empty list; every list must hold at least one array.")
    parts, depths = zip(*[_joined_blocks(a) for a in arrays])
    if any(d != depths[0] for d in depths):
        raise ValueError(
            f"block: mismatched depths of the lists, got {depths}; nest all blocks equally deep."
        )
    depth = depths[0]
    rank = max([depth, *[p.aval.ndim for p in parts]])
    raised = [
        expand_dims(p, tuple(range(rank - p.aval.ndim))) if p.aval.ndim < rank else p for p in parts
    ]
    return concatenate(raised, -depth), depth + 1


@replayed
def append(arr, values, axis: int | None = None) -> Array:
    """`values` after the elements of `arr`, along an axis or all in one row.

    Args:
        arr: the array.
        values: what follows it, of its shape but for `axis`.
        axis: the axis; by default both become one row.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.append(jnp.arange(2), 5)
        Array([0, 1, 5], dtype=int32)
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([as_operand("append", arr), as_operand("append", values, 1)], axis)


# -- apart -----------------------------------------------------------------------------------------


def unstack(x, /, *, axis: int = 0) -> tuple:
    """The parts of `x` along an axis, without that axis.

    Raises:
        ValueError: the array has no axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unstack(jnp.arange(2))
        (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    x = as_operand("unstack", x)
    if not x.aval.ndim:
        raise ValueError(
            "Unstack requires arrays with rank > 0, however a scalar array was passed."
        )
    return tuple(lax.unstack(x, axis_of(axis, x.aval.ndim)))


@replayed
def split(ary, indices_or_sections, axis: int = 0) -> list:
    """`ary` cut along an axis: into equal parts, or before the given indices.

    Args:
        ary: an array with one axis at least.
        indices_or_sections: the number of parts, or the indices at which parts begin.
        axis: the axis; negative ones count from the end.

    Raises:
        ValueError: the axis does not divide into that many equal parts; `array_split` allows
            unequal ones.

    Example:
        >>> import gradix.numpy as jnp
        >>> [len(x) for x in jnp.split(jnp.arange(5), [1, 3])]
        [1, 2, 2]
    """
    return _split("split", ary, indices_or_sections, axis)


@replayed
def array_split(ary, indices_or_sections, axis: int = 0) -> list:
    """`ary` cut along an axis into parts as equal as possible, or before the given indices.

    Args:
        ary: an array with one axis at least.
        indices_or_sections: the number of parts, or the indices at which parts begin.
        axis: the axis; negative ones count from the end.

    Example:
        >>> import gradix.numpy as jnp
        >>> [len(x) for x in jnp.array_split(jnp.arange(5), 3)]
        [2, 2, 1]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def _split(name: str, ary, where, axis: int) -> list:
    x = as_operand(name, ary)
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if is_unknown(where):
        raise ConcretizationTypeError(
            where, f"{name} needs to know where to cut: the sizes of the parts are shapes."
        )
    if np.ndim(where) or isinstance(where, (tuple, list)):
        cuts = [0, *[as_int(i) for i in np.asarray(where, dtype=None if len(where) else int)], n]
    else:
        parts = as_int(where)
        if parts <= 0:
            raise ValueError(f"{name}: number of sections must be positive, got {parts}.")
        part, more = divmod(n, parts)
        if more and name != "array_split":
            raise ValueError(
                f"array split does not result in an equal division: rest is {more} of {n} elements in "
                f"{parts} parts. array_split makes parts of unequal size."
            )
        if is_undecided_remainder(more):
            raise InconclusiveDimensionOperation(
                f"{name}: an axis of size {n} must divide evenly into {parts} parts; "
                f"the remainder {more} is not known to be 0."
            )
        more = more if type(more) is int else 0
        cuts = list(accumulate([part + 1] * more + [part] * (parts - more), initial=0))
    sizes = tuple([b - a for a, b in zip(cuts, cuts[1:])])
    if any(s < 0 for s in sizes):
        raise ValueError(
            f"{name}: the indices must ascend from 0 to {n}, the size of axis {axis}; {cuts[1:-1]} give "
            f"parts of sizes {list(sizes)}."
        )
    return list(lax.split(x, sizes, axis))


def vsplit(ary, indices_or_sections) -> list:
    """`split` along axis 0.

    Example:
        >>> import gradix.numpy as jnp
        >>> len(jnp.vsplit(jnp.ones((4, 2)), 2))
        2
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections) -> list:
    """`split` along axis 1, or along the only axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> len(jnp.hsplit(jnp.ones((4, 2)), 2))
        2
    """
    x = as_operand("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.aval.ndim == 1 else 1)


def dsplit(ary, indices_or_sections) -> list:
    """`split` along axis 2.

    Example:
        >>> import gradix.numpy as jnp
        >>> len(jnp.dsplit(jnp.ones((1, 1, 4)), 2))
        2
    """
    return _split("dsplit", ary, indices_or_sections, 2)


# -- repeated --------------------------------------------------------------------------------------


@replayed
def tile(A, reps) -> Array:
    """`A` repeated as a whole, `reps[i]` times along axis i.

    Raises:
        ValueError: a number of repetitions is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tile(jnp.arange(2), 2)
        Array([0, 1, 0, 1], dtype=int32)
    """
    x = as_operand("tile", A)
    reps = (
        [as_dim(r) for r in reps]
        if isinstance(reps, (tuple, list)) or np.ndim(reps)
        else [as_dim(reps)]
    )
    rank = max(len(reps), x.aval.ndim)
    if any(r < 0 for r in reps):
        raise ValueError(f"tile: reps must not be negative, got {tuple(reps)}.")
    x = lax.expand_dims(x, range(rank - x.aval.ndim))
    return lax.tile(x, (1,) * (rank - len(reps)) + tuple(reps))


@replayed
def repeat(
    a,
    repeats,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding=None,
) -> Array:
    """Each element of `a` repeated, along an axis or of all in one row.

    Args:
        a: an array.
        repeats: how often, for all or for each element.
        axis: the axis to repeat along.
        total_repeat_length: the size of the result's axis, needed where `repeats` is traced; the
            result is cut, or its last element repeated further.
        out_sharding: how the result is to be divided.

    Raises:
        ConcretizationTypeError: traced `repeats` without `total_repeat_length`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.repeat(jnp.arange(3), jnp.array([2, 0, 1]))
        Array([0, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return divided(
            repeat, out_sharding, a, repeats, axis, total_repeat_length=total_repeat_length
        )
    x = as_operand("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    if not x.aval.ndim:
        x = lax.expand_dims(x, (0,))
    axis = axis_of(axis, x.aval.ndim)
    if is_symbolic_dim(repeats) and total_repeat_length is None:
        return _repeat_all(x, repeats, axis)
    if not isinstance(repeats, Tracer) or (total_repeat_length is None and repeats._decides):
        counts = as_operand("repeat", repeats, 1)
        counts = counts.host if isinstance(counts, ArrayImpl) else np.asarray(counts)
        return _repeat_known(x, counts, axis, total_repeat_length)
    if total_repeat_length is None:
        raise ConcretizationTypeError(
            repeats,
            "When jit-compiling jnp.repeat, the total number of repeats must be static. Specify a "
            "static value for `repeats`, or pass `total_repeat_length`.",
        )
    return _repeat_traced(x, repeats, axis, as_int(total_repeat_length))


def _repeat_all(x, count, axis: int):
    """Each element as often."""
    shape = x.aval.shape
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    kept = tuple([i for i in range(len(wide)) if i != axis + 1])
    return lax.reshape(
        lax.broadcast_in_dim(x, wide, kept),
        (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]),
    )


def _repeat_known(x, counts: np.ndarray, axis: int, total):
    n = x.aval.shape[axis]
    if counts.dtype.kind not in "iub":
        raise TypeError(f"repeat: repeats must be integers, got dtype {counts.dtype}.")
    if counts.size == 1 and total is None:
        count = int(counts.reshape(()))
        if count < 0:
            raise ValueError(f"repeat: repeats must not be negative, got {count}.")
        return _repeat_all(x, count, axis)
    counts = np.broadcast_to(counts, (n,)) if counts.size == 1 else counts
    if counts.shape != (n,):
        raise ValueError(
            f"repeat: repeats of shape {counts.shape} must have one entry, or one for each of the {n} "
            f"elements of axis {axis}."
        )
    places = np.repeat(np.arange(n), np.maximum(counts, 0))
    if total is not None:
        places = np.append(
            places, np.full(max(total - len(places), 0), places[-1] if len(places) else 0)
        )[:total]
    return take_index(x, (*[slice(None)] * axis, places.astype(np.int32)))


def _repeat_traced(x, counts, axis: int, total: int):
    """Positions where the next element begins, counted and summed."""
    n = x.aval.shape[axis]
    if not n or not total:
        return _repeat_known(x, np.zeros(n, int), axis, total if n else 0)
    counts = broadcast_to(lax.reshape(counts, (1,)) if not counts.aval.ndim else counts, (n,))
    counts = lax.max(convert(counts, np.dtype("int32")), number(0, np.dtype("int32")))
    before = cumsum(counts) - counts
    begins = lax.full((total,), number(0, before.aval.dtype)).at[before].add(1)
    places = cumsum(begins) - number(1, before.aval.dtype)
    return take_index(x, (*[slice(None)] * axis, places), mode="clip")
