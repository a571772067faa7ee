"""Functions on jaxprs: the removal of dead code, and the tracing of functions of lists."""

from __future__ import annotations

from typing import Any

from gradix._base.listing import own_names as _own_names
from gradix._core.array import as_array
from gradix._core.jaxpr import DebugInfo, Jaxpr, Literal
from gradix._core.trace import Tracer, new_level
from gradix._transforms import dce as _dce
from gradix._transforms.staging import (
    StagingTrace,
    StagingTracer as DynamicJaxprTracer,  # noqa: F401
    stage as _stage,
)


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Any, instantiate: Any = False) -> tuple[Jaxpr, list[bool]]:
    """The program without operations and inputs that its used outputs do not need.

    Args:
        jaxpr: the program.
        used_outputs: for each output, or for all, whether it is used.
        instantiate: for each input, or for all, whether to keep it even if it is not needed.

    Returns:
        The program, and for each input whether it is kept.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import partial_eval as pe
        >>> program = gradix.make_jaxpr(lambda x, y: (x + 1, y * 2))(1.0, 2.0).jaxpr
        >>> short, used = pe.dce_jaxpr(program, [True, False])
        >>> [eqn.primitive.name for eqn in short.eqns], used
        (['add'], [True, False])
    """
    if isinstance(used_outputs, bool):
        used_outputs = [used_outputs] * len(jaxpr.outvars)
    if isinstance(instantiate, bool):
        return _dce.dce_jaxpr(jaxpr, used_outputs, keep_inputs=instantiate)
    small, used = _dce.dce_jaxpr(jaxpr, used_outputs)
    left = [u or keep for u, keep in zip(used, instantiate)]
    return small.replace(invars=[v for v, u in zip(jaxpr.invars, left) if u], effects=small.effects), left


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Any, instantiate: Any = False) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, but constvars that are not needed are dropped too.

    Returns:
        The program, for each constvar whether it is kept, and for each input whether it is kept.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import partial_eval as pe
        >>> program = gradix.make_jaxpr(lambda x, y: (x + 1, y * 2))(1.0, 2.0).jaxpr
        >>> short, consts, used = pe.dce_jaxpr_consts(program, [False, True])
        >>> [eqn.primitive.name for eqn in short.eqns], consts, used
        (['mul'], [], [False, True])
    """
    small, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for e in small.eqns for v in e.invars if type(v) is not Literal} | set(small.outvars)
    left = [v in read for v in jaxpr.constvars]
    return (small.replace(constvars=[v for v, u in zip(jaxpr.constvars, left) if u], effects=small.effects), left, used)


class PartialVal(tuple):
    """A value that is known or not: the pair `(None, value)`, or `(type, None)`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters.partial_eval import PartialVal
        >>> x, y = PartialVal.known(jnp.ones(2)), PartialVal.unknown(gradix.typeof(jnp.ones(2)))
        >>> x.is_known(), y.is_known(), x.get_known(), y.get_aval()
        (True, False, Array([1., 1.], dtype=float32), ShapedArray(float32[2]))
    """

    __slots__ = ()

    @classmethod
    def known(cls, const) -> PartialVal:
        """A known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval) -> PartialVal:
        """An unknown value of this type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self):
        """The value, or None if it is not known."""
        return self[1] if self[0] is None else None

    def get_aval(self):
        """The type of the value."""
        return as_array(self[1]).aval if self[0] is None else self[0]


def trace_to_jaxpr_nounits(fun: Any, pvals: Any, instantiate: Any = False) -> tuple[Jaxpr, list[PartialVal], list]:
    """Run a function on partly known arguments, and trace what depends on the unknown ones.

    Args:
        fun: a function of arrays that returns a sequence of arrays, or a `WrappedFun` of one.
        pvals: a `PartialVal` for each argument.
        instantiate: for each result, or for all, whether known results become results of the
            program too.

    Returns:
        The program from the unknown arguments to the unknown results, a `PartialVal` for each
        result, and the values of the program's constvars.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters import partial_eval as pe
        >>> aval = gradix.core.ShapedArray((), jnp.float32)
        >>> _, (x, y), _ = pe.trace_to_jaxpr_nounits(lambda a, b: (a * 2, a + b),
        ...                                          [pe.PartialVal.known(jnp.float32(3)), pe.PartialVal.unknown(aval)])
        >>> x.get_known(), y.is_known()
        (Array(6., dtype=float32), False)
    """
    function = getattr(fun, "call_wrapped", fun)
    trace = StagingTrace(DebugInfo.of(getattr(getattr(fun, "f", fun), "__name__", "")))
    with new_level(trace):  # This is not staging, so known values are computed at once.
        outs = list(function(*[p[1] if p.is_known() else trace.new_arg(p[0]) for p in pvals]))
        outs = [as_array(o) for o in outs]
        every = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        open_ = [i or (isinstance(o, Tracer) and o._trace is trace) for o, i in zip(outs, every)]
        jaxpr, consts = trace.close([o for o, u in zip(outs, open_) if u])
    return (jaxpr, [PartialVal.unknown(o.aval) if u else PartialVal.known(o) for o, u in zip(outs, open_)], consts)


def trace_to_jaxpr_dynamic(fun: Any, in_avals: Any) -> tuple[Jaxpr, list, list]:
    """The jaxpr of a function of arrays that returns a sequence of arrays.

    Args:
        fun: the function, or a `WrappedFun` of it.
        in_avals: the types of its arguments.

    Returns:
        The jaxpr, the types of its results, and the values of its constvars.

    Example:
        >>> import gradix
        >>> from gradix.extend import linear_util as lu
        >>> from gradix.interpreters import partial_eval as pe
        >>> doubled = lu.wrap_init(lambda x: [2 * x])
        >>> program, out_types, _ = pe.trace_to_jaxpr_dynamic(doubled, [gradix.typeof(1.0)])
        >>> [eqn.primitive.name for eqn in program.eqns], out_types
        (['mul'], [ShapedArray(float32[], weak_type=True)])
    """
    function = getattr(fun, "call_wrapped", fun)
    name = getattr(getattr(fun, "f", fun), "__name__", "")
    jaxpr, consts = _stage(lambda *xs: list(function(*xs)), list(in_avals), DebugInfo.of(name))
    return jaxpr, jaxpr.out_avals, consts


__dir__ = _own_names(__name__)
