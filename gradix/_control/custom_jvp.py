"""`custom_jvp_call_p`: a call of a function for which the user defined the forward-mode rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._base.errors import UnexpectedTracerError
from gradix._base.lazy import lazy_module
from gradix._control.inner_programs import dependent
from gradix._control.rules_with_refs import jvp_through, stage_ruled
from gradix._core.array import as_array
from gradix._core.aval import same_types
from gradix._core.current_trace import set_current_trace
from gradix._core.jaxpr import axis_names, no_debug
from gradix._core.operators import Array
from gradix._core.primitive import Inlining, MeshTraits, Primitive
from gradix._core.trace import Tracer, bind, state
from gradix._ops.basis import is_differentiable, tangent_aval, to_axis, zeros
from gradix._transforms.batch import AxisData, batch_jaxpr
from gradix._transforms.jvp import JVPTrace, JVPTracer
from gradix._transforms.staging import eval_closed, give_back

_captured = lazy_module("gradix._control.captured")
_wrapped = lazy_module("gradix._core.wrapped_functions")  # for interpreters of libraries


def _as_function(closed) -> Any:
    """A program as a function from arrays to a list of arrays, for interpreters of libraries."""
    return _wrapped.WrappedFun(lambda *args: eval_closed(closed, *map(as_array, args)))


class RuledCall(Primitive):
    """A call of the program `call_jaxpr` for which the user defined a rule."""

    multiple_results = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    effectful = True
    is_call = True
    inlining = Inlining(on_tapes=True)
    named = True

    def bind(self, *args, subfuns=(), **params):
        """Apply the program `call_jaxpr`; `subfuns` are the same as functions."""
        return super().bind(*args, **params)

    def get_bind_params(self, params) -> dict:
        """The parameters of an equation as `bind` takes them, with the function as `subfuns[0]`."""
        return {**params, "subfuns": (_as_function(params["call_jaxpr"]),)}

    def abstract(self, *avals, call_jaxpr, **_):
        return call_jaxpr.out_avals

    def effects(self, params):
        return params["call_jaxpr"].effects

    def names(self, params):
        return axis_names(params["call_jaxpr"].effects)

    def dependent(self, marks, params, smooth):
        # the user's rule may return a nonzero derivative where that of the program is zero
        return dependent(params["call_jaxpr"], tuple(marks), False)

    def run(self, args, params):
        return eval_closed(params["call_jaxpr"], *args)

    def lower(self, em, outs, *args, call_jaxpr, **_):
        return em.inline(call_jaxpr.jaxpr, call_jaxpr.consts, args)


class CustomJVPCall(RuledCall):
    """A call of `call_jaxpr` with the rule `jvp(primals, tangents) -> (outs, tangents)` on lists.

    The first `num_consts` operands are values that the function captured; the rule does not get
    them. The rule gets the next `num_static` operands, but these must have no tangents.
    """

    def bind(self, *args, subfuns=(), call_jaxpr=None, **params):
        """Apply the program `call_jaxpr`, or the function `subfuns[0]` with the rule `subfuns[1]`."""
        if call_jaxpr is not None:
            return super().bind(*args, call_jaxpr=call_jaxpr, **params)
        function, jvp = subfuns

        def rule(primals, tangents):
            outs = [as_array(x) for x in jvp.call_wrapped(*primals, *instantiated(primals, tangents))]
            n = len(outs) // 2
            return outs[:n], outs[n:]

        def flat(*xs):
            return [as_array(x) for x in function.call_wrapped(*xs)]

        return call_custom_jvp(flat, rule, [as_array(a) for a in args], "custom_jvp", no_debug)

    def bind_with_trace(self, trace, args, avals, params):
        """As `bind`, in `trace`."""
        with set_current_trace(trace):
            return self.bind(*args, **params)

    def hand_to(self, trace, args, params):
        interpret = getattr(trace, "process_custom_jvp_call", None)
        if interpret is None:
            return trace.process_primitive(self, args, params)
        n, k = params["num_consts"], len(args)

        def rule(*both):
            outs, tangents = params["jvp"](list(both[n:k]), list(both[k + n :]))
            return [*outs, *instantiated(outs, tangents)]

        function = _as_function(params["call_jaxpr"])
        return interpret(self, function, _wrapped.WrappedFun(rule), args, symbolic_zeros=False)

    def jvp(self, primals, tangents, *, call_jaxpr, jvp, num_consts, name, num_static=0, symbolic_zeros=False, **_):
        if any(t is not None for t in tangents[: num_consts + num_static]):
            raise closed_over(name, "custom_jvp", next(p for p, t in zip(primals, tangents) if t is not None))
        given = tangents[num_consts:]
        outs, ts = jvp(primals[num_consts:], given if symbolic_zeros else instantiated(primals[num_consts:], given))
        check_types(name, "JVP rule", outs, call_jaxpr.out_avals)
        return outs, ts

    def batch(self, size, args, axes, *, call_jaxpr, jvp, num_consts, **params):
        axis = axis_of(size)
        n_out = len(call_jaxpr.out_avals)
        mapped, where = mapped_call(call_jaxpr, axis, axes)
        in_axes = axes[num_consts:]

        def mapped_jvp(primals, tangents):
            present = [t is not None for t in tangents]
            t_axes = [
                a if is_differentiable(p.aval) else None for p, a, there in zip(primals, in_axes, present) if there
            ]
            zero: list[bool] = []
            outs, out_axes = _captured.batch_rule(
                lambda *xs: _flat_rule(jvp, present, xs, zero),
                axis,
                [*primals, *[t for t in tangents if t is not None]],
                [*in_axes, *t_axes],
            )
            outs = [
                o if a is w is None else to_axis(axis.size, o, a, 0)
                for o, a, w in zip(outs, out_axes, [*where, *where])
            ]
            return outs[:n_out], [None if gone else t for t, gone in zip(outs[n_out:], zero)]

        params.update(call_jaxpr=mapped, jvp=mapped_jvp, num_consts=num_consts)
        return bind(self, args, params), where

    def show(self, params):
        return {
            "name": params["name"],
            "call_jaxpr": params["call_jaxpr"],
            "jvp": getattr(params["jvp"], "__name__", "jvp"),
            "symbolic_zeros": params.get("symbolic_zeros", False),
        }


custom_jvp_call_p = CustomJVPCall("custom_jvp_call")


def _flat_rule(jvp, present, xs, zero: list | None = None):
    """A rule from arrays to arrays; `zero` gets for each tangent whether it is a symbolic zero."""
    n = len(present)
    given = iter(xs[n:])
    outs, tangents = jvp(xs[:n], [next(given) if there else None for there in present])
    if zero is not None:
        zero[:] = [t is None for t in tangents]
    return [*outs, *[zeros(tangent_aval(o.aval)) if t is None else t for o, t in zip(outs, tangents)]]


def axis_of(size):
    """The batch axis as an `AxisData`, where a batch rule may have been given its size alone."""
    from_int = isinstance(size, (int, np.integer))
    return AxisData(None, size) if from_int else size


def mapped_call(call_jaxpr, axis, axes) -> tuple:
    """The mapped program of a call with rules, and the batch axis of each of its results.

    All results are mapped, unless the call is so only by the name of the axis, over which it
    communicates, and none of them depends on the example.
    """
    n_out = len(call_jaxpr.out_avals)
    if all(a is None for a in axes):
        mapped, found = batch_jaxpr(call_jaxpr, axis, tuple(axes))
        if all(a is None for a in found):
            return mapped, [None] * n_out
    return batch_jaxpr(call_jaxpr, axis, tuple(axes), (0,) * n_out)[0], [0] * n_out


def instantiated(primals, tangents) -> list:
    """Tangents as a user's rule gets them: None becomes an array of zeros, float0 for integers."""
    return [zeros(tangent_aval(p.aval)) if t is None else t for p, t in zip(primals, tangents)]


