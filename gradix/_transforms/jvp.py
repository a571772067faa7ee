"""Forward mode: carry a tangent beside each primal."""

from __future__ import annotations

from gradix._base.name_stack import transforming
from gradix._core.jaxpr import ClosedJaxpr, inherit
from gradix._core.primitive import Primitive
from gradix._core.trace import Interpreter, Tracer, concrete, new_level, state
from gradix._ops.basis import instantiate
from gradix._transforms.repeats import of_higher_order, share
from gradix._transforms.staging import eval_closed, stage

_AS_JVP = Primitive.linearize


class JVPTracer(Tracer):
    """A primal and its tangent, which is never a symbolic zero.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import ad
        >>> def f(x):
        ...     print(type(x) is ad.JVPTracer, x.primal, x.tangent)
        ...     return x * x
        >>> gradix.jvp(f, (3.0,), (1.0,))
        True 3.0 1.0
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """

    __slots__ = ("primal", "tangent")

    def __init__(self, trace, primal, tangent):
        self._trace, self.primal, self.tangent, self.aval = trace, primal, tangent, primal.aval

    def _origin(self) -> str:
        return self.primal._origin() if isinstance(self.primal, Tracer) else super()._origin()

    def _made(self) -> str:
        return self.primal._made() if isinstance(self.primal, Tracer) else ""

    def _described(self) -> str:
        if isinstance(self._trace, LinearizeTrace):
            kind = self.tangent.aval.str_short(short_dtypes=True)
            return f"GradTracer(primal={self.primal}, typeof(tangent)={kind})"
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"

    def _numbers(self) -> str:
        if concrete(self.tangent) is None:
            return f"{self.primal!r} with a gradient"
        return f"{self.primal!r} with tangent {self.tangent!r}"

    @property
    def _inner(self):
        return self.primal

    # Booleans and integers have no derivative, so Python may read the primal. `float` and
    # `__array__` stay errors, as they would lose the tangent.
    def __bool__(self):
        return bool(self.primal)

    def __int__(self):
        return int(self.primal)

    def item(self, *args):
        return self.primal.item(*args)


class JVPTrace(Interpreter):
    """Applies the jvp rule of each primitive; a result with zero tangent is returned untraced.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import ad
        >>> def f(x):
        ...     print(isinstance(x._trace, ad.JVPTrace), x._trace.split(x))
        ...     return x * x
        >>> _ = gradix.jvp(f, (3.0,), (1.0,))
        True (Array(3., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """

    doing = "differentiating"
    # whether a tape records the tangents: rules that have a form for it keep primal work out of the record
    is_recorded = False

    def interpret(self, prim, args, params):
        if self.done is not None and prim.inlining.in_high_orders and state.stage is not None:
            return eval_closed(params["jaxpr"], *args)
        primals, tangents = [], []
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
            else:
                primals.append(a)
                tangents.append(None)
        rule = prim.linearize if self.is_recorded and type(prim).linearize is not _AS_JVP else prim.jvp
        out, t = rule(primals, tangents, **params)
        if prim.multiple_results:
            return [o if d is None else JVPTracer(self, o, d) for o, d in zip(out, t)]
        return out if t is None else JVPTracer(self, out, t)

    def split(self, x):
        """The primal and tangent of a value; its tangent is None when zero."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        return x, None


class LinearizeTrace(JVPTrace):
    """As JVPTrace, where a tape records the tangents."""

    is_recorded = True


def jvp(function, primals, tangents, trace: JVPTrace | None = None, named: bool = False) -> tuple[list, list]:
    """Outputs and output tangents of a function on lists; a tangent of None is zero, in and out.

    `named` adds the name of the transformation to the source places of staged equations. It is set
    for functions of users, not for programs derived from others.
    """
    trace = JVPTrace() if trace is None else trace
    trace.function = function
    share(primals, trace, *[t._trace for t in tangents if isinstance(t, Tracer)])
    with new_level(trace):
        args = [x if t is None else JVPTracer(trace, x, t) for x, t in zip(primals, tangents)]
        pairs = [trace.split(o) for o in called(function, args, "jvp", named)]
    return [p for p, _ in pairs], [t for _, t in pairs]


def called(function, args, name: str, named: bool) -> list:
    """Call a function.

    With `named`, equations staged in it carry the name of the transformation.
    """
    if not named or state.stage is None:
        return function(*args)
    with transforming(name):
        return function(*args)


def jvp_jaxpr(closed: ClosedJaxpr, nonzero: tuple, instantiated=False) -> tuple[ClosedJaxpr, tuple]:
    """The forward-mode derivative of the program `closed`, and which tangents it returns.

    It takes the primals and the tangents of the inputs marked in `nonzero`, and returns the primal
    results and the tangents of those marked in the returned tuple. `instantiated`, True or one flag
    per result, asks for tangents even where they are zero.
    """
    key = ("jvp", nonzero, instantiated)
    found = closed.memo.get(key)
    if found is not None:
        return found
    n, out_nonzero = len(nonzero), []

    def both(*args):
        inherit(args, [*closed.jaxpr.invars, *(v for v, nz in zip(closed.jaxpr.invars, nonzero) if nz)])
        given = iter(args[n:])
        tangents = [next(given) if nz else None for nz in nonzero]
        ys, ts = jvp(lambda *xs: eval_closed(closed, *xs), args[:n], tangents)
        force = [instantiated] * len(ys) if isinstance(instantiated, bool) else instantiated
        ts = [instantiate(t, y.aval) if f else t for y, t, f in zip(ys, ts, force)]
        out_nonzero[:] = [t is not None for t in ts]
        return [*ys, *(t for t in ts if t is not None)]

    avals = closed.in_avals
    jaxpr, consts = stage(both, [*avals, *(a for a, nz in zip(avals, nonzero) if nz)], closed.jaxpr.debug_info)
    result = of_higher_order(ClosedJaxpr(jaxpr, consts), closed), tuple(out_nonzero)
    closed.memo[key] = result
    return result
