"""Jaxprs: typed, functional, first-order programs with higher-order primitives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import count
from typing import Any

from gradix._base.lazy import lazy_module
from gradix._core import seams
from gradix._core.effects import NamedAxisEffect, no_effects

_display = lazy_module("gradix._core.display")
_counter = count()
HOIST_BYTES = 1024  # larger constants become arguments of compiled programs


class Var:
    """A name in a jaxpr, with its type.

    Example:
        >>> import gradix
        >>> from gradix.extend import core
        >>> program = gradix.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr
        >>> isinstance(program.invars[0], core.Var), program.invars[0].aval
        (True, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ("aval", "count")

    def __init__(self, aval):
        self.aval = aval
        self.count = next(_counter)

    def __repr__(self) -> str:
        return f"Var(id={self.count}):{self.aval.str_short()}"

    def __lt__(self, other) -> bool:
        return self.count < other.count


class DropVar(Var):
    """A result that is not used; it is printed as `_`.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> program = gradix.make_jaxpr(lambda x: gradix.lax.top_k(x, 1)[0])(gradix.numpy.ones(3))
        >>> [isinstance(v, core.DropVar) for v in program.eqns[0].outvars]
        [False, True]
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class SuspectVar(Var):
    """An input that may be infinite or NaN, such as a residual of a square root or a logarithm."""

    __slots__ = ()


def inherit(tracers, invars) -> None:
    """Mark tracers as suspect where the original program has a `SuspectVar` as input."""
    for x, v in zip(tracers, invars):
        if type(v) is SuspectVar and hasattr(x, "_var"):
            x._var.__class__ = SuspectVar


class Literal:
    """A scalar written into the program.

    Example:
        >>> import gradix
        >>> from gradix.extend import core
        >>> eqn, = gradix.make_jaxpr(lambda x: 2 * x)(1.0).eqns
        >>> [v.val for v in eqn.invars if isinstance(v, core.Literal)]
        [Array(2., dtype=float32, weak_type=True)]
    """

    __slots__ = ("val", "aval")

    def __init__(self, val, aval):
        self.val, self.aval = val, aval

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.str_short(True)}"


class JaxprEqnContext:
    """The context in which an equation was recorded: here only its XLA metadata.

    Options are stored in the equation's parameters, and name scopes in its source place.
    """

    __slots__ = ("xla_metadata",)
    compute_type = None
    manager = contextlib.nullcontext()

    def __init__(self, xla_metadata: dict[str, str] | None):
        self.xla_metadata = xla_metadata

    def __repr__(self) -> str:
        return f"JaxprEqnContext(xla_metadata={self.xla_metadata})"


class JaxprEqn:
    """One application of a primitive: `outvars = primitive[params] invars`.

    Example:
        >>> import gradix
        >>> eqn, = gradix.make_jaxpr(lambda x: 2 * x)(1.0).eqns
        >>> eqn.primitive.name, len(eqn.invars), eqn.outvars[0].aval
        ('mul', 2, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ("primitive", "invars", "outvars", "params", "effects", "source")

    def __init__(self, primitive, invars, outvars, params, effects=no_effects, source=None):
        self.primitive, self.invars, self.outvars = primitive, invars, outvars
        self.params, self.effects, self.source = params, effects, source

    source_info = property(lambda self: self.source)

    @property
    def ctx(self) -> JaxprEqnContext:
        """The context in which it was recorded; evaluate it again inside `with eqn.ctx.manager`."""
        return JaxprEqnContext((self.source.name_stack.tags or None) if self.source is not None else None)

    def replace(self, **changes) -> JaxprEqn:
        new = {k: getattr(self, k) for k in self.__slots__}
        new.update(changes)
        return JaxprEqn(**new)

    def __repr__(self) -> str:
        return seams.print_jaxpr(self)


def new_jaxpr_eqn(
    invars: Any, outvars: Any, primitive: Any, params: Any, effects: Any, source_info: Any = None, ctx: Any = None
) -> JaxprEqn:
    """An equation made of its parts; `ctx` is accepted and ignored.

    Example:
        >>> import gradix
        >>> from gradix import core, lax
        >>> program = gradix.make_jaxpr(lambda x: -x)(1.0).jaxpr
        >>> eqn = core.new_jaxpr_eqn(program.invars, program.outvars, lax.neg_p, {}, set())
        >>> eqn.primitive.name
        'neg'
    """
    return JaxprEqn(primitive, list(invars), list(outvars), params, effects, source_info)


class DebugInfo:
    """The names of a traced function and of its arguments, for messages.

    Args:
        traced_for: the transformation that traced the function.
        func_src_info: the name of the function, and " at " its file and line.
        arg_names: the names of the leaves of its arguments.
        result_paths: the names of the leaves of its results.

    Example:
        >>> import gradix
        >>> gradix.make_jaxpr(lambda x, y: x)(1.0, 2.0).jaxpr.debug_info.arg_names
        ('x', 'y')
    """

    __slots__ = ("name", "arg_names", "place", "result_paths", "_traced_for")

    def __init__(self, traced_for: str = "jit", func_src_info: str = "", arg_names=(), result_paths=()):
        self._traced_for, (self.name, _, self.place) = traced_for, func_src_info.partition(" at ")
        self.arg_names, self.result_paths = tuple(arg_names or ()), tuple(result_paths or ())

    @classmethod
    def of(cls, name: str, arg_names=(), place: str = "") -> DebugInfo:
        """The names of the function `name`, which stands at `place`."""
        return cls("jit", f"{name} at {place}" if place else name, arg_names)

    @property
    def traced_for(self) -> str:
        """The transformation that traced the function."""
        return getattr(self, "_traced_for", "jit")

    @property
    def func_src_info(self) -> str:
        """The name of the function, and where it stands."""
        return f"{self.name} at {self.place}" if self.place else self.name

    @property
    def func_name(self) -> str:
        """The name of the function."""
        return self.name

    @property
    def func_filename(self) -> str | None:
        """The file of the function."""
        return self.place.rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        """The line of its file where the function begins."""
        line = self.place.rpartition(":")[2]
        return int(line) if line.isdigit() else None


no_debug = DebugInfo()


class Jaxpr:
    """A program: `eqns` compute `outvars` from the inputs, `constvars` and then `invars`.

    Example:
        >>> import gradix
        >>> program = gradix.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr
        >>> len(program.invars), [eqn.primitive.name for eqn in program.eqns]
        (1, ['mul'])
    """

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "memo", "__weakref__")

    def __init__(self, constvars, invars, outvars, eqns, effects=None, debug_info=no_debug):
        self.constvars, self.invars, self.outvars, self.eqns = constvars, invars, outvars, eqns
        self.effects = join_effects(eqns) if effects is None else effects
        self.debug_info = debug_info
        self.memo: dict[Any, Any] = {}

    in_avals = property(lambda self: [v.aval for v in self.invars])
    out_avals = property(lambda self: [v.aval for v in self.outvars])

    def replace(self, **changes) -> Jaxpr:
        new = {k: getattr(self, k) for k in ("constvars", "invars", "outvars", "eqns", "debug_info")}
        new.update(changes)
        return Jaxpr(**new)

    def pretty_print(self, **options) -> str:
        return seams.print_jaxpr(self, **options)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _display.jaxpr(self)


class ClosedJaxpr:
    """A jaxpr with the values of its `constvars`.

    Example:
        >>> import gradix
        >>> program = gradix.make_jaxpr(lambda x: 2 * x)(1.0)
        >>> type(program).__name__, program.in_avals
        ('ClosedJaxpr', [ShapedArray(float32[], weak_type=True)])
    """

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts=()):
        assert len(consts) == len(jaxpr.constvars), (len(consts), len(jaxpr.constvars))
        self.jaxpr, self.consts = jaxpr, list(consts)

    in_avals = property(lambda self: [v.aval for v in self.jaxpr.invars])
    out_avals = property(lambda self: [v.aval for v in self.jaxpr.outvars])
    literals = property(lambda self: self.consts)
    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    eqns = property(lambda self: self.jaxpr.eqns)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    effects = property(lambda self: self.jaxpr.effects)
    memo = property(lambda self: self.jaxpr.memo)

    def replace(self, *, jaxpr=None, consts=None) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    def pretty_print(self, **options) -> str:
        return self.jaxpr.pretty_print(**options)

    def __str__(self) -> str:
        return self.jaxpr.pretty_print()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _display.jaxpr(self)


