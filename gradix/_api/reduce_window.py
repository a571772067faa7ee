"""`reduce_window`: windows of arrays reduced by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix._api.boundary import arrays
from gradix._api.reduce import _check_results, _start, check_starts, reduce, single_operation
from gradix._api.tracing import flat_body
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten, treedef_tuple
from gradix._control.reduce_window import reduce_window_p
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, mul
from gradix._ops.creation import broadcasted_iota
from gradix._ops.indexing.gather import gather
from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.shape import expand_dims
from gradix._ops.windows.reduce_windows import reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p, window_of

_KNOWN = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


@boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce the elements of a window that slides over an array, as pooling does.

    Args:
        operand: an array, or a pytree of arrays of one shape, which are reduced together.
        init_value: a scalar for each, the identity of `computation`; it also fills the padding.
        computation: an associative function of two trees of scalars to one. Except for sums, maxima
            and minima, derivatives take as many steps as a window has elements.
        window_dimensions: the size of the window along each axis.
        window_strides: the steps of the window; None is 1 along each axis.
        padding: "VALID", "SAME", "SAME_LOWER" or one (low, high) pair per axis.
        base_dilation: the distance of neighbouring elements of the operand along each axis, between
            which `init_value` is put; None is 1.
        window_dilation: the distance of neighbouring elements of the window; None is 1.

    Returns:
        Arrays of the dtypes of `operand`, with an element for each position of the window.

    Raises:
        TypeError: the window does not fit the operand's rank, or an initial value is not a scalar
            or has another dtype.
        ValueError: the trees differ.

    Example:
        >>> from gradix import lax
        >>> import numpy as np
        >>> lax.reduce_window(np.arange(6.0, dtype="float32"), -np.inf, lax.max, (2,), (2,))
        Array([1., 3., 5.], dtype=float32)
    """
    leaves, tree = flatten(operand)
    xs = arrays("reduce_window", leaves, tree, "operand")
    given, init_tree = flatten(init_value)
    if init_tree != tree or not xs:
        raise ValueError(
            "reduce_window needs operands and one initial value for each, in one tree structure: got "
            f"{tree} and {init_tree}."
        )
    inits = [_start(i, x) for i, x in zip(arrays("reduce_window", given, tree, "init_value"), xs)]
    if any(i.aval.shape for i in inits):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes "
            f"{[i.aval.shape for i in inits]}."
        )
    shape = xs[0].aval.shape
    if any(x.aval.shape != shape for x in xs):
        raise ValueError(f"reduce_window operands must have one shape, got {[x.aval.shape for x in xs]}.")
    window = window_of(
        "reduce_window",
        shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    if not shape:  # the only window holds the only element, and XLA wants windows along some axis
        return computation(tree.unflatten(inits), tree.unflatten(xs))
    if any(map(is_symbolic_shape, window.padding)):
        xs, window = _padded(xs, inits, window)
    if is_symbolic_shape((*window.window_dimensions, *window.window_strides, *window.window_dilation)):
        return _gathered(tree, xs, inits, computation, window)
    body = _staged(computation, tree, xs)
    known = _known(body, inits)
    if known is not None:
        return tree.unflatten([bind(known, (xs[0],), window.params())])
    check_starts("reduce_window", inits, xs)
    outs = bind(reduce_window_p, (*xs, *inits), {"jaxpr": body, "consts": (), **window.params()})
    return tree.unflatten(outs)


def _padded(xs, inits, window):
    """The arrays padded with the initial values; XLA's own padding takes only known widths."""
    widths = [(low, high, d - 1) for (low, high), d in zip(window.padding, window.base_dilation)]
    n = len(widths)
    xs = [pad(x, i, widths) for x, i in zip(xs, inits)]
    return xs, window._replace(padding=((0, 0),) * n, base_dilation=(1,) * n)


def _gathered(tree, xs, inits, computation, window):
    """The reduction of windows whose sizes or steps are symbolic; XLA's own windows take only numbers.

    Each axis becomes two, over the windows and within a window, of which the second is reduced.
    """
    xs, window = _padded(xs, inits, window)
    counts = window.result_shape(xs[0].aval.shape)
    within = []
    for axis, (m, k, s, d) in enumerate(zip(counts, *window[:2], window.window_dilation)):
        if (k, s, d) != (1, 1, 1):
            place = axis + len(within)
            within.append(place + 1)
            xs = [_windows(x, place, m, k, s, d) for x in xs]
    return reduce(tree.unflatten(xs), tree.unflatten(inits), computation, within)


def _windows(x, axis: int, count, size, stride, dilation):
    """An array with two axes in place of one: over the windows, and within a window."""
    if type(count) is int and count == 1 and type(dilation) is int and dilation == 1:
        return expand_dims(slice_in_dim(x, 0, size, axis=axis), (axis,))
    window, within = [broadcasted_iota("int32", (count, size), i) for i in (0, 1)]
    places = add(mul(window, as_array(stride)), mul(within, as_array(dilation)))
    shape = x.aval.shape
    numbers = GatherDimensionNumbers(
        offset_dims=tuple([i if i < axis else i + 1 for i in range(len(shape)) if i != axis]),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = [1 if i == axis else n for i, n in enumerate(shape)]
    return gather(x, expand_dims(places, (2,)), numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def _staged(computation, tree, xs):
    """The computation as a program on scalars."""
    flat = flat_body("reduce_window", computation, treedef_tuple((tree, tree)))
    scalars = [make_aval((), x.dtype) for x in xs]
    body, consts = flat.stage_open([*scalars, *scalars])
    if consts:
        raise ValueError(
            f"reduce_window: the computation captures {len(consts)} array value(s) from outside, which a "
            "reduction cannot take. Write the values as Python numbers."
        )
    _check_results(flat.out_tree, body.out_avals, tree, scalars)
    return body


def _known(body, inits):
    """The primitive for a computation that is one operation, started from its identity."""
    found = _KNOWN.get(single_operation(body, inits) or "")
    if found is None:
        return None
    dtype = inits[0].dtype
    return found if dtype.kind != "b" and np.asarray(found.identity(dtype), dtype) == inits[0].host else None
