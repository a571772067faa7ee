"""`true_places_p`: the places at which rows of booleans are true, in order and at the front, and their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.divisions import undivided
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import sub
from gradix._ops.basis import reduce_sum, to_front
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
    """For each row along the last axis the first `size` places of true elements, then zeros; and how many are true.

    A row is read once for both. With None for `size`, the number of true elements is the only result.
    """

    multiple_results = True

    def abstract(self, mask, *, size, dtype):
        if mask.dtype != np.bool_ or not mask.ndim:
            raise TypeError(f"{self.name} takes booleans with at least one axis, got {mask}.")
        lead = mask.shape[:-1]
        return [make_aval(s, dtype) for s in (() if size is None else ((*lead, size),)) + (lead,)]

    def host(self, mask, *, size, dtype):
        count = np.asarray(np.count_nonzero(mask, axis=-1), dtype)
        if size is None:
            return [count]
        out = np.zeros((*mask.shape[:-1], size), dtype)
        for row, to in zip(mask.reshape(-1, mask.shape[-1]), out.reshape(-1, size)):
            found = np.flatnonzero(row)[:size]
            to[: found.size] = found
        return [out, count]

    def batch(self, axis, args, axes, *, size, dtype):
        mask = to_front(axis, args[0], axes[0])
        outs = bind(self, (mask,), {"size": size, "dtype": dtype})
        return outs, [0] * len(outs)

    def dce(self, used, eqn):
        if eqn.params["size"] is None or used[0]:
            return eqn
        return eqn.replace(outvars=eqn.outvars[1:], params={**eqn.params, "size": None})

    def divide(self, mesh, avals, outs, params):
        whole = undivided(self.name, avals[0], (avals[0].ndim - 1,), "the axis of the places")
        return [whole[: a.ndim] for a in outs]

    def expand(self, mask, *, size, dtype):
        shape = mask.aval.shape
        last = len(shape) - 1
        count = reduce_sum(convert_element_type(mask, dtype), (last,))
        if size is None:
            return [count]
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
        return [scatter(zeros, expand_dims(slot, (last + 1,)), places, numbers, mode="drop"), count]


true_places_p = TruePlaces("true_places")


def true_places(mask: ArrayLike, size: int, dtype: np.dtype) -> list[Array]:
    """The first `size` places at which a row of booleans is true, then zeros; and how many are true, as integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix._ops.indexing.true_places import true_places
        >>> true_places(jnp.array([False, True, True]), 3, jnp.dtype("int32"))
        [Array([1, 2, 0], dtype=int32), Array(2, dtype=int32)]
    """
    return bind(true_places_p, (mask,), {"size": size, "dtype": dtype})
