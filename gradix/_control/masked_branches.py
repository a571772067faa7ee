"""Branches that each mapped example chooses: run where some example takes them, on inputs of such an example.

Under vmap every branch runs for all examples at once and the results are selected. A loop in a
branch need not end on the values of an example that did not take it, and a costly branch nobody
takes is run in vain.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, is_differentiable, move_axis, zeros
from gradix._ops.convert import convert
from gradix._ops.indexing.dynamic_slicing import dynamic_slice_p
from gradix._ops.markers import stop_gradient_p
from gradix._ops.reductions import argmax_p, reduce_or_p
from gradix._ops.select import select_n_p
from gradix._transforms.batch import batch_jaxpr
from gradix._transforms.staging import stage_closed

INDEX = np.dtype("int32")


def is_costly(closed: ClosedJaxpr) -> bool:
    """Whether the program loops or calls a library, itself or in a program it holds."""
    found = closed.memo.get("costly")
    if found is None:
        found = closed.memo["costly"] = any(_is_costly(eqn) for eqn in closed.jaxpr.eqns)
    return found


def _is_costly(eqn) -> bool:
    # Elementwise work is cheaper done for all examples: XLA fuses it with the selection
    if eqn.primitive.costly:
        return True
    held = [x for p in eqn.params.values() for x in (p if isinstance(p, tuple) else (p,))]
    return any(is_costly(x) for x in held if isinstance(x, ClosedJaxpr))


def run_where_taken(choose, axis, branch: ClosedJaxpr, taken, args, in_axes) -> list:
    """The results of `branch` for all examples, their axis in front; zeros if no example takes it.

    Args:
        choose: the primitive that runs one of two programs.
        taken: bool[size], which examples take the branch. The others are given the inputs of the
            first that does.
    """
    mapped, _ = batch_jaxpr(
        branch,
        axis,
        tuple([None if a is None else 0 for a in in_axes]),
        (0,) * len(branch.out_avals),
    )
    first = bind(argmax_p, [taken], {"axes": (0,), "index_dtype": INDEX})
    inputs = [
        x if a is None else _own_or_first(move_axis(x, a, 0), taken, first)
        for x, a in zip(args, in_axes)
    ]
    nothing = mapped.memo.get("nothing")
    if nothing is None:
        nothing = mapped.memo["nothing"] = stage_closed(
            lambda *_: [zeros(a) for a in mapped.out_avals], mapped.in_avals
        )
    some = convert(bind(reduce_or_p, [taken], {"axes": (0,)}), INDEX)
    return bind(choose, [some, *inputs], {"branches": (nothing, mapped)})


def _own_or_first(x, taken, first):
    """One operand of all examples, in front: its own value where taken, elsewhere that of the first who does."""
    shape = x.aval.shape
    origin = [zeros(make_aval((), INDEX))] * (len(shape) - 1)
    row = bind(dynamic_slice_p, [x, first, *origin], {"slice_sizes": (1, *shape[1:])})
    if is_differentiable(row.aval):
        row = bind(stop_gradient_p, [row], {})
    row = broadcast_in_dim(row, shape, tuple(range(len(shape))))
    return bind(select_n_p, [broadcast_in_dim(taken, shape, (0,)), row, x], {})
