"""Whether a program of parts uses a summand so that all devices have the same cotangent of it."""

from __future__ import annotations

from gradix._control.call import jit_p
from gradix._core.jaxpr import ClosedJaxpr, Literal
from gradix._ops.arithmetic import add_p, sub_p
from gradix._ops.collectives import pvary_p, summand_p

NONE: frozenset = frozenset()
_SUMMING = ("psum", "psum_invariant", "reduce_scatter")


def marks_of_results(closed: ClosedJaxpr, marks: list, checked: bool) -> list | None:
    """Over which mesh axes each result of a linear program is still to be summed.

    Args:
        closed: the program of one device's part.
        marks: for each argument the axes over which it is one summand of a value.
        checked: whether types tell what else varies; if not, other operands count as if it did.

    Returns:
        None if some operation is not a sum: then the cotangents of the summands would differ from
        device to device.
    """
    known = dict(zip(closed.jaxpr.invars, marks))
    for eqn in closed.jaxpr.eqns:
        mine = [NONE if isinstance(v, Literal) else known.get(v, NONE) for v in eqn.invars]
        if not any(mine):
            continue
        out = _marks_after(eqn, mine, checked)
        if out is None:
            return None
        known.update(zip(eqn.outvars, out))
    return [NONE if isinstance(v, Literal) else known.get(v, NONE) for v in closed.jaxpr.outvars]


def check_summands(closed: ClosedJaxpr, marks: list, checked: bool) -> None:
    """Check that a program does nothing with summands elementwise that is not a sum of them.

    Args:
        closed: the program of one device's part.
        marks: for each argument the axes over which it is one summand of a value.
        checked: whether types tell what else varies.

    Raises:
        NotImplementedError: it does.
    """
    known = dict(zip(closed.jaxpr.invars, marks))
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive is summand_p:
            known[eqn.outvars[0]] = frozenset(eqn.params["axes"])
            continue
        mine = [NONE if isinstance(v, Literal) else known.get(v, NONE) for v in eqn.invars]
        if not any(mine):
            continue
        out = _marks_after(eqn, mine, checked)
        if out is not None:
            known.update(zip(eqn.outvars, out))
        elif eqn.primitive.live == "elements" and all(mine):
            name, axes = eqn.primitive.name, sorted(map(str, frozenset().union(*mine)))
            raise NotImplementedError(
                f"unreduced rule for {name} is not implemented: {eqn.invars[0].aval.str_short()} is "
                f"still to be summed over {axes}, and {name} of parts is not a part of {name}. Sum it "
                "first, with lax.psum."
            )


def _marks_after(eqn, mine: list, checked: bool) -> list | None:
    """The marks of an operation's results; None if it does more than add."""
    prim, params = eqn.primitive, eqn.params
    if prim is jit_p:
        return marks_of_results(params["jaxpr"], mine, checked)
    held = frozenset().union(*mine)
    if any(m and m != held for m in mine):
        return None
    if prim.name in _SUMMING:
        if params.get("axis_index_groups") is not None:
            return None
        return [held - frozenset(params["axes"])] * len(eqn.outvars)
    if prim in (add_p, sub_p, pvary_p, summand_p):
        return [held]
    others = [v for v, m in zip(eqn.invars, mine) if not m]
    if any(not isinstance(v, Literal) and (v.aval.vma & held or not checked) for v in others):
        return None
    is_factor = prim.mesh.sums == "product" and len(others) == 1
    is_kept = prim.mesh.sums == "kept" or prim.live == "moves"
    return [held] * len(eqn.outvars) if is_factor or is_kept else None
