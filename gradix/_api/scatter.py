"""`scatter_apply`: windows of an array replaced by a function of themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix._ops.basis import zeros
from gradix._ops.indexing.scatter import bind_scatter, scatter_p
from gradix._ops.operands import arrays
from gradix._transforms.staging import stage

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Size
    from gradix._ops.indexing.gather_dimension_numbers import GatherScatterMode, ScatterDimensionNumbers


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[Size] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with `func` applied to the elements of windows, once for each window they lie in.

    Args:
        operand: an array.
        scatter_indices: integers, index vectors along the last axis.
        func: a function of one scalar array that returns one of the same dtype; it may not use
            traced values.
        dimension_numbers: a `ScatterDimensionNumbers`, which says which axes correspond.
        update_shape: the shape that updates would have; it gives the sizes of the windows.
        indices_are_sorted: a promise that the index vectors are sorted.
        unique_indices: a promise that no element is in two windows.
        mode: what to do with windows that reach outside, as for `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `func` uses a traced value, or returns another shape or dtype.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_apply(lax.iota("float32", 3), lax.full((1, 1), 2), lax.square, one, update_shape=(1,))
        Array([0., 1., 4.], dtype=float32)
    """
    operand, indices = arrays("scatter_apply", operand, scatter_indices)
    dtype = operand.aval.dtype
    program = _combiner(func, make_aval((), dtype))
    updates = zeros(make_aval(tuple(update_shape), dtype))
    return bind_scatter(
        scatter_p,
        operand,
        indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
        jaxpr=program,
    )


def _combiner(func, scalar):
    """The program `(old, update) -> func(old)`; it is closed if the function captures arrays."""
    jaxpr, consts = stage(lambda old, update: list(arrays("scatter_apply", func(old))), [scalar, scalar])
    if any(isinstance(c, Tracer) for c in consts):
        raise TypeError(
            "scatter_apply: func uses a traced value from outside. Pass a function of the element only, or "
            "compute with x[indices] and write the result with x.at[indices].set(...)."
        )
    out = jaxpr.outvars[0].aval
    if out.shape or out.dtype != scalar.dtype:
        raise TypeError(f"scatter_apply: func must return a scalar of the operand's dtype {scalar.dtype}, got {out}.")
    return ClosedJaxpr(jaxpr, consts) if consts else jaxpr
