"""Arrays joined, split and repeated: concatenate, stack, block, split, tile, repeat, append."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError, class_of
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import as_dim, is_count, is_symbolic_dim
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.broadcasting import atleast_1d, atleast_2d, atleast_3d
from gradix.numpy.cumulative import cumsum
from gradix.numpy.indexing import take_index
from gradix.numpy.masks import decides_sizes
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, promote_dtypes
from gradix.numpy.shapes import expand_dims, ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

# -- joined ----------------------------------------------------------------------------------------


def _sequence(name: str, arrays) -> list:
    """The arrays of a sequence as a list; of one array, its parts along axis 0."""
    if isinstance(arrays, (Array, np.ndarray)):
        x = as_operand(name, arrays)
        if not x.aval.ndim:
            raise ValueError(f"{name}: got a scalar in place of arrays. Pass a sequence of arrays.")
        if not x.aval.shape[0]:
            raise ValueError(
                f"{name} takes at least one array, got an array of shape {x.aval.shape}, which has no rows."
            )
        return list(lax.unstack(x, 0))
    if not hasattr(arrays, "__len__") or isinstance(arrays, (str, bytes, dict)):
        raise TypeError(
            f"{name} takes a sequence of arrays, got {class_of(arrays)}."
            + (" Write list(...) around the generator." if hasattr(arrays, "__next__") else "")
        )
    if not len(arrays):
        raise ValueError(f"{name} takes at least one array, got an empty sequence.")
    return [as_operand(name, x, i) for i, x in enumerate(arrays)]


def _counted_parts(arrays):
    """One array in place of a sequence of its parts, if values decide how many there are; else None."""
    is_array = isinstance(arrays, (Array, np.ndarray)) and arrays.ndim
    return arrays if is_array and is_count(arrays.shape[0]) else None


def _merged(name: str, x, axis: int, dtype) -> Array:
    """The parts of an array along axis 0, joined along an axis of theirs."""
    if dtype is not None:
        x = convert(x, dtypes.requested_dtype(dtype, name))
    n, *shape = x.aval.shape
    if not shape:
        raise ValueError(f"{name}: the arrays are scalars, without an axis. Use jnp.stack.")
    axis = axis_of(axis, len(shape))
    moved = lax.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)))
    return lax.reshape(moved, (*shape[:axis], n * shape[axis], *shape[axis + 1 :]))


def _with_parts(x, shape_of) -> Array:
    """An array whose parts along axis 0 get the shape that `shape_of` says of theirs."""
    n, *shape = x.aval.shape
    return lax.reshape(x, (n, *shape_of(tuple(shape))))


def _in_three(shape: tuple) -> tuple:
    """The shape that `atleast_3d` gives."""
    return (1, *(shape or (1,)), 1) if len(shape) < 2 else shape if len(shape) > 2 else (*shape, 1)


def _check_no_array(name: str, given, what: str = "an axis") -> None:
    """Refuse a second array where only the first argument holds arrays."""
    if isinstance(given, (Array, np.ndarray)) and given.ndim:
        is_axis = what == "an axis"
        raise (TypeError if is_axis else ValueError)(
            f"{name} takes one list of arrays, and then {what}; got an array of shape {given.shape} for it. "
            f"Put the arrays in brackets: {name}([a, b]){'' if is_axis else ', or write dtype=x.dtype'}."
        )


def _in_one_dtype(name: str, xs, dtype) -> list:
    if dtype is not None:
        _check_no_array(name, dtype, "a dtype")
        dtype = dtypes.requested_dtype(dtype, name)
        return [convert(x, dtype) for x in xs]
    first = xs[0].aval
    if all(x.aval is first or (x.aval.dtype == first.dtype and x.aval.weak_type == first.weak_type) for x in xs):
        return xs
    return promote_dtypes(name, *xs)


def concatenate(
    arrays: Array | np.ndarray | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Arrays joined one after the other along an axis.

    Args:
        arrays: a sequence of arrays that have the same sizes along all other axes.
        axis: the axis; None joins the arrays as rows, each flattened.
        dtype: the dtype of the result; by default the one to which the arrays promote.

    Returns:
        An array whose size along the axis is the sum of the sizes of the arrays.

    Raises:
        ValueError: there are no arrays, or they are scalars.
        TypeError: the shapes do not fit, or `arrays` is not a sequence.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.concatenate([jnp.arange(2), jnp.ones(1)])
        Array([0., 1., 1.], dtype=float32)
        >>> jnp.concatenate([jnp.zeros((2, 1)), jnp.ones((2, 2))], axis=1)
        Array([[0., 1., 1.],
               [0., 1., 1.]], dtype=float32)

    See also:
        `jnp.stack`, which adds an axis; `jnp.hstack`, `jnp.vstack`, `jnp.block`, `jnp.split`.
    """
    _check_no_array("concatenate", axis)
    parts = _counted_parts(arrays)
    if parts is not None:
        parts, axis = (ravel(parts)[:, None], 0) if axis is None else (parts, axis)
        return _merged("concatenate", parts, axis, dtype)
    xs = _sequence("concatenate", arrays)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    if not xs[0].aval.ndim:
        raise ValueError("concatenate: the arrays are scalars, without an axis. Use jnp.stack.")
    return lax.concatenate(_in_one_dtype("concatenate", xs, dtype), axis_of(axis, xs[0].aval.ndim))


