"""Jitted functions inside of other programs: their evaluation on concrete arrays, and lowering."""

from __future__ import annotations

from gradix._api.jit.traced import check_results
from gradix._base import config as _config
from gradix._control.call import jit_p
from gradix._core import seams
from gradix._core.effects import MeshEffect
from gradix._core.jaxpr import ClosedJaxpr
from gradix._runtime import xla
from gradix._runtime.program import Program
from gradix._transforms.cse import simplify
from gradix._transforms.staging import stage_closed

_options = _config.state


def _run_call(args, params):
    """Evaluate `jit_p` on concrete arrays; the compiled program is kept with the jaxpr."""
    closed = params["jaxpr"]
    if any(type(e) is MeshEffect for e in closed.effects):
        return NotImplemented  # it runs on the devices of that mesh
    # the client is part of the key, since another one, with more devices, may have replaced it
    key = "program", xla.client()
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = Program(simplify(closed), params["name"])
    outs = found(list(args))
    if _options.jax_debug_nans or _options.jax_debug_infs:
        check_results(outs, params["name"], closed, args)
    return outs


def _trace_expand(function, avals, params) -> ClosedJaxpr:
    """Trace the rule `expand` of a primitive, for lowering."""

    def flat(*xs):
        out = function(*xs, **params)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return stage_closed(flat, avals)


jit_p.run = _run_call
seams.trace_expand = _trace_expand
