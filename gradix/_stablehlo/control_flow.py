"""Loops, branches and barriers, and values in them that are summands over a mesh."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._stablehlo.types import TOKEN
from gradix._stablehlo.writer import Value


def while_loop(em, init, cond: Callable, body: Callable, ordered: bool = False) -> list[Value]:
    """Loop while `cond(*carry)` gives true; both functions may use outer values.

    `ordered` carries the ordering token through, for bodies with ordered effects.
    """
    carry = [*init, em.ordering_token()] if ordered else list(init)
    avals = [v.aval for v in carry]
    kept: list[bool] = []
    if any(map(_summed, avals)) and em.is_divided:
        kept = [em.is_zero(v) for v in carry]
        carry, cond, body = _with_sums(em, avals, kept, carry, cond, body)
    cond_ = (lambda *xs: cond(*xs[:-1])) if ordered else cond
    turn = em.with_token(body) if ordered else body
    em.loops += 1
    with em.named("while/cond"):
        test = em.region(avals, cond_)
    with em.named("while/body"):
        regions = test, em.region(avals, turn)
    em.loops -= 1
    found = em.take_token(em.ops("while", avals, *carry, regions=regions), ordered)
    return _as_parts(em, found, avals, kept) if kept else found


def _with_sums(em, avals, kept, carry, cond, body) -> tuple:
    """A loop that carries summands.

    XLA adds up summands where a loop begins, but not after its steps. So those that begin as
    zeros are `kept`, and others are added up after each step.
    """

    def parts(fn):
        return lambda *xs: fn(*_as_parts(em, xs, avals, kept))

    return (_as_whole(em, carry, avals, kept), parts(cond), lambda *xs: _as_whole(em, parts(body)(*xs), avals, kept))


def case(em, index: Value, branches, out_avals, ordered: bool = False) -> list[Value]:
    """Run the branch numbered `index` (an int32 scalar; out of range runs the last).

    Branches have no arguments.
    """
    outs = [*out_avals, TOKEN] if ordered else list(out_avals)
    before = em.ordering_token() if ordered else None
    regions = []
    for i, branch in enumerate(branches):
        em.token = before if ordered else em.token
        with em.named(f"cond/branch_{i}_fun"):
            if any(map(_summed, out_avals)) and em.is_divided:
                branch = partial(_ending_in_sums, em, branch, out_avals)
            regions.append(em.region((), em.returning_token(branch) if ordered else branch))
    found = em.take_token(em.ops("case", outs, index, regions=regions), ordered)
    return _as_parts(em, found, out_avals, [True] * len(found)) if em.is_divided else found


def _ending_in_sums(em, branch: Callable, out_avals) -> list[Value]:
    return _as_whole(em, branch(), out_avals, [True] * len(out_avals))


def optimization_barrier(em, values) -> list[Value]:
    """The values, which the compiler computes before their uses and does not merge."""
    avals = [v.aval for v in values]
    if not em.is_divided:
        return em.ops("optimization_barrier", avals, *values)
    kept = [True] * len(avals)
    given = _as_whole(em, values, avals, kept)
    return _as_parts(em, em.ops("optimization_barrier", avals, *given), avals, kept)


# -- summands ---------------------------------------------------------------------------------------


def is_zero(em, x: Value) -> bool:
    """Whether a value is known to be zeros."""
    while x.definition is not None and x.definition[0] in ("broadcast_in_dim", "constraint"):
        x = x.definition[1]
    found = [em._constants.get((f"dense<{zero}>", x.type)) for zero in ("0.0", "0")]
    return any(v is not None and v.name == x.name for v in found)


def as_summands(em, x: Value, mesh, names, axis: int | None = None) -> Value:
    """`x` as a sum along mesh axes: the first device of each row has it, the others have zeros.

    With an `axis` that is divided over these mesh axes, each device has its own part of it.

    It is written as a sum over a leading axis that is divided over these mesh axes, which XLA
    leaves to be finished.
    """
    plain = make_aval(x.aval.shape, x.aval.dtype, False)
    lead = prod([mesh.shape[a] for a in names])
    wide = make_aval((lead, *plain.shape), plain.dtype, False)
    place = make_aval(wide.shape, np.dtype("int32"))
    number = em.op("iota", place, attrs="iota_dimension = 0 : i64")
    holder = em.constant(0, place)
    if axis is not None:
        along = em.op("iota", place, attrs=f"iota_dimension = {axis + 1} : i64")
        holder = em.op("divide", place, along, em.constant(plain.shape[axis] // lead, place))
    first = em.compare(number, holder, "EQ")
    rows = em.broadcast_in_dim(x, wide, range(1, wide.ndim))
    rows = em.select(first, rows, em.constant(0, wide))
    spec = PartitionSpec(tuple(names), *[UNCONSTRAINED] * plain.ndim)
    rows = em.constrained(rows, mesh, spec)
    zero = em.constant(0, make_aval((), plain.dtype, False))
    return em.reduce([rows], [zero], (0,), [plain], "add")[0]


def added_up(em, x: Value, aval) -> Value:
    """`x`, added up if values of the type `aval` are summands."""
    return _as_whole(em, [x], [aval], [False])[0] if em.is_divided else x


def in_parts(em, x: Value, aval) -> Value:
    """`x`, made a summand if values of the type `aval` are."""
    return _as_parts(em, [x], [aval], [False])[0] if em.is_divided else x


def _as_whole(em, values, avals, kept) -> list[Value]:
    """The values, added up where their types say that they are summands, unless `kept`."""
    return [
        v if s is None else em.constrained(v, s.mesh, s.spec if k else PartitionSpec(*s.spec))
        for v, s, k in zip(values, map(_summed, avals), kept)
    ]


def _as_parts(em, values, avals, kept) -> list[Value]:
    """The values, made summands again where their types say so, unless `kept`."""
    out = []
    for v, s, k in zip(values, map(_summed, avals), kept):
        if s is not None:
            names = [a for a in s.mesh.axis_names if a in s.spec.unreduced]
            v = em.constrained(v if k else em.as_summands(v, s.mesh, names), s.mesh, s.spec)
        out.append(v)
    return out


def _summed(aval):
    """The division of a type that says its values are summands; else None."""
    division = getattr(aval, "division", None)
    return division if division is not None and division.spec.unreduced else None