def join_effects(eqns) -> frozenset:
    found = [e.effects for e in eqns if e.effects]
    return frozenset().union(*found) if found else no_effects


def axis_names(effects) -> tuple:
    """The named axes among `effects`."""
    return tuple(e.name for e in effects if type(e) is NamedAxisEffect)


def closed(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The ClosedJaxpr of a jaxpr that has no constants."""
    return ClosedJaxpr(jaxpr, ())


def subjaxprs(jaxpr: Jaxpr) -> Any:
    """The programs held in the parameters of a program's equations.

    Example:
        >>> import gradix
        >>> from gradix.extend import core
        >>> program = gradix.make_jaxpr(gradix.jit(lambda x: x + 1))(1.0).jaxpr
        >>> len(list(core.subjaxprs(program)))
        1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def holds(jaxpr: Jaxpr, test: Callable[[JaxprEqn], bool]) -> bool:
    """Whether `test` is true of an equation of a program, or of the programs in its parameters.

    The program keeps the answer, so `test` must be a function that lives on.
    """
    found = jaxpr.memo.get(test)
    if found is None:
        left, without = [jaxpr], []
        while left and not found:
            inner = left.pop()
            if inner.memo.get(test) is None:
                without.append(inner)
                found = any(map(test, inner.eqns))
                left += subjaxprs(inner)
            else:
                found = inner.memo[test]
        for inner in [jaxpr] if found else without:
            inner.memo[test] = bool(found)
    return bool(found)


def equation_holds(eqn: JaxprEqn, test: Callable[[JaxprEqn], bool]) -> bool:
    """Whether `test` is true of an equation, or of one in the programs of its parameters."""
    return test(eqn) or any(holds(j, test) for j in jaxprs_in_params(eqn.params))


def fold(jaxpr: Jaxpr, consts, args, apply: Callable[[JaxprEqn, list], Any]) -> list:
    """What `apply` makes of a program: `apply(eqn, operands)` gives what stands for its results.

    A literal stands for its value. `eval_jaxpr` runs a program by the rules of the current trace.

    Args:
        jaxpr: the program.
        consts: what stands for its constants.
        args: what stands for its inputs.
        apply: gives a list with an entry for each result of an equation.

    Returns:
        What stands for each result of the program.
    """
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        outs = apply(eqn, [v.val if type(v) is Literal else env[v] for v in eqn.invars])
        env.update(zip(eqn.outvars, outs))
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def jaxprs_in_params(params: Any) -> Any:
    """The programs that the parameters of an equation hold, alone or in tuples and lists.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> call, = gradix.make_jaxpr(gradix.jit(lambda x: x + 1))(1.0).eqns
        >>> len(list(core.jaxprs_in_params(call.params)))
        1
    """
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item
