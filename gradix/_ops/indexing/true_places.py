"""`true_places_p`: the places at which rows of booleans are true, in order and at the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.divisions import undivided
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import sub
from gradix._ops.basis import to_front
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota, full
from gradix._ops.cumulative import cumsum
from gradix._ops.families import NonDifferentiable
from gradix._ops.indexing.gather_dimension_numbers import ScatterDimensionNumbers
from gradix._ops.indexing.scatter import scatter
from gradix._ops.select import select
from gradix._ops.shape import expand_dims

if TYPE_CHECKING:
    from gradix._core.annotations import Array, ArrayLike


class TruePlaces(NonDifferentiable, Primitive):
    """For each row along the last axis the first `size` places of true elements, and then zeros."""

    def abstract(self, mask, *, size, dtype):
        if mask.dtype != np.bool_ or not mask.ndim:
            raise TypeError(f"{self.name} takes booleans with at least one axis, got {mask}.")
        return make_aval((*mask.shape[:-1], size), dtype)

    def host(self, mask, *, size, dtype):
        out = np.zeros((*mask.shape[:-1], size), dtype)
        for row, to in zip(mask.reshape(-1, mask.shape[-1]), out.reshape(-1, size)):
            found = np.flatnonzero(row)[:size]
            to[: found.size] = found
        return out

    def batch(self, axis, args, axes, *, size, dtype):
        mask = to_front(axis, args[0], axes[0])
        return bind(self, (mask,), {"size": size, "dtype": dtype}), 0

    def divide(self, mesh, avals, outs, params):
        return [undivided(self.name, avals[0], (avals[0].ndim - 1,), "the axis of the places")]

    def expand(self, mask, *, size, dtype):
        shape = mask.aval.shape
        last = len(shape) - 1
        before = cumsum(convert_element_type(mask, dtype), last)
        slot = sub(before, full(shape, 1, dtype))
        slot = select(mask, slot, full(shape, np.iinfo(dtype).max, dtype))
        rows = tuple(range(last))
        numbers = ScatterDimensionNumbers(
            update_window_dims=(),
            inserted_window_dims=(last,),
            scatter_dims_to_operand_dims=(last,),
            operand_batching_dims=rows,
            scatter_indices_batching_dims=rows,
        )
        zeros = full((*shape[:-1], size), 0, dtype)
        places = broadcasted_iota(dtype, shape, last)
        return scatter(zeros, expand_dims(slot, (last + 1,)), places, numbers, mode="drop")


true_places_p = TruePlaces("true_places")


def true_places(mask: ArrayLike, size: int, dtype: np.dtype) -> Array:
    """The first `size` places at which a row of booleans is true, and then zeros, as integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix._ops.indexing.true_places import true_places
        >>> true_places(jnp.array([False, True, True]), 3, jnp.dtype("int32"))
        Array([1, 2, 0], dtype=int32)
    """
    return bind(true_places_p, (mask,), {"size": size, "dtype": dtype})
