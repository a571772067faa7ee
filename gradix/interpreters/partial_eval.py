"""Working on jaxprs: dead code, and tracing functions of lists."""
from __future__ import annotations

from gradix._core.jaxpr import DebugInfo, Jaxpr
from gradix._transforms import dce as _dce
from gradix._transforms.staging import (
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
    return small.replace(invars=[v for v, u in zip(jaxpr.invars, left) if u], effects=small.effects), left


def trace_to_jaxpr_dynamic(fun, in_avals) -> tuple[Jaxpr, list, list]:
    """The jaxpr of a function that takes and returns lists of arrays, the types of its results, and its constants.

    Args:
        fun: a function, or what `gradix.extend.linear_util.wrap_init` gives.
    """
    function = getattr(fun, "call_wrapped", fun)
    name = getattr(getattr(fun, "f", fun), "__name__", "")
    jaxpr, consts = _stage(lambda *xs: list(function(*xs)), list(in_avals), DebugInfo(name))
    return jaxpr, jaxpr.out_avals, consts
