"""What a loop keeps of each iteration for reverse mode: not what is cheaply computed again.

The derivatives of `tanh` need 1 + y and 1 - y, for example, of which y is enough to keep.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal, SuspectVar, Var
from gradix._transforms.dce import dce_jaxpr
from gradix._transforms.linearize import Split
from gradix._transforms.repeats import of_higher_order

# Operations that XLA fuses into whatever reads their results, and that take less time than reading
# an array that was kept.
_CHEAP = frozenset(
    {
        *("add", "add_any", "sub", "mul", "neg", "max", "min", "abs", "sign", "square"),
        *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select_n"),
        *("convert_element_type", "broadcast_in_dim", "reshape", "squeeze", "real", "imag", "conj"),
    }
)


_MOST_STEPS = 4  # cheap operations in a row between what is kept and a residual


def thinned(cut: Split, is_free: Callable[[str, int], bool]) -> Split:
    """The same split, with fewer or smaller residuals where cheap operations make them of others.

    Args:
        cut: a program that was split for reverse mode.
        is_free: says of ("in", i), an input of the known program, or ("out", i), a result of it,
            whether it is kept anyway, or is the same in each iteration.
    """
    jaxpr = cut.known.jaxpr
    every = {"in": jaxpr.invars, "out": jaxpr.outvars}
    residuals = [every[kind][i] for kind, i in cut.sources]
    if cut.known.consts or len(set(residuals)) < len(residuals):
        return cut
    free = {
        v
        for kind, variables in every.items()
        for i, v in enumerate(variables)
        if type(v) is not Literal and is_free(kind, i)
    }
    roots, makers = _roots(jaxpr, free)
    own = [v for v in residuals if type(v) is not Literal and v not in free]
    chosen = _chosen(own, roots)
    chosen |= _widened(own, chosen, roots, makers)
    return _with_less(cut, residuals, chosen, roots, makers) if chosen else cut


def _roots(jaxpr: Jaxpr, free: set) -> tuple[dict, dict]:
    """For each variable those of which cheap operations make it, without free ones; their makers."""
    roots: dict = {v: frozenset() if v in free else frozenset((v,)) for v in jaxpr.invars}
    makers: dict = {}
    steps: dict = {}
    for eqn in jaxpr.eqns:
        operands = [v for v in eqn.invars if type(v) is not Literal]
        step = 1 + max([steps.get(v, 0) for v in operands], default=0)
        is_cheap = eqn.primitive.name in _CHEAP and not eqn.effects and step <= _MOST_STEPS
        for v in eqn.outvars:
            if v in free:
                roots[v] = frozenset()
            elif is_cheap:
                roots[v] = frozenset().union(*[roots[w] for w in operands])
                makers[v], steps[v] = eqn, step
            else:
                roots[v] = frozenset((v,))
    return roots, makers


def _chosen(residuals: list, roots: dict) -> set:
    """The residuals to compute again: those of groups whose roots are smaller than they are."""
    groups: list[tuple[set, list]] = []  # variables, and the residuals with any of them as a root
    for v in residuals:
        shared, members, others = set(roots[v]), [v], []
        for group in groups:
            if group[0].isdisjoint(shared):
                others.append(group)
            else:
                shared |= group[0]
                members += group[1]
        groups = [*others, (shared, members)]
    return {
        v
        for shared, members in groups
        if sum(map(_size, shared)) < sum(map(_size, members))
        for v in members
        if v not in shared
    }


def _widened(residuals: list, chosen: set, roots: dict, makers: dict) -> set:
    """The other residuals that cheap operations make of one smaller value, which becomes their root.

    Comparisons that were converted to floats are such residuals: a quarter of their bytes is enough.
    """
    found = set()
    for v in residuals:
        if v in chosen:
            continue
        least = source = v
        while source in makers:
            operands = [w for w in makers[source].invars if type(w) is not Literal]
            if len(operands) != 1:
                break
            (source,) = operands
            least = min(least, source, key=_size)
        if 0 < _size(least) < _size(v):
            found.add(v)
            if least not in chosen:
                roots[v] = frozenset((least,))
                makers.pop(least, None)
    return found


def _size(v) -> int:
    """The bytes of a variable; 0 where its size is not a number."""
    shape = v.aval.shape
    return prod(shape) * v.aval.dtype.itemsize if all(type(n) is int for n in shape) else 0


def _with_less(cut: Split, residuals: list, chosen: set, roots: dict, makers: dict) -> Split:
    """The split whose linear program computes the chosen residuals from their roots."""
    jaxpr, linear = cut.known.jaxpr, cut.linear.jaxpr
    inside = dict(zip(residuals, linear.invars))
    suspects = {w for v in chosen if type(inside[v]) is SuspectVar for w in roots[v]}
    needed, again = dict.fromkeys(v for v in residuals if v in chosen), []
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed and makers.get(v) is eqn for v in eqn.outvars):
            again.append(eqn)
            needed.update(dict.fromkeys(v for v in eqn.invars if type(v) is not Literal))
    kept = [v for v in residuals if v not in chosen]
    kept += [v for v in needed if v not in makers and v not in inside]
    for v in needed:
        if v not in inside:
            inside[v] = (SuspectVar if v in suspects else Var)(v.aval)
    places = {v: ("in", i) for i, v in enumerate(jaxpr.invars)}
    outvars = list(jaxpr.outvars[: cut.n_out])
    for i, v in enumerate(outvars):
        places.setdefault(v, ("out", i))
    for v in kept:
        if v not in places:
            places[v] = ("out", len(outvars))
            outvars.append(v)
    eqns = [
        e.replace(
            invars=[v if type(v) is Literal else inside[v] for v in e.invars],
            outvars=[inside.get(v) or Var(v.aval) for v in e.outvars],
        )
        for e in reversed(again)
    ]
    known = dce_jaxpr(jaxpr.replace(outvars=outvars), keep_inputs=True)[0]
    smaller = linear.replace(
        invars=[*[inside[v] for v in kept], *linear.invars[len(residuals) :]], eqns=[*eqns, *linear.eqns]
    )
    return Split(
        of_higher_order(ClosedJaxpr(known, cut.known.consts), cut.known),
        of_higher_order(ClosedJaxpr(smaller, cut.linear.consts), cut.linear),
        [places[v] for v in kept],
        cut.nonzero,
        cut.out_nonzero,
        cut.n_out,
    )
