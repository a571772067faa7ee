"""Staging: run a function on typed stand-ins and record what it does as a jaxpr."""

from __future__ import annotations

from typing import Any

from gradix._base import config as _config, source
from gradix._base.lazy import lazy_module
from gradix._base.name_stack import NameStack, current_names
from gradix._base.recursion_room import room_to_trace
from gradix._core.array import ArrayImpl, as_array, is_number
from gradix._core.aval import seen, within
from gradix._core.dtypes import ExtendedDType
from gradix._core.effects import no_effects
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, no_debug
from gradix._core.operators import Array
from gradix._core.refs import LocalRef, Ref
from gradix._core.trace import Trace, Tracer, bind, new_level, state, typed_results

_scope = lazy_module("gradix._core.dimensions.scope")
_counted = lazy_module("gradix._transforms.counted")


class StagingTracer(Tracer):
    """Stands for a value of the program being recorded."""

    __slots__ = ("_var",)

    def __init__(self, trace, var):
        self._trace, self._var, self.aval = trace, var, var.aval


StagingTracer.__name__ = "JitTracer"  # as it shows itself


class StagingTrace(Trace):
    """Records each primitive as an equation; values from outside become literals or constants."""

    refs: dict[Ref, LocalRef] = {}  # an instance makes its own for the first ref

    # scalars made while a program is traced to be shown, each with its trace; None in other programs
    made_scalars: dict[int, tuple[Array, Trace]] | None = None

    def __init__(self, debug: DebugInfo = no_debug, is_shown: bool = False):
        self.debug = debug
        self.invars: list[Var] = []
        self.eqns: list[JaxprEqn] = []
        self.consts: dict[int, tuple[Var, Array]] = {}
        outer = state.stage
        # copies of the NumPy arrays from outside, so that each is copied once
        known = getattr(outer, "captured", None)
        self.captured: dict = {} if known is None else known
        made = getattr(outer, "made_scalars", None)
        if is_shown or made is not None:
            self.made_scalars = {} if made is None else made

    def new_arg(self, aval) -> StagingTracer:
        var = Var(aval if aval.place is None else within(aval))
        self.invars.append(var)
        return StagingTracer(self, var)

    def local(self, ref: Ref) -> LocalRef:
        """The local ref for a mutable array from outside.

        Its first use adds an input for its value.
        """
        found = self.refs.get(ref)
        if found is None:
            var = Var(ref.aval.inner_aval)
            if not self.refs:
                self.refs = {}
            found = self.refs[ref] = LocalRef(ref, var, StagingTracer(self, var))
        return found

    def operand(self, a):
        if type(a) is StagingTracer and a._trace is self:
            return a._var
        if not isinstance(a, Array):
            a = as_array(a)
        aval = a.aval
        if aval.place is not None:
            aval = within(aval)
        if type(a) is ArrayImpl and not aval.shape and not isinstance(aval.dtype, ExtendedDType):
            made = self.made_scalars
            if made is None or is_number(a) or made.get(id(a), (None, None))[1] is self:
                return Literal(a, aval)
        found = self.consts.get(id(a))
        if found is None:
            found = self.consts[id(a)] = (Var(aval), a)
        return found[0]

    def interpret(self, prim, args, params):
        invars = [a._var if type(a) is StagingTracer and a._trace is self else self.operand(a) for a in args]
        out = prim.abstract(*[v.aval for v in invars], **params)
        if seen.meshes and (seen.divisions or state.manual):
            out = typed_results(prim, [v.aval for v in invars], params, out)
        effects = prim.effects(params) if prim.effectful else no_effects
        place = state.place or source.current(4)
        if prim.multiple_results:
            outvars = [Var(a) for a in out]
            self.eqns.append(JaxprEqn(prim, invars, outvars, params, effects, place))
            return [StagingTracer(self, v) for v in outvars]
        var = Var(out)
        self.eqns.append(JaxprEqn(prim, invars, [var], params, effects, place))
        return StagingTracer(self, var)

    def close(self, outs) -> tuple[Jaxpr, list]:
        """The finished jaxpr and the values of its constvars."""
        outvars = [self.operand(o) for o in outs]
        constvars = [v for v, _ in self.consts.values()]
        consts = [c for _, c in self.consts.values()]
        return Jaxpr(constvars, self.invars, outvars, self.eqns, debug_info=self.debug), consts

    def place_of(self, tracer) -> str:
        return _maker(tracer._var, self.eqns)

    def describe(self, tracer) -> str:
        """A sentence that names the arguments of the function on which the tracer depends."""
        names = self.debug.arg_names
        if not self.debug.name:
            return ""
        needed = _depends_on(tracer._var, self.eqns)
        used = [names[i] for i, v in enumerate(self.invars) if v in needed and i < len(names)]
        where = f"while tracing the function {self.debug.name}"
        where += f" at {self.debug.place}" if self.debug.place else ""
        if not used:
            return f"This value became traced {where}; it depends on none of the function's arguments."
        values = "the values" if len(used) > 1 else "the value"
        return f"This value became traced {where}. It depends on {values} of {_listed(used)}."


