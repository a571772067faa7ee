"""Working on jaxprs: dead code, and tracing functions of lists."""

from __future__ import annotations

from gradix._core.array import as_array
from gradix._core.jaxpr import DebugInfo, Jaxpr, Literal
from gradix._core.trace import Tracer, new_level
from gradix._transforms import dce as _dce
from gradix._transforms.staging import (
    StagingTrace,
    StagingTracer as DynamicJaxprTracer,  # noqa: F401
    stage as _stage,
)


def dce_jaxpr(jaxpr: Jaxpr, used_outputs, instantiate=False) -> tuple[Jaxpr, list[bool]]:
    """The program without what its used outputs do not need.

    Args:
        used_outputs: a flag per output, or one for all.
        instantiate: True keeps all inputs; a flag per input keeps those marked.

    Returns:
        The program, and a flag per input: whether it is left.
    """
    if isinstance(used_outputs, bool):
        used_outputs = [used_outputs] * len(jaxpr.outvars)
    if isinstance(instantiate, bool):
        return _dce.dce_jaxpr(jaxpr, used_outputs, keep_inputs=instantiate)
    small, used = _dce.dce_jaxpr(jaxpr, used_outputs)
    left = [u or keep for u, keep in zip(used, instantiate)]
    return small.replace(
        invars=[v for v, u in zip(jaxpr.invars, left) if u], effects=small.effects
    ), left


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs, instantiate=False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, which also drops constvars: the program, and flags of the constvars and inputs that are left."""
    small, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for e in small.eqns for v in e.invars if type(v) is not Literal} | set(small.outvars)
    left = [v in read for v in jaxpr.constvars]
    return (
        small.replace(
            constvars=[v for v, u in zip(jaxpr.constvars, left) if u], effects=small.effects
        ),
        left,
        used,
    )


class PartialVal(tuple):
    """A pair: the type of a value not known yet and None, or None and a known value."""

    __slots__ = ()

    @classmethod
    def known(cls, const) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self):
        """The value, None where it is not known."""
        return self[1] if self[0] is None else None

    def get_aval(self):
        """The type."""
        return as_array(self[1]).aval if self[0] is None else self[0]


def trace_to_jaxpr_nounits(fun, pvals, instantiate=False) -> tuple[Jaxpr, list[PartialVal], list]:
    """Run a function on some known arguments, and trace what depends on the others.

    Args:
        fun: a function of arrays that returns a sequence of them, or what `linear_util.wrap_init`
            gives.
        pvals: a `PartialVal` for each argument.
        instantiate: whether known results become results of the program too; a flag for each, or
            one for all.

    Returns:
        The program of the unknown arguments to the unknown results, the results, and the values of
        its constvars.

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
    trace = StagingTrace(DebugInfo(getattr(getattr(fun, "f", fun), "__name__", "")))
    with new_level(trace):  # not staging: what is known is computed at once
        outs = list(function(*[p[1] if p.is_known() else trace.new_arg(p[0]) for p in pvals]))
        outs = [as_array(o) for o in outs]
        every = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        open_ = [i or (isinstance(o, Tracer) and o._trace is trace) for o, i in zip(outs, every)]
        jaxpr, consts = trace.close([o for o, u in zip(outs, open_) if u])
    return (
        jaxpr,
        [PartialVal.unknown(o.aval) if u else PartialVal.known(o) for o, u in zip(outs, open_)],
        consts,
    )


def trace_to_jaxpr_dynamic(fun, in_avals) -> tuple[Jaxpr, list, list]:
    """The jaxpr of a function that takes and returns lists of arrays, the types of its results, and its constants.

    Args:
        fun: a function, or what `gradix.extend.linear_util.wrap_init` gives.
    """
    function = getattr(fun, "call_wrapped", fun)
    name = getattr(getattr(fun, "f", fun), "__name__", "")
    jaxpr, consts = _stage(lambda *xs: list(function(*xs)), list(in_avals), DebugInfo(name))
    return jaxpr, jaxpr.out_avals, consts
