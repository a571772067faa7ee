"""Kernels without their arithmetic on floats: what is left reads, writes, copies, and decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from gradix._core.trace import bind
from gradix._transforms.staging import stage_closed

# operations that hand on elements as they are
_MOVING = frozenset(
    """
    slice dynamic_slice dynamic_update_slice reshape transpose broadcast_in_dim concatenate pad squeeze expand_dims rev
    gather scatter select_n copy convert_element_type bitcast_convert_type empty stop_gradient optimization_barrier
    device_put name split stack tile sort top_k iota
    """.split()
)


def without_arithmetic(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with infinity in place of each result of arithmetic on floats, also in its loops and branches."""

    def run(*xs):
        jaxpr = closed.jaxpr
        env: dict = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *xs)))

        def value(a):
            return a.val if type(a) is Literal else env[a]

        for eqn in jaxpr.eqns:
            outs = _results(eqn, [value(a) for a in eqn.invars])
            env.update(zip(eqn.outvars, outs))
        return [value(a) for a in jaxpr.outvars]

    return stage_closed(run, closed.in_avals, closed.jaxpr.debug_info)


def _results(eqn: JaxprEqn, args: list) -> list:
    inner = {name: p for name, p in eqn.params.items() if _is_program(p)}
    if not inner and eqn.primitive.name not in _MOVING and all(_is_float(v.aval) for v in eqn.outvars):
        return [jnp.full(v.aval.shape, np.inf, v.aval.dtype) for v in eqn.outvars]
    changed = {n: without_arithmetic(p) if isinstance(p, ClosedJaxpr) else _each(p) for n, p in inner.items()}
    out = bind(eqn.primitive, args, {**eqn.params, **changed})
    return out if eqn.primitive.multiple_results else [out]


def _each(programs: tuple) -> tuple:
    return tuple([without_arithmetic(p) for p in programs])


def _is_program(p: Any) -> bool:
    """Whether a parameter is a program, or several."""
    return isinstance(p, ClosedJaxpr) or (type(p) is tuple and p != () and all(isinstance(q, ClosedJaxpr) for q in p))


def _is_float(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, np.inexact) and not aval.weak_type
