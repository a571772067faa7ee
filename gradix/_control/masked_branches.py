"""Branches of `cond` under vmap that run only if at least one example takes them.

Under vmap every branch runs for all examples at once, and the results are selected. But a loop in a
branch need not end for an example that does not take the branch, and a costly branch that no
example takes need not run. So such a branch gets inputs of examples that take it, in all places.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr, holds
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
    return holds(closed.jaxpr, _is_costly)


def _is_costly(eqn) -> bool:
    # elementwise work is cheaper done for all examples, because XLA fuses it with the selection
    return eqn.primitive.costly


def run_where_taken(choose, axis, branch: ClosedJaxpr, taken, args, in_axes) -> list:
    """The results of `branch` for all examples, batch axis first; zeros if no example takes it.

    Args:
        choose: the primitive that runs one of two programs.
        taken: bool[size]; it says which examples take the branch. The other examples get the
            inputs of the first example that takes it.
    """
    mapped, _ = batch_jaxpr(
        branch, axis, tuple([None if a is None else 0 for a in in_axes]), (0,) * len(branch.out_avals)
    )
    first = bind(argmax_p, [taken], {"axes": (0,), "index_dtype": INDEX})
    inputs = [x if a is None else _own_or_first(move_axis(x, a, 0), taken, first) for x, a in zip(args, in_axes)]
    nothing = mapped.memo.get("nothing")
    if nothing is None:
        nothing = mapped.memo["nothing"] = stage_closed(
            lambda *_: [zeros(a) for a in mapped.out_avals], mapped.in_avals
        )
    some = convert(bind(reduce_or_p, [taken], {"axes": (0,)}), INDEX)
    return bind(choose, [some, *inputs], {"branches": (nothing, mapped)})


def _own_or_first(x, taken, first):
    """An operand with batch axis first; examples that do not take the branch get row `first`."""
    shape = x.aval.shape
    origin = [zeros(make_aval((), INDEX))] * (len(shape) - 1)
    row = bind(dynamic_slice_p, [x, first, *origin], {"slice_sizes": (1, *shape[1:])})
    if is_differentiable(row.aval):
        row = bind(stop_gradient_p, [row], {})
    row = broadcast_in_dim(row, shape, tuple(range(len(shape))))
    return bind(select_n_p, [broadcast_in_dim(taken, shape, (0,)), row, x], {})
