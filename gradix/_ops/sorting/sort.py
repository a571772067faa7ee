"""Sorting: sort of several arrays by leading keys, sort_key_val, top_k."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import as_dim, may_have
from gradix._core.divisions import merged, undivided
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import expand_axis, to_axis
from gradix._ops.comparison import total_order_key
from gradix._ops.creation import broadcasted_iota
from gradix._ops.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from gradix._ops.indexing.slicing import slice_in_dim
from gradix._ops.operands import as_operand
from gradix._ops.sorting.comparators import emit_sort, emit_top_k

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_INDEX = np.dtype("int32")
_LARGEST_INDEX = np.iinfo(_INDEX).max


class Sort(Primitive):
    """Sort arrays together along an axis by the first `num_keys`; NaN is last, zeros are equal."""

    costly = True
    multiple_results = True

    def abstract(self, *xs, dimension, is_stable, num_keys):
        shapes = [x.shape for x in xs]
        if any(s != shapes[0] for s in shapes):
            raise TypeError(f"Arguments to sort must have equal shapes, got: {' '.join(map(str, shapes))}")
        if any(dtypes.is_extended(x.dtype) for x in xs[:num_keys]):
            raise TypeError(
                f"sort compares numbers, and random keys have no order; got {xs[0].str_short()}. Sort "
                "keys by numbers instead: lax.sort((numbers, keys), num_keys=1)."
            )
        return list(xs)

    def host(self, *xs, dimension, is_stable, num_keys):
        first = xs[0]
        if len(xs) == 1 and first.dtype.kind in "biu":
            return [np.sort(first, axis=dimension)]
        keys = [k for x in xs[:num_keys] for k in host_keys(x)]
        if len(xs) == 1 and keys[0] is first:
            return [np.sort(first, axis=dimension, kind="stable")]
        if len(keys) == 1:
            order = np.argsort(keys[0], axis=dimension, kind="stable")
        else:
            order = np.lexsort(keys[::-1], axis=dimension)
        return [_in_order(x, order, dimension) for x in xs]

    def jvp(self, primals, tangents, *, dimension, is_stable, num_keys):
        params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
        if all(t is None for t in tangents):
            return bind(self, primals, params), [None] * len(primals)
        places = broadcasted_iota(_INDEX, primals[0].aval.shape, dimension)
        *out, order = bind(self, (*primals, places), params)
        return out, [None if t is None else take_along(t, order, dimension) for t in tangents]

    def batch(self, size, args, axes, *, dimension, is_stable, num_keys):
        axis = next(a for a in axes if a is not None)
        args = [to_axis(size, x, a, axis) for x, a in zip(args, axes)]
        params = {"dimension": dimension + (dimension >= axis), "is_stable": is_stable, "num_keys": num_keys}
        return bind(self, args, params), [axis] * len(args)

    def divide(self, mesh, avals, outs, params):
        for a in avals:
            undivided(self.name, a, (params["dimension"],), "the axis to sort")
        return [merged(self.name, avals, avals[0].shape)] * len(outs)

    def lower(self, em, outs, *xs, dimension, is_stable, num_keys):
        return emit_sort(em, xs, dimension, is_stable, num_keys)


class TopK(Primitive):
    """The k largest elements along an axis and their places, largest first; NaN is largest."""

    multiple_results = True

    def abstract(self, x, *, k, axis):
        if x.dtype in dtypes.COMPLEX:
            raise ValueError("top_k is not compatible with complex inputs. Give it their absolute values.")
        if k < 0:
            raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
        if not 0 <= axis < x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
        if not may_have(x.shape[axis], k):
            raise ValueError(
                f"k argument to top_k must be no larger than size along axis; got k={k} with "
                f"shape={[*x.shape]} and axis={axis}"
            )
        if type(x.shape[axis]) is int and x.shape[axis] - 1 > _LARGEST_INDEX:
            raise ValueError(
                f"top_k gives the places of elements as {_INDEX}, which cannot number the "
                f"{x.shape[axis]} elements along axis {axis}. Take the largest of parts of the array first."
            )
        shape = tuple([k if i == axis else n for i, n in enumerate(x.shape)])
        return [make_aval(shape, x.dtype, x.weak_type), make_aval(shape, _INDEX, x.weak_type)]

    def host(self, x, *, k, axis):
        key = x.astype(np.int8) if x.dtype in dtypes.NARROW_INTEGER else total_order_key(x)
        # ~ reverses the order and cannot overflow.
        order = np.argsort(~key, axis=axis, kind="stable")
        order = order[(slice(None),) * axis + (slice(k),)]
        return [_in_order(x, order, axis), order.astype(_INDEX)]

    def jvp(self, primals, tangents, *, k, axis):
        (t,) = tangents
        out, order = bind(self, primals, {"k": k, "axis": axis})
        return [out, order], [None if t is None else take_along(t, order, axis), None]

    def batch(self, size, args, axes, *, k, axis):
        (a,) = axes
        return bind(self, args, {"k": k, "axis": axis + (axis >= a)}), [a, a]

    def divide(self, mesh, avals, outs, params):
        return [undivided(self.name, avals[0], (params["axis"] % avals[0].ndim,), "the axis to choose from")] * len(
            outs
        )

    def lower(self, em, outs, x, *, k, axis):
        return emit_top_k(em, outs, x, k, axis)


sort_p = Sort("sort")
top_k_p = TopK("top_k")


def _in_order(x, order, axis: int):
    return x.take(order) if x.ndim == 1 else np.take_along_axis(x, order, axis)


def host_keys(x) -> list:
    """NumPy arrays whose order in NumPy is the order wanted for `x`."""
    if x.dtype.kind == "c":
        nan = np.isnan(x.imag)  # comes after all numbers, before NaN in the real part
        if nan.any():
            return [np.isnan(x.real), nan, x.real, x.imag]
        return [x.real, x.imag]
    if x.dtype.isbuiltin == 1:  # NumPy does not sort NaN of ml_dtypes last
        return [x]
    return [x.astype(np.float32 if x.dtype in dtypes.FLOAT else np.int32)]


def take_along(x, places, axis: int):
    """`x` at `places` along `axis`, each place at most once; all other axes are batch axes."""
    if not x.aval.size:
        return slice_in_dim(x, 0, places.aval.shape[axis], axis=axis)
    others = tuple([i for i in range(x.aval.ndim) if i != axis])
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
    )
    return gather(
        x,
        expand_axis(places, x.aval.ndim),
        numbers,
        (1,) * x.aval.ndim,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def take_rows_along(x, places):
    """`x[places[i, j], j]` of a matrix."""
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        operand_batching_dims=(1,),
        start_indices_batching_dims=(1,),
    )
    return gather(x, expand_axis(places, 2), numbers, (1, 1), mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def _axis(name: str, axis, ndim: int) -> int:
    a = index(axis)
    if not -ndim <= a < ndim:
        raise ValueError(f"axis {a} is out of bounds for array of dimension {ndim} in {name}")
    return a % ndim


def sort(
    operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort one array, or several by the first `num_keys`, along an axis; NaN comes last.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the axis; negative ones count from the end.
        is_stable: equal keys keep their order.
        num_keys: how many of the arrays are compared, one after the other.

    Returns:
        The sorted array, or a tuple of them.

    Raises:
        TypeError: shapes differ, or no array is given.
        ValueError: `num_keys` or `dimension` is out of range.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.sort(jnp.array([3.0, 1.0, 2.0]))
        Array([1., 2., 3.], dtype=float32)
    """
    if not isinstance(operand, (tuple, list)):
        x = as_operand("sort", operand)
        return bind(
            sort_p, (x,), {"dimension": _axis("sort", dimension, x.aval.ndim), "is_stable": is_stable, "num_keys": 1}
        )[0]
    if not operand:
        raise TypeError("Sort requires at least one operand, got an empty sequence.")
    if not 1 <= num_keys <= len(operand):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operand)}")
    xs = tuple([as_operand("sort", x) for x in operand])
    return tuple(
        bind(
            sort_p,
            xs,
            {"dimension": _axis("sort", dimension, xs[0].aval.ndim), "is_stable": is_stable, "num_keys": num_keys},
        )
    )


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort `keys` and bring `values` into the same order.

    Args:
        keys: the array to sort.
        values: an array of the shape of `keys`.
        dimension: the axis to sort along.
        is_stable: equal keys keep their order.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.sort_key_val(jnp.array([3, 1]), jnp.array([30, 10]))
        (Array([1, 3], dtype=int32), Array([10, 30], dtype=int32))
    """
    k, v = sort((keys, values), dimension, is_stable, 1)
    return k, v


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The `k` largest elements along an axis and their indices, largest first; ties in order.

    Args:
        operand: a real array.
        k: how many.
        axis: the axis to search along.

    Raises:
        ValueError: `k` is negative or exceeds the axis, or the dtype is complex.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.top_k(jnp.array([1.0, 3.0, 2.0]), 2)
        [Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    x = as_operand("top_k", operand)
    k = as_dim(k)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    return list(bind(top_k_p, (x,), {"k": k, "axis": _axis("top_k", axis, x.aval.ndim)}))