def closed_over(name: str, kind: str, tracer) -> Exception:
    return UnexpectedTracerError(
        f"Detected differentiation of the {kind} function '{name}' with respect to a value it closes over or has in "
        f"nondiff_argnums, of type {tracer.aval}: its rule does not give that derivative. Pass the value as an "
        "argument."
    )


def check_types(name: str, rule: str, outs, avals) -> None:
    """Raise if a rule returns other types than the function."""
    got = [o.aval for o in outs]
    if not same_types(got, avals):
        raise TypeError(
            f"The {rule} of the function '{name}' must produce primal outputs of the shapes and dtypes "
            f"of the function's, {[str(a) for a in avals]}, but got {[str(a) for a in got]}."
        )


def check_closed(name: str, kind: str, trace, values) -> None:
    """Raise if a result of a rule has a tangent: the rule has closed over a traced value."""
    for v in values:
        if type(v) is JVPTracer and v._trace is trace:
            raise closed_over(name, kind, v)


def top_trace(args):
    """The trace that will interpret an operation on these values; None when they are concrete."""
    top = state.stage
    for a in args:
        if isinstance(a, Tracer) and (top is None or a._trace.level > top.level):
            top = a._trace
    return top


def is_deeper(x, trace) -> bool:
    """Whether a value belongs to a transformation inside of the one of `trace`."""
    return isinstance(x, Tracer) and x._trace.level > trace.level


