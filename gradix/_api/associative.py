"""`associative_scan`: all prefixes of an associative operation, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.boundary import Flat, arrays, positional
from gradix._api.control import cond
from gradix._api.loops import scan
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten, treedef_tuple
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._ops.arithmetic import add, sub
from gradix._ops.bitwise import bitwise_or
from gradix._ops.comparison import ge, lt
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.indexing.dynamic_slicing import dynamic_slice
from gradix._ops.indexing.slicing import pad, slice
from gradix._ops.joining import concatenate
from gradix._ops.operands import scalar_like
from gradix._ops.select import select
from gradix._ops.shape import broadcast_in_dim, rev

_BOOL = np.dtype(bool)
_DOUBLINGS = 31  # enough for every size, since sizes have 32 bits


@boundary
def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of an associative `fn` along an axis, by O(n) work in O(log n) steps.

    Result i combines the elements 0 to i.

    Args:
        fn: an associative function of two pytrees like `elems`. It is called with slices of any
            length along the axis.
        elems: arrays in any pytree, of one size along the axis.
        reverse: combine from the end: result i combines elements n-1 down to i.
        axis: the axis.

    Returns:
        Arrays of the shapes and dtypes of `elems`, in its structure.

    Raises:
        TypeError: `fn` is not callable.
        ValueError: sizes along the axis differ, or it is out of range.

    Example:
        >>> from gradix import lax
        >>> import numpy as np
        >>> lax.associative_scan(lax.add, np.arange(1, 5))
        Array([ 1,  3,  6, 10], dtype=int32)
    """
    if not callable(fn):
        raise TypeError(f"lax.associative_scan: fn argument should be callable, got {fn!r}.")
    leaves, tree = flatten(elems)
    leaves = arrays("associative_scan", leaves, tree, "elems")
    if not leaves:
        return elems
    axis = _axis(axis, leaves)
    sizes = [x.aval.shape[axis] for x in leaves]
    if len(set(sizes)) > 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {[x.aval.shape for x in leaves]}, along axis {axis}.)"
        )
    if reverse:
        leaves = [rev(x, (axis,)) for x in leaves]

    def close(outs, out_tree):
        if len(outs) != len(leaves):
            raise ValueError(f"associative_scan: fn must return the leaves of its arguments, {tree}, got {out_tree}.")
        return arrays("associative_scan", outs, tree, "the output of fn ")

    both = positional(treedef_tuple((tree, tree)))
    flat = Flat(fn, "associative_scan", both.unflatten, close=close)

    def combine(a, b):
        return flat(*a, *b)

    open_size = is_symbolic_shape(sizes[:1])
    results = _doubled(combine, leaves, axis) if open_size else _prefixes(combine, leaves, axis)
    return tree.unflatten([rev(x, (axis,)) for x in results] if reverse else results)


def _axis(axis: int, leaves) -> int:
    ndim = leaves[0].aval.ndim
    if any(not -x.aval.ndim <= axis < x.aval.ndim for x in leaves):
        least = min(x.aval.ndim for x in leaves)
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {least}")
    return axis % ndim


def _prefixes(combine, xs, axis: int) -> list:
    """Combine neighbours, take the prefixes of the pairs, and compute the others from them."""
    n = xs[0].aval.shape[axis]
    if n < 2:
        return xs
    odd = _prefixes(combine, combine(_every(xs, axis, 0, n - 1, 2), _every(xs, axis, 1, n, 2)), axis)
    before = _every(odd, axis, 0, odd[0].aval.shape[axis] - 1, 1) if n % 2 == 0 else odd
    even = combine(before, _every(xs, axis, 2, n, 2))
    even = [concatenate([first, e], axis) for first, e in zip(_every(xs, axis, 0, 1, 1), even)]
    return [_interleaved(e, o, axis) for e, o in zip(even, odd)]


def _doubled(combine, xs, axis: int) -> list:
    """Combine each element with the one 1, 2, 4, … places before it, until the size is reached.

    The size is known at run time only.
    """
    n = xs[0].aval.shape[axis]
    size = convert_element_type(n.__jax_array__(), np.int32)

    def before(x, d):
        starts = [scalar_like(d, 0)] * x.aval.ndim
        starts[axis] = sub(size, d)
        return dynamic_slice(concatenate([x, x], axis), starts, x.aval.shape)

    def step(d, *xs):
        places = ge(broadcasted_iota(np.int32, (n,), 0), d)
        joined = combine([before(x, d) for x in xs], list(xs))
        return [select(broadcast_in_dim(places, x.aval.shape, (axis,)), y, x) for x, y in zip(xs, joined)]

    def body(xs, d):
        return cond(lt(d, size), step, lambda d, *xs: list(xs), d, *xs), None

    return scan(body, xs, np.asarray([1 << k for k in range(_DOUBLINGS)], np.int32))[0]


def _every(xs, axis: int, start: int, stop: int, stride: int) -> list:
    out = []
    for x in xs:
        shape = x.aval.shape
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        starts[axis], limits[axis], strides[axis] = min(start, shape[axis]), stop, stride
        out.append(slice(x, tuple(starts), tuple(limits), tuple(strides)))
    return out


def _interleaved(a, b, axis: int):
    """The elements of `a` and `b` in turn, `a` first; `a` may have one element more."""
    same = a.aval.shape[axis] == b.aval.shape[axis]
    spread_a, spread_b = (0, int(same), 1), (1, int(not same), 1)
    first, second = (
        pad(x, scalar_like(x, 0), [spread if i == axis else (0, 0, 0) for i in range(x.aval.ndim)])
        for x, spread in ((a, spread_a), (b, spread_b))
    )
    return bitwise_or(first, second) if a.dtype == _BOOL else add(first, second)
