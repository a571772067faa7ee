"""Helpers for loops and branches: dependence in inner programs, reordering, and eager runs."""

from __future__ import annotations

from gradix._base import config as _config
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl
from gradix._core.aval import seen
from gradix._core.dimensions.expression import is_known_at_most
from gradix._core.divisions import with_axis, without_axis
from gradix._core.dtypes import INEXACT
from gradix._core.effects import is_ordered
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._transforms.staging import eval_closed

_options = _config.state
_counted = lazy_module("gradix._transforms.counted")


def split(xs, *sizes) -> list[list]:
    """Split a list into consecutive parts of these sizes, and the rest."""
    out, at = [], 0
    for n in sizes:
        out.append(list(xs[at : at + n]))
        at += n
    return [*out, list(xs[at:])]


def row(aval):
    """The type of one row of a stacked array: what one step of a scan reads."""
    return without_axis(aval, 0)


def stacked(length, aval):
    return with_axis(aval, length, 0)


def is_any_ordered(effects) -> bool:
    return any(is_ordered(e) for e in effects)


# -- dependence ------------------------------------------------------------------------------------


def dependent(closed: ClosedJaxpr, marked: tuple, smooth: bool = False) -> list[bool]:
    """Which results may depend on the marked inputs.

    With `smooth`, a dependence counts only if its derivative may be nonzero.
    """
    key = ("dependent", marked, smooth)
    found = closed.memo.get(key)
    if found is None:
        live = _reached(closed.jaxpr, marked, smooth)
        found = closed.memo[key] = [type(v) is not Literal and v in live for v in closed.jaxpr.outvars]
    return list(found)


def _reached(jaxpr: Jaxpr, marked, smooth: bool) -> set:
    live = {v for v, m in zip(jaxpr.invars, marked) if m and not (smooth and v.aval.dtype not in INEXACT)}
    sizes: set | None = None  # the sizes that depend on marked inputs
    if seen.counts is not None and not smooth and _counted.defined(jaxpr):
        sizes = set()
    for eqn in jaxpr.eqns:
        flags = tuple([type(v) is not Literal and v in live for v in eqn.invars])
        if sizes and not sizes.isdisjoint(_counted.used(eqn)):
            flags = (True,) * len(flags)
            live.update(eqn.outvars)
        if not any(flags) or (smooth and eqn.primitive.name == "stop_gradient"):
            continue
        if sizes is not None and eqn.primitive.defines_size:
            sizes.add(eqn.params["dim"])
        rule = eqn.primitive.dependent
        outs = [True] * len(eqn.outvars) if rule is None else rule(flags, eqn.params, smooth)
        live.update([v for v, d in zip(eqn.outvars, outs) if d and not (smooth and v.aval.dtype not in INEXACT)])
    return live


def carried(closed: ClosedJaxpr, marks, num_consts: int, num_carry: int, smooth: bool = False) -> list[bool]:
    """Which carries of a loop are marked in any step, where `marks` are those of the body's inputs.

    A result of the body that depends on marked inputs marks its carry in the next step.
    """
    consts, carry, rest = split(marks, num_consts, num_carry)
    while True:
        outs = dependent(closed, (*consts, *carry, *rest), smooth)
        joined = [a or b for a, b in zip(carry, outs)]
        if joined == carry:
            return carry
        carry = joined


# -- reordering ------------------------------------------------------------------------------------


def rearranged(closed: ClosedJaxpr, ins, outs=None) -> ClosedJaxpr:
    """The program with inputs and results picked by position.

    A type among `ins` stands for a further input, which the program ignores.
    """
    ins, outs = tuple(ins), None if outs is None else tuple(outs)
    key = ("rearranged", ins, outs)
    found = closed.memo.get(key)
    if found is None:
        jaxpr = closed.jaxpr
        invars = [jaxpr.invars[i] if isinstance(i, int) else Var(i) for i in ins]
        outvars = jaxpr.outvars if outs is None else [jaxpr.outvars[i] for i in outs]
        new = Jaxpr(jaxpr.constvars, invars, outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
        found = closed.memo[key] = ClosedJaxpr(new, closed.consts)
    return found


def with_inputs(closed: ClosedJaxpr, extra_outs) -> ClosedJaxpr:
    """The program that returns, after its results, the inputs at the positions `extra_outs`."""
    jaxpr = closed.jaxpr
    outvars = [*jaxpr.outvars, *(jaxpr.invars[i] for i in extra_outs)]
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info), closed.consts
    )


# -- eager runs ------------------------------------------------------------------------------------

_NEVER = 1 << 40
_ONE_RUN = 2000  # a run of at most this many equations takes far less time than a compilation
_ALL_RUNS = 20000  # after this many evaluated equations in all, compiling the program pays
_SMALL = 1 << 12  # programs on arrays of more elements run faster compiled


def work(closed: ClosedJaxpr) -> int:
    """The number of equations that a host run evaluates; huge if the program should be compiled."""
    found = closed.memo.get("work")
    if found is None:
        found = closed.memo["work"] = sum(map(_equation_work, closed.jaxpr.eqns)) + 1
    return found


def _equation_work(eqn: JaxprEqn) -> int:
    prim = eqn.primitive
    if prim.defines_size or not all(is_known_at_most(v.aval.size, _SMALL) for v in (*eqn.invars, *eqn.outvars)):
        return _NEVER
    if prim.work is not None:
        return prim.work(eqn.params)
    inner = eqn.params.get("call_jaxpr")
    if inner is not None:
        return work(inner)
    return 1 if prim.host is not None or (prim.run is not None and not prim.is_call) else _NEVER


def may_run(closed: ClosedJaxpr, cost: int) -> bool:
    """Whether a run of this cost may be on the host; the total cost of all runs is limited, too."""
    mode = getattr(_options, "gradix_eager", "auto")
    if mode != "auto":
        return mode == "host"
    spent = closed.memo.get("spent", 0) + cost
    if cost > _ONE_RUN or spent > _ALL_RUNS:
        return False
    closed.memo["spent"] = spent
    return True


def retyped(x, aval):
    """The array with its declared type, as a host run may give it another weak type."""
    if x.aval is aval or type(x) is not ArrayImpl:
        return x
    if x.aval.place is not None:  # moved inside, and a compiled run would have stayed
        return ArrayImpl(x.host, aval)
    return ArrayImpl(x._host, aval, x._buffer)


def evaluated(closed: ClosedJaxpr, args) -> list:
    """Run a program on concrete arrays."""
    return [retyped(o, a) for o, a in zip(eval_closed(closed, *args), closed.out_avals)]
