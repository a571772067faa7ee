"""What a policy of `checkpoint` keeps, also inside of branches, loops and programs of parts.

A program is run twice: first to save the values that the policy keeps, and then, for its
derivative, to take them in place of those that are computed again. Values inside of programs leave
these as further results, and come back as further operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gradix._base.name_stack import current_names
from gradix._control.call import jit_p
from gradix._control.cond import alike, cond_p
from gradix._control.scan import scan_p
from gradix._control.shard_map import shard_map_p, with_given_parts, with_kept_parts
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, fold
from gradix._core.primitive import Primitive
from gradix._core.trace import bind, bind_equation, state
from gradix._ops.basis import zeros
from gradix._transforms.staging import eval_closed, stage


class Saving:
    """Appends what the policy keeps to a list."""

    def __init__(self, saved: list):
        self.saved = saved

    def values(self, outs: list) -> list:
        self.saved.extend(outs)
        return outs

    def results(self, outs: list, n: int) -> list:
        """The first results, after the others, which are saved values, were kept."""
        self.saved.extend(outs[n:])
        return outs[:n]


class Resuming:
    """Takes what was saved in place of what is computed again, the equations of which are then dead."""

    def __init__(self, given: Iterator):
        self.given = given

    def values(self, outs: list) -> list:
        return [next(self.given) for _ in outs]

    def taken(self, count: int) -> list:
        return [next(self.given) for _ in range(count)]


def evaluate(closed: ClosedJaxpr, policy, args, keeper: Saving | Resuming) -> list:
    """Run a program with calls inlined; the keeper gets the results that the policy keeps.

    Calls that were given refs stay calls, which know these.
    """
    before = state.place
    names = current_names() if before is None else before.name_stack
    try:
        return _interpret(closed, policy, args, keeper, names)
    finally:
        state.place = before


def _interpret(closed: ClosedJaxpr, policy, args, keeper, names) -> list:
    def apply(eqn, operands):
        state.place = eqn.source.within(names) if names and eqn.source is not None else eqn.source
        if eqn.primitive is jit_p and "refs" not in eqn.params:
            return evaluate(eqn.params["jaxpr"], policy, operands, keeper)
        inside = _INSIDE.get(eqn.primitive) if policy is not None else None
        if inside is None:
            outs = bind_equation(eqn, operands)
        else:
            outs = inside(eqn.params, policy, operands, keeper)
        return keeper.values(outs) if policy is not None and _is_kept(policy, eqn) else outs

    return fold(closed.jaxpr, closed.consts, args, apply)


def _is_kept(policy, eqn) -> bool:
    """What the policy says of an equation; it finds parameters by the names that are printed, too."""
    told = {**eqn.params, **eqn.primitive.show(eqn.params)}
    return policy(eqn.primitive, *[v.aval for v in eqn.invars], **told)


# -- programs inside of programs -------------------------------------------------------------------


def saving_program(closed: ClosedJaxpr, policy) -> tuple[ClosedJaxpr, list]:
    """The program that returns what the policy keeps after its results, and the types of that."""
    key = ("saving", policy)
    found = closed.memo.get(key)
    if found is None:

        def function(*args):
            saved: list = []
            return [*evaluate(closed, policy, args, Saving(saved)), *saved]

        program = ClosedJaxpr(*stage(function, closed.in_avals, closed.jaxpr.debug_info))
        found = closed.memo[key] = program, program.out_avals[len(closed.out_avals) :]
    return found


def _resuming(closed: ClosedJaxpr, policy) -> ClosedJaxpr:
    """The program that takes what the policy kept after its operands."""
    key = ("resuming", policy)
    found = closed.memo.get(key)
    if found is None:
        n, saved = len(closed.in_avals), saving_program(closed, policy)[1]

        def function(*args):
            return evaluate(closed, policy, args[:n], Resuming(iter(args[n:])))

        staged = stage(function, [*closed.in_avals, *saved], closed.jaxpr.debug_info)
        found = closed.memo[key] = ClosedJaxpr(*staged)
    return found


def _branches(params: dict, policy, ins, keeper) -> list:
    """A choice: each branch saves in places of its own, and leaves zeros in those of the others."""
    branches = params["branches"]
    n_in, n_out = len(ins) - 1, len(branches[0].out_avals)
    kinds = [saving_program(b, policy)[1] for b in branches]
    places = [a for kind in kinds for a in kind]
    if not places:
        return bind(cond_p, ins, params)
    starts = [sum(map(len, kinds[:i])) for i in range(len(kinds))]

    def saving(i):
        def function(*args):
            outs = eval_closed(saving_program(branches[i], policy)[0], *args)
            before, after = starts[i], starts[i] + len(kinds[i])
            return [
                *outs[:n_out],
                *[zeros(a) for a in places[:before]],
                *outs[n_out:],
                *[zeros(a) for a in places[after:]],
            ]

        return function

    def resuming(i):
        def function(*args):
            own = args[n_in + starts[i] : n_in + starts[i] + len(kinds[i])]
            return eval_closed(_resuming(branches[i], policy), *args[:n_in], *own)

        return function

    is_saving = isinstance(keeper, Saving)
    make, more = (saving, []) if is_saving else (resuming, places)
    key = "branches", policy, is_saving, tuple(map(id, branches))
    found = branches[0].memo.get(key)
    if found is None:
        avals = [*branches[0].in_avals, *more]
        programs = alike([ClosedJaxpr(*stage(make(i), avals, b.jaxpr.debug_info)) for i, b in enumerate(branches)])
        found = branches[0].memo[key] = programs, branches
    if is_saving:
        return keeper.results(bind(cond_p, ins, {"branches": found[0]}), n_out)
    return bind(cond_p, [*ins, *keeper.taken(len(places))], {"branches": found[0]})


def _loop(params: dict, policy, ins, keeper) -> list:
    """A scan: what is kept of each step is a row of a further stacked result."""
    body = params["jaxpr"]
    program, kinds = saving_program(body, policy)
    if not kinds:
        return bind(scan_p, ins, params)
    if isinstance(keeper, Saving):
        return keeper.results(bind(scan_p, ins, {**params, "jaxpr": program}), len(body.out_avals))
    resumed = {**params, "jaxpr": _resuming(body, policy)}
    return bind(scan_p, [*ins, *keeper.taken(len(kinds))], resumed)


def _parts(params: dict, policy, ins, keeper) -> list:
    """A program of the parts on devices: what is kept of the parts is stacked over the axes it varies over."""
    body = params["jaxpr"]
    with shard_map_p.inside(params):
        program, kinds = saving_program(body, policy)
        if not kinds:
            return bind(shard_map_p, ins, params)
        n_in, n_out = len(ins), len(body.out_avals)
        saving, specs = with_kept_parts(program, n_out, params)
        resumed = None if isinstance(keeper, Saving) else with_given_parts(_resuming(body, policy), n_in)
    if resumed is None:
        outs = bind(shard_map_p, ins, {**params, "jaxpr": saving, "out_specs": (*params["out_specs"], *specs)})
        return keeper.results(outs, n_out)
    wide = {**params, "jaxpr": resumed, "in_specs": (*params["in_specs"], *specs)}
    return bind(shard_map_p, [*ins, *keeper.taken(len(kinds))], wide)


_INSIDE: dict[Primitive, Callable] = {cond_p: _branches, scan_p: _loop, shard_map_p: _parts}


def without_dead_inside(jaxpr: Jaxpr) -> Jaxpr:
    """The program with branches, loops and parts that compute only what their results need."""
    return jaxpr.replace(
        eqns=[e.primitive.dce([True] * len(e.outvars), e) if e.primitive in _INSIDE else e for e in jaxpr.eqns]
    )