def concat(arrays: Array | np.ndarray | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays joined one after the other along an axis; the array API's name of `concatenate`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.concat([jnp.arange(2), jnp.arange(1)])
        Array([0, 1, 0], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(
    arrays: Array | np.ndarray | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Arrays of one shape joined along a new axis.

    Args:
        arrays: a sequence of arrays of one shape, or one array for its parts along axis 0.
        axis: the place of the new axis in the result.
        out: not supported.
        dtype: the dtype of the result; by default the one to which the arrays promote.

    Returns:
        An array with one axis more than the arrays; its size is their number.

    Raises:
        ValueError: there are no arrays, or their shapes differ.
        TypeError: `arrays` is not a sequence.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.stack([jnp.arange(2), jnp.ones(2)], axis=1)
        Array([[0., 1.],
               [1., 1.]], dtype=float32)
        >>> jnp.stack([jnp.ones((2, 3)), jnp.zeros((2, 3))]).shape
        (2, 2, 3)

    See also:
        `jnp.concatenate`, which joins along an axis that is there; `jnp.unstack`,
        `jnp.column_stack`.
    """
    no_out("stack", out)
    _check_no_array("stack", axis)
    parts = _counted_parts(arrays)
    if parts is not None:
        axis = axis_of(axis, parts.ndim)
        parts = lax.transpose(parts, (*range(1, axis + 1), 0, *range(axis + 1, parts.ndim)))
        return parts if dtype is None else convert(parts, dtypes.requested_dtype(dtype, "stack"))
    xs = _sequence("stack", arrays)
    shape = xs[0].aval.shape
    if any(x.aval.shape != shape for x in xs):
        raise ValueError(
            "stack: the arrays must have the same shape, got "
            f"{', '.join([str(x.aval.shape) for x in xs])}. Use jnp.concatenate for others."
        )
    return lax.stack(_in_one_dtype("stack", xs, dtype), axis_of(axis, len(shape) + 1))


@replayed
def vstack(tup: Array | np.ndarray | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along axis 0, one below the other; vectors become rows.

    Raises:
        TypeError: the shapes do not fit, or `tup` is not a sequence.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.vstack([jnp.arange(2), jnp.arange(2)]).shape
        (2, 2)
    """
    _check_no_array("vstack", dtype, "a dtype")
    parts = _counted_parts(tup)
    if parts is not None:
        return _merged("vstack", _with_parts(parts, lambda s: (1,) * (2 - len(s)) + s), 0, dtype)
    return concatenate([atleast_2d(x) for x in _sequence("vstack", tup)], 0, dtype)


@replayed
def hstack(tup: Array | np.ndarray | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along axis 1, side by side; vectors are joined along their only axis.

    Raises:
        TypeError: the shapes do not fit, or `tup` is not a sequence.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.hstack([jnp.arange(2), 5])
        Array([0, 1, 5], dtype=int32)
    """
    _check_no_array("hstack", dtype, "a dtype")
    parts = _counted_parts(tup)
    if parts is not None:
        return _merged("hstack", _with_parts(parts, lambda s: s or (1,)), 0 if parts.ndim < 3 else 1, dtype)
    xs = [atleast_1d(x) for x in _sequence("hstack", tup)]
    return concatenate(xs, 0 if xs[0].aval.ndim == 1 else 1, dtype)


@replayed
def dstack(tup: Array | np.ndarray | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along axis 2, one behind the other; axes of size 1 are added up to three.

    Raises:
        TypeError: the shapes do not fit, or `tup` is not a sequence.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.dstack([jnp.ones((2, 3)), jnp.ones((2, 3))]).shape
        (2, 3, 2)
    """
    _check_no_array("dstack", dtype, "a dtype")
    parts = _counted_parts(tup)
    if parts is not None:
        return _merged("dstack", _with_parts(parts, _in_three), 2, dtype)
    return concatenate([atleast_3d(x) for x in _sequence("dstack", tup)], 2, dtype)


@replayed
def column_stack(tup: Array | np.ndarray | Sequence[ArrayLike]) -> Array:
    """Arrays joined along axis 1, side by side; vectors become columns.

    Raises:
        TypeError: the shapes do not fit, or `tup` is not a sequence.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.column_stack([jnp.arange(2), jnp.arange(2)])
        Array([[0, 0],
               [1, 1]], dtype=int32)
    """
    parts = _counted_parts(tup)
    if parts is not None:
        return _merged("column_stack", _with_parts(parts, lambda s: s if len(s) > 1 else (*(s or (1,)), 1)), 1, None)
    xs = _sequence("column_stack", tup)
    return concatenate([x if x.aval.ndim > 1 else lax.reshape(x, (x.aval.size, 1)) for x in xs], 1)


@replayed
def block(arrays: Any) -> Array:
    """An array joined of nested lists of blocks.

    Blocks in the innermost lists are joined along the last axis, the results along the axis before
    that, and so on.

    Raises:
        ValueError: lists are nested to different depths, a list is empty, or one is a tuple.
        TypeError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.block([[jnp.ones((1, 2)), jnp.zeros((1, 1))], [jnp.zeros((1, 3))]])
        Array([[1., 1., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    out, _ = _joined_blocks(arrays)
    return out


def _joined_blocks(arrays, left: int = 64):
    """The array joined of nested lists, and one more than the depth to which they are nested."""
    if not left:
        raise ValueError("block: lists are nested more than 64 deep, or one contains itself.")
    if isinstance(arrays, tuple):
        raise ValueError(f"block takes nested lists, but no tuples, got {arrays!r}. Write list(...) around it.")
    if not isinstance(arrays, list):
        return as_operand("block", arrays), 1
    if not arrays:
        raise ValueError("block: a list is empty. Every list must hold at least one array.")
    parts, depths = zip(*[_joined_blocks(a, left - 1) for a in arrays])
    if any(d != depths[0] for d in depths):
        raise ValueError(f"block: the lists are nested to mismatched depths {depths}. Nest all equally deep.")
    depth = depths[0]
    rank = max([depth, *[p.aval.ndim for p in parts]])
    raised = [expand_dims(p, tuple(range(rank - p.aval.ndim))) if p.aval.ndim < rank else p for p in parts]
    return concatenate(raised, -depth), depth + 1


@replayed
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with `values` joined after it, along an axis.

    Args:
        arr: an array.
        values: an array with the same sizes along all other axes.
        axis: the axis; by default, both are flattened.

    Raises:
        TypeError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.append(jnp.arange(2), 5)
        Array([0, 1, 5], dtype=int32)
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([as_operand("append", arr), as_operand("append", values, 1)], axis)


# -- repeated --------------------------------------------------------------------------------------


@replayed
def tile(A: ArrayLike, reps: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """The array repeated as a whole, `reps[i]` times along axis i.

    If `reps` and the array differ in length, axes of size 1, or numbers 1, are put in front.

    Raises:
        ValueError: a number of repetitions is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tile(jnp.arange(2), 2)
        Array([0, 1, 0, 1], dtype=int32)
        >>> jnp.tile(jnp.arange(2), (2, 2))
        Array([[0, 1, 0, 1],
               [0, 1, 0, 1]], dtype=int32)

    See also:
        `jnp.repeat`, which repeats each element; `jnp.broadcast_to`, `jnp.concatenate`.
    """
    x = as_operand("tile", A)
    given: Any = reps
    times = [as_dim(r) for r in given] if isinstance(given, (tuple, list)) or np.ndim(given) else [as_dim(given)]
    rank = max(len(times), x.aval.ndim)
    if any(r < 0 for r in times):
        raise ValueError(f"tile: reps must not be negative, got {tuple(times)}.")
    x = lax.expand_dims(x, range(rank - x.aval.ndim))
    times = [1] * (rank - len(times)) + times
    for axis, (n, r) in enumerate(zip(x.aval.shape, times)):
        if r != 1 and (is_count(n) or is_count(r)):
            x, times[axis] = _tiled_by_places(x, r, axis), 1
    return lax.tile(x, tuple(times))


def _tiled_by_places(x, count, axis: int):
    """The array `count` times along an axis, where values decide its size or the number of times."""
    n, dtype = x.aval.shape[axis], np.dtype("int32")
    at = lax.iota(dtype, n * count)
    size = lax.max(number(n, dtype), number(1, dtype))
    at = lax.rem(at, lax.broadcast_in_dim(size, at.aval.shape, ()))
    return take_index(x, (*[slice(None)] * axis, at))


def _repeat_by(a, repeats: tuple, axis, total_repeat_length) -> Array:
    """As `repeat`, with known repeats, which are no operands."""
    return repeat(a, np.array(repeats), axis, total_repeat_length=total_repeat_length)


@replayed
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The array with each element repeated along an axis.

    Args:
        a: an array.
        repeats: the number of repetitions, one for all elements or one for each along the axis.
        axis: the axis; by default, the array is taken as one row.
        total_repeat_length: the size of the axis in the result; it is needed if `repeats` is
            traced. The result is cut, or its last element repeated further.
        out_sharding: the sharding of the result.

    Returns:
        An array of the dtype and shape of `a`, but for the axis, whose size is the sum of the
        repetitions.

    Raises:
        ConcretizationTypeError: `repeats` is traced and `total_repeat_length` is not given.
        ValueError: `repeats` is negative, or does not fit the axis.
        TypeError: `repeats` are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.repeat(jnp.arange(3), jnp.array([2, 0, 1]))
        Array([0, 0, 2], dtype=int32)
        >>> jnp.repeat(jnp.array([[1, 2]]), 2, axis=0)
        Array([[1, 2],
               [1, 2]], dtype=int32)

    See also:
        `jnp.tile`, which repeats the whole; `jnp.broadcast_to`, `jnp.take`.
    """
    if out_sharding is not None:
        known = not isinstance(repeats, Tracer)
        return divided(
            _repeat_by if known else repeat,
            out_sharding,
            a,
            tuple(np.ravel(repeats).tolist()) if known else repeats,
            axis,
            total_repeat_length=total_repeat_length,
        )
    x = as_operand("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    if not x.aval.ndim:
        x = lax.expand_dims(x, (0,))
    axis = axis_of(axis, x.aval.ndim)
    if is_symbolic_dim(repeats) and total_repeat_length is None:
        return _repeat_all(x, repeats, axis)
    if is_symbolic_dim(repeats):
        repeats = as_operand("repeat", repeats)
    if not isinstance(repeats, Tracer) or (total_repeat_length is None and repeats._decides):
        counts = as_operand("repeat", repeats, 1)
        counts = counts.host if isinstance(counts, ArrayImpl) else np.asarray(counts)
        return _repeat_known(x, counts, axis, total_repeat_length)
    if total_repeat_length is None and decides_sizes(repeats) and repeats.aval.dtype == np.bool_:
        mask = broadcast_to(repeats, (x.aval.shape[axis],))
        return take_index(x, (*[slice(None)] * axis, mask))
    if total_repeat_length is None:
        raise ConcretizationTypeError(
            repeats,
            "repeat: the traced repeats determine the shape of the result, and have no bound. Give "
            "static repeats, or pass total_repeat_length=n; of the result y, y[jnp.arange(n) < "
            "repeats.sum()] is what is repeated, in a program and if there is room for it.",
        )
    return _repeat_traced(x, repeats, axis, as_int(total_repeat_length))


def _repeat_all(x, count, axis: int):
    """The array with each element repeated `count` times along an axis."""
    shape = x.aval.shape
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    kept = tuple([i for i in range(len(wide)) if i != axis + 1])
    return lax.reshape(lax.broadcast_in_dim(x, wide, kept), (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


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
            f"repeat: repeats must have one entry, or one for each of the {n} elements of axis "
            f"{axis}, got shape {counts.shape}."
        )
    places = np.repeat(np.arange(n), np.maximum(counts, 0))
    if total is not None:
        places = np.append(places, np.full(max(total - len(places), 0), places[-1] if len(places) else 0))[:total]
    return take_index(x, (*[slice(None)] * axis, places.astype(np.int32)))


def _repeat_traced(x, counts, axis: int, total: int):
    """The array repeated by traced counts; it sums marks at the places where elements begin."""
    n = x.aval.shape[axis]
    if not n or not total:
        return _repeat_known(x, np.zeros(n, int), axis, total if n else 0)
    counts = broadcast_to(lax.reshape(counts, (1,)) if not counts.aval.ndim else counts, (n,))
    counts = lax.max(convert(counts, np.dtype("int32")), number(0, np.dtype("int32")))
    before = cumsum(counts) - counts
    begins = lax.full((total,), number(0, before.aval.dtype)).at[before].add(1)
    places = cumsum(begins) - number(1, before.aval.dtype)
    return take_index(x, (*[slice(None)] * axis, places), mode="clip")
