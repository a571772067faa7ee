"""How often a fusing compiler evaluates a value for one element of the result."""

from __future__ import annotations

from gradix._core.jaxpr import Jaxpr, Var


def most_evaluations(jaxpr: Jaxpr) -> int:
    """The most places at which the fused loop over a result evaluates one value of a program.

    A value that is read both in place and reversed is evaluated at two places, and so is what it
    depends on. So the number doubles with each such step, until a product or a loop writes its
    result to memory. Arguments are in memory.

    Example:
        >>> import gradix, gradix.numpy as np
        >>> def step(x):
        ...     return np.sin(x) + x[::-1]
        >>> [most_evaluations(gradix.make_jaxpr(f)(np.ones(3)).jaxpr) for f in (np.sin, step, lambda x: step(step(x)))]
        [1, 1, 2]
    """
    return _places(jaxpr, {})[1]


# `Primitive.live` of operations whose result elements depend on operand elements at the same place
_IN_PLACE = ("elements", "cases")


def is_fused(primitive) -> bool:
    """Whether each result element depends on one element of each operand, at whatever place."""
    return (
        primitive.live in _IN_PLACE
        or (primitive.rearranges or primitive.live == "moves")
        and primitive.identity is None
    )


def _places(jaxpr: Jaxpr, known: dict) -> tuple[list[int], int]:
    """How many places of each argument one result element reads, and the most of any value.

    `known` memoises this by program.
    """
    found = known.get(id(jaxpr))
    if found is not None:
        return found
    # places asked for by readers in place: their maximum
    same: dict[Var, int] = {v: 1 for v in jaxpr.outvars if type(v) is Var}
    # places asked for by readers elsewhere: their sum
    others: dict[Var, int] = {}
    most = 1
    for eqn in reversed(jaxpr.eqns):
        p = eqn.primitive
        places = max([same.get(v, 0) + others.get(v, 0) for v in eqn.outvars], default=0) or 1
        most = max(most, places)
        moves = False
        if p.is_call:
            inner, inside = _places(_program(eqn.params), known)
            most = max(most, places * inside)
            of_operands = [places * n for n in inner]
        elif is_fused(p):
            of_operands, moves = [places] * len(eqn.invars), p.live not in _IN_PLACE
        else:
            of_operands = [1] * len(eqn.invars)
        for v, n in zip(eqn.invars, of_operands):
            if type(v) is not Var:
                continue
            if moves and v.aval.size != 1:
                others[v] = others.get(v, 0) + n
            else:
                same[v] = max(same.get(v, 0), n)
    result = [same.get(v, 0) + others.get(v, 0) for v in jaxpr.invars], most
    known[id(jaxpr)] = result
    return result


def _program(params) -> Jaxpr:
    closed = params["jaxpr"] if "jaxpr" in params else params["call_jaxpr"]
    return getattr(closed, "jaxpr", closed)