def _rule_of_both(jvp, symbolic_zeros: bool):
    """A rule on lists as a function from primals and tangents to results and their tangents."""

    def rule(*both):
        n = len(both) // 2
        tangents = [None if symbolic_zeros and not isinstance(t, Array) else t for t in both[n:]]
        outs, ts = jvp(list(both[:n]), tangents)
        return [*outs, *instantiated(outs, ts)]

    return rule


def _explicit(function, jvp, primals, tangents, trace) -> tuple:
    """Function and rule with the values from inside of `trace` that they capture as operands.

    Returns both, and these values, which come before the other operands.
    """
    avals = [p.aval for p in primals]
    present = [t is not None for t in tangents]
    both = [*avals, *[t.aval for t in tangents if t is not None]]
    rule = lambda *xs: _flat_rule(jvp, present, xs)  # noqa: E731
    more = _captured.captured([(function, avals), (rule, both)], trace)

    def explicit(primals, tangents):
        own = tangents[len(more) :]
        present = [t is not None for t in own]
        rule = _captured.with_captured(lambda *xs: _flat_rule(jvp, present, xs), more)
        found = rule(*primals, *[t for t in own if t is not None])
        n = len(found) // 2
        return found[:n], found[n:]

    return _captured.with_captured(function, more), explicit, more


def call_custom_jvp(
    function, jvp, args, name: str, debug, num_static: int = 0, *, symbolic_zeros: bool = False
) -> list:
    """Call a flat function that has a user's forward-mode rule, in the trace of its arguments.

    The first `num_static` arguments must have no tangents. With `symbolic_zeros`, the rule gets
    None for a tangent of zero. On concrete arguments the function runs; in forward or reverse mode
    the rule runs directly, without staging.
    """
    top = top_trace(args)
    if top is None or not args:  # a rule is about arguments, of which there may be none but refs
        return function(*args)
    interpret = getattr(top, "process_custom_jvp_call", None)
    if interpret is not None:  # of a trace that a library defines
        return interpret(
            custom_jvp_call_p,
            _wrapped.WrappedFun(function),
            _wrapped.WrappedFun(_rule_of_both(jvp, symbolic_zeros)),
            args,
            symbolic_zeros=symbolic_zeros,
        )
    if isinstance(top, JVPTrace):
        primals, tangents = zip(*map(top.split, args)) if args else ((), ())
        if any(t is not None for t in tangents[:num_static]):
            raise closed_over(name, "custom_jvp", args[0])
        ts = list(tangents) if symbolic_zeros else instantiated(primals, tangents)
        outs, ts = jvp(list(primals), given := ts)
        if any(is_deeper(v, top) for v in (*outs, *ts)):
            function, jvp, more = _explicit(function, jvp, primals, given, top)
            args, n = [*more, *args], num_static + len(more)
            return call_custom_jvp(function, jvp, args, name, debug, n, symbolic_zeros=symbolic_zeros)
        check_closed(name, "custom_jvp", top, [*outs, *ts])
        return [o if t is None else JVPTracer(top, o, t) for o, t in zip(outs, ts)]
    closed, consts, refs, sealing = stage_ruled(function, args, debug)
    if sealing is not None:
        jvp = sealing.jvp(jvp)
    if refs:
        jvp = jvp_through(jvp, refs, name)
    outs = bind(
        custom_jvp_call_p,
        [*consts, *[r.read() for r in refs], *args],
        {
            "call_jaxpr": closed,
            "jvp": jvp,
            "num_consts": len(consts),
            "name": name,
            "num_static": len(refs) + num_static,
            "symbolic_zeros": symbolic_zeros,
        },
    )
    outs = give_back(refs, outs)
    return outs if sealing is None else sealing.open(outs)
