"""The elements of given rank, found without sorting where that is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import entries, undivided
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import to_axis
from gradix._ops.creation import broadcasted_iota
from gradix._ops.operands import as_operand
from gradix._ops.shape import reshape
from gradix._ops.sorting.comparators import fetch
from gradix._ops.sorting.sort import host_keys, sort_p, take_rows_along

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.operators import Array

_INT = np.dtype("int32")


class Ranked(Primitive):
    """`sort(x, 0)[ranks[i, j], j]` for two matrices with as many columns; ranks count from 0."""

    def abstract(self, x, ranks):
        if x.ndim != 2 or ranks.ndim != 2 or x.shape[1] != ranks.shape[1]:
            raise TypeError(f"{self.name} takes two matrices with equally many columns, got {x} and {ranks}.")
        if x.dtype in dtypes.COMPLEX or ranks.dtype != _INT:
            raise TypeError(f"{self.name} takes real elements and int32 ranks, got {x} and {ranks}.")
        return make_aval(ranks.shape, x.dtype, x.weak_type)

    def divide(self, mesh, avals, outs, params):
        for a in avals:
            undivided(self.name, a, (0,), "the axis to sort")
        (_, mine), (_, other) = map(entries, avals)
        return [(None, mine if mine is not None else other)]

    def host(self, x, ranks):
        (key,) = host_keys(x)
        return np.sort(key, 0, "stable")[ranks, np.arange(x.shape[1])].astype(x.dtype, copy=False)

    def jvp(self, primals, tangents):
        x, ranks = primals
        y, t = bind(self, primals, {}), tangents[0]
        if t is None:
            return y, None
        rows = broadcasted_iota(_INT, x.aval.shape, 0)
        _, order = bind(sort_p, (x, rows), {"dimension": 0, "is_stable": True, "num_keys": 1})
        return y, take_rows_along(t, take_rows_along(order, ranks))

    def batch(self, size, args, axes):
        x, ranks = [to_axis(size, v, a, 2) for v, a in zip(args, axes)]
        flat = [reshape(v, (v.aval.shape[0], v.aval.shape[1] * size)) for v in (x, ranks)]
        return reshape(bind(self, flat, {}), ranks.aval.shape), 2

    def lower(self, em, out, x, ranks):
        if not out.size:
            return em.constant(0, out)
        (ordered,) = em.lower(sort_p, [x.aval], x, dimension=0, is_stable=True, num_keys=1)
        return fetch(em, ordered, ranks, 0)


ranked_p = Ranked("ranked")


def ranked(x: ArrayLike, ranks: Any) -> Array:
    """`sort(x, 0)[ranks[i, j], j]` of a matrix; its derivative is that of the elements found.

    Example:
        >>> import numpy as np
        >>> from gradix.lax.order import ranked
        >>> ranked(np.array([[3.0], [1.0], [2.0]], "float32"), np.array([[1]], "int32"))
        Array([[2.]], dtype=float32)
    """
    return bind(ranked_p, (as_operand("ranked", x), as_operand("ranked", ranks)), {})