def _maker(var, eqns) -> str:
    eqn = next((e for e in eqns if any(v is var for v in e.outvars)), None)
    return f"{eqn.source}, by '{eqn.primitive.name}'" if eqn is not None else ""


def _listed(names) -> str:
    shown = [f"the argument {n}" for n in names[:5]]
    if len(names) > 5:
        shown.append(f"{len(names) - 5} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def _depends_on(var, eqns) -> set:
    needed = {var}
    for eqn in reversed(eqns):
        if not needed.isdisjoint(eqn.outvars):
            needed.update(v for v in eqn.invars if type(v) is not Literal)
    return needed


def stage(function, avals, debug: DebugInfo = no_debug) -> tuple[Jaxpr, list]:
    """The jaxpr of a `function` on lists of arrays, and the values of its constvars.

    Raises:
        NotImplementedError: `function` writes to a mutable array from outside.
    """
    trace = StagingTrace(debug)
    with room_to_trace(debug.name), new_level(trace, stage=True):
        outs = _run_on_arguments(trace, function, avals, debug)
        refs = trace.refs
        jaxpr, consts = trace.close(outs)
    return _with_values_read(refs, jaxpr, consts) if refs else (jaxpr, consts)


def _run_on_arguments(trace: StagingTrace, function, avals, debug: DebugInfo) -> list:
    if _config.state.jax_no_tracing:
        raise RuntimeError(
            f"the function {debug.name or 'of an operation'} would be traced, but no_tracing is set. Call it "
            "once with arguments of these types before, or leave the context of gradix.no_tracing()."
        )
    try:
        return function(*[trace.new_arg(a) for a in avals])
    except Exception as e:
        _scope.tell_scopes(e, avals, debug.arg_names)
        if seen.counts is not None:
            _counted.tell(e)
        if isinstance(e, TypeError):
            _scope.tell_integer(e)
        raise


def _with_values_read(refs, jaxpr: Jaxpr, consts) -> tuple[Jaxpr, list]:
    """The program with the values that it read of mutable arrays as constants."""
    for local in refs.values():
        if local.is_written:
            raise only_returned(local.ref, jaxpr)
    return (
        jaxpr.replace(constvars=[*jaxpr.constvars, *[r.var for r in refs.values()]], effects=jaxpr.effects),
        [*consts, *[r.read() for r in refs]],
    )


def only_returned(ref: Ref, jaxpr: Jaxpr) -> NotImplementedError:
    return NotImplementedError(
        f"{ref._name()} is written to in {jaxpr.debug_info.name or 'a function'}, which is traced where "
        "values can only be returned: a function given to a solver or a reduction, or mapped over devices "
        "by pmap or shard_map. Return the value, and write it outside; of a generator of random numbers "
        "pass keys, rng.key((n,)), one for each device."
    )


def closed_over(closed: ClosedJaxpr, refs: list[tuple[Ref, bool]]) -> ClosedJaxpr:
    """A program that takes the values of `refs` last, with these values as constants.

    Raises:
        NotImplementedError: one of the refs is marked, because the program writes to it.
    """
    jaxpr, n = closed.jaxpr, len(closed.jaxpr.invars) - len(refs)
    for ref, is_written in refs:
        if is_written:
            raise only_returned(ref, jaxpr)
    constvars = [*jaxpr.constvars, *jaxpr.invars[n:]]
    return ClosedJaxpr(
        jaxpr.replace(constvars=constvars, invars=jaxpr.invars[:n]), [*closed.consts, *[ref.read() for ref, _ in refs]]
    )


def stage_with_refs(
    function, avals, debug: DebugInfo = no_debug, is_shown: bool = False
) -> tuple[Jaxpr, list, list[LocalRef]]:
    """As `stage`, for a function that may use mutable arrays from outside; also returns their refs.

    The jaxpr takes the values of these arrays after its other inputs. After its other results it
    returns the last values of those that were written.

    Args:
        is_shown: the user gets the program, so that scalars which the function captures are its
            constants, as other arrays are. Programs that are only run hold them as literals,
            which compilers know the value of.
    """
    trace = StagingTrace(debug, is_shown)
    with room_to_trace(debug.name), new_level(trace, stage=True):
        outs = _run_on_arguments(trace, function, avals, debug)
        refs = list(trace.refs.values())
        trace.invars += [r.var for r in refs]
        jaxpr, consts = trace.close([*outs, *[r.value for r in refs if r.is_written]])
    return jaxpr, consts, refs


def with_refs(jaxpr: Jaxpr, consts, refs: list[LocalRef], order, give_back: bool = True) -> tuple[Jaxpr, list]:
    """Reorder a program of `stage_with_refs`: it takes the values of the refs in `order` first.

    It also returns their last values first, unless `give_back` is False. The values that it reads
    of other refs become constants.
    """
    own = {r.ref: r.var for r in refs}
    n, n_out = len(jaxpr.invars) - len(refs), len(jaxpr.outvars) - sum([r.is_written for r in refs])
    ins = [own.get(ref) or Var(ref.aval.inner_aval) for ref in order]
    last = dict(zip([r.ref for r in refs if r.is_written], jaxpr.outvars[n_out:]))
    read = [r for r in refs if r.ref not in order]
    outs = [last.get(ref, v) for ref, v in zip(order, ins)] if give_back else []
    whole = Jaxpr(
        [*jaxpr.constvars, *[r.var for r in read]],
        [*ins, *jaxpr.invars[:n]],
        [*outs, *jaxpr.outvars[:n_out]],
        jaxpr.eqns,
        jaxpr.effects,
        jaxpr.debug_info,
    )
    return whole, [*consts, *[r.ref.read() for r in read]]


def written(*programs) -> list[Ref]:
    """The refs that are written according to any of these lists of `LocalRef`, each once."""
    return list(dict.fromkeys([r.ref for refs in programs for r in refs if r.is_written]))


def give_back(refs: list[Ref], results: list) -> list:
    """Write the leading results, which are last values of `refs`, to them.

    It returns the other results.
    """
    for ref, value in zip(refs, results):
        ref.write(value)
    return results[len(refs) :]


def given_refs(refs: list[tuple[Ref, bool]], params: dict) -> list[tuple[Ref, bool]]:
    """The refs that a called program uses, and whether it writes to them, as the caller sees them."""
    outside = dict(params.get("refs", ()))
    return [(outside.get(ref, ref), is_written) for ref, is_written in refs]


def take_back(refs: list[tuple[Ref, bool]], results: list) -> list:
    """Write the last results, which are last values of the marked refs, to them.

    It returns the other results.
    """
    marked = [ref for ref, is_written in refs if is_written]
    n = len(results) - len(marked)
    give_back(marked, results[n:])
    return results[:n]


def stage_open(function, avals, debug: DebugInfo = no_debug) -> tuple[ClosedJaxpr, list]:
    """As `stage`, with the constants made leading inputs: `closed(*consts, *args)`."""
    return hoist(*stage(function, avals, debug))


def hoist(jaxpr: Jaxpr, consts) -> tuple[ClosedJaxpr, list]:
    """The program with its constants as leading inputs, and those constants."""
    if not consts:
        return ClosedJaxpr(jaxpr, ()), []
    opened = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
    return ClosedJaxpr(opened, ()), consts


def stage_closed(function, avals, debug: DebugInfo = no_debug) -> ClosedJaxpr:
    """As `stage`, for a function known to capture nothing that is traced."""
    return ClosedJaxpr(*stage(function, avals, debug))


def eval_jaxpr(jaxpr: Jaxpr, consts, *args) -> list:
    """Run a program in the current trace."""
    if seen.counts is not None and _counted.defined(jaxpr):
        if state.stage is None:  # its sizes are known to compiled programs only
            return seen.counts.call(jaxpr, consts, args)
        jaxpr = _counted.for_evaluation(jaxpr)
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    if state.stage is None:
        _run(jaxpr.eqns, env)
    else:
        before = state.place
        try:
            _run_in_place(jaxpr.eqns, env, current_names() if before is None else before.name_stack)
        finally:
            state.place = before
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def _run(eqns, env: dict) -> None:
    for eqn in eqns:
        out = bind(eqn.primitive, [v.val if type(v) is Literal else env[v] for v in eqn.invars], eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out))
        else:
            env[eqn.outvars[0]] = out


def _run_in_place(eqns, env: dict, names: NameStack) -> None:
    """As `_run`, staging each equation with its own source place, within the scopes `names`."""
    for eqn in eqns:
        state.place = eqn.source if not names or eqn.source is None else eqn.source.within(names)
        _run((eqn,), env)


def eval_closed(closed: ClosedJaxpr, *args) -> list:
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Any:
    """The program as a function from arrays to a list of arrays; given arguments, its results.

    Example:
        >>> import gradix
        >>> from gradix.extend import core
        >>> core.jaxpr_as_fun(gradix.make_jaxpr(lambda x: (x, 2 * x))(1.0))(3.0)
        [Array(3., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True)]
    """
    if args:
        return eval_closed(closed_jaxpr, *map(as_array, args))
    return lambda *xs: eval_closed(closed_jaxpr, *map(as_array, xs))
