"""Runs programs over several devices one part after another, if the parts are independent.

XLA:CPU runs the parts of a program on its own threads. For very small parts, waking the threads
takes longer than all of the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._core.named_sharding import NamedSharding, assignment_of, parts_of
from gradix._core.sharding import Sharding
from gradix._runtime import tuning, xla
from gradix._runtime.compilation import Saved, code_of, loaded
from gradix._runtime.program import lower

if TYPE_CHECKING:
    from gradix._runtime.placement import Home
    from gradix._runtime.program import Program

# The parts are compiled separately after this many calls, when another compilation pays.
CALLS_BEFORE = 256
_LARGEST = 1 << 14  # Parts with arrays of more bytes run faster on XLA's threads.
# With more arguments and results, handing over their parts takes longer than waking the threads.
_MOST_ARRAYS = 16
_NAME = re.compile(r"\s*(?:builtin\.)?module @(\S+)")
_READS_DEVICE_NUMBER = re.compile(r" (?:partition-id|replica-id)\(")


def runner(program: Program, closed: ClosedJaxpr, home: Home) -> Callable[[list], list] | None:
    """A function of buffers that runs a program's parts one after another; None if that cannot be.

    Its results equal those of the program on all devices bit for bit.
    """
    executable = program.executable
    if not _may_do(program, closed, home):
        return None
    ins = [program.in_shardings[i] for i in program.lowered.kept]
    if len(ins) != len(closed.jaxpr.invars) or len(ins) + len(closed.out_avals) > _MOST_ARRAYS:
        return None
    outs = executable.out_shardings
    part = _part_of(closed, home, ins, outs)
    if part is None or any(_is_large(a) for a in (*part.in_avals, *part.out_avals)):
        return None
    try:
        found = _NAME.match(program.lowered.text)
        name = found[1] if found else "part"
        module = lower(part, name)
        if module.const_args or len(module.kept) != len(ins) or module.host_callbacks:
            return None
        options = tuning.options_for(module, None)
        code = code_of(module, name, options)
        own = [loaded(module, Saved(code, options), xla.On((d,))) for d in home.devices]
    except (xla.RuntimeFailure, ValueError):  # XLA cannot serialize or load the program.
        return None
    return xla.run_in_turn(own, list(zip(executable.out_avals, outs)))


def _may_do(program: Program, closed: ClosedJaxpr, home: Home) -> bool:
    """Whether the parts can run separately.

    All devices must be CPUs of this process, and no part may communicate, call Python, or depend on
    its position in the mesh.
    """
    executable = program.executable
    if home.mesh is None or len(home.devices) < 2 or program.donated or program.consts or not program.orders.are_usual:
        return False
    if closed.consts or executable.is_awaited:
        return False
    here = xla.client().process_index()
    if any(d.platform != "cpu" or d.process_index != here for d in home.devices):
        return False
    return not _READS_DEVICE_NUMBER.search(executable.hlo_text())


def _is_large(aval) -> bool:
    return aval.size * aval.dtype.itemsize > _LARGEST


def _part_of(closed: ClosedJaxpr, home: Home, ins: Sequence[Sharding], outs: Sequence[Sharding]) -> ClosedJaxpr | None:
    """The program of one device's part, if the whole program determines it; else None."""
    shardings = [*ins, *outs]
    if any(assignment_of(s) != home.devices for s in shardings) or not ins:
        return None
    eqns = closed.jaxpr.eqns
    if len(eqns) == 1 and eqns[0].primitive.name == "shard_map":
        return _body(closed.jaxpr, eqns[0], ins, outs)
    return _elementwise(closed.jaxpr, ins, outs)


def _body(jaxpr: Jaxpr, eqn: JaxprEqn, ins, outs) -> ClosedJaxpr | None:
    """The body of a program that is one `shard_map` over all mesh axes; else None."""
    params, mesh = eqn.params, eqn.params["mesh"]
    body = params["jaxpr"]
    if list(eqn.invars) != list(jaxpr.invars) or list(eqn.outvars) != list(jaxpr.outvars):
        return None
    if set(params["manual_axes"]) != set(mesh.axis_names) or body.effects:
        return None
    specs = [*params["in_specs"], *params["out_specs"]]
    for var, spec, sharding in zip([*jaxpr.invars, *jaxpr.outvars], specs, [*ins, *outs]):
        named, ndim = NamedSharding(sharding.mesh, spec), var.aval.ndim  # type: ignore[attr-defined]
        if sharding.mesh != mesh or parts_of(named, ndim) != parts_of(sharding, ndim):  # type: ignore[attr-defined]
            return None
    return body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body)


def _elementwise(jaxpr: Jaxpr, ins, outs) -> ClosedJaxpr | None:
    """The part of an elementwise program with one shape and one sharding; else None."""
    shape, sharding = jaxpr.invars[0].aval.shape, ins[0]
    whole = [*jaxpr.invars, *jaxpr.outvars]
    if any(isinstance(v, Literal) or v.aval.shape != shape for v in whole):
        return None
    want = parts_of(sharding, len(shape))
    if any(parts_of(s, len(shape)) != want for s in [*ins, *outs]):
        return None
    part = sharding.shard_shape(shape)
    local: dict[Var, Var] = {}

    def within(var):
        if isinstance(var, Literal):
            return var
        if var not in local:
            aval = var.aval
            size = part if aval.shape == shape else aval.shape
            local[var] = Var(make_aval(size, aval.dtype, aval.weak_type))
        return local[var]

    for eqn in jaxpr.eqns:
        every = [*eqn.invars, *eqn.outvars]
        if eqn.primitive.live != "elements" or eqn.effects or _names_shapes(eqn.params):
            return None
        if any(v.aval.shape not in (shape, ()) for v in every):
            return None
    eqns = [
        JaxprEqn(
            e.primitive, [within(v) for v in e.invars], [within(v) for v in e.outvars], e.params, e.effects, e.source
        )
        for e in jaxpr.eqns
    ]
    return ClosedJaxpr(Jaxpr([], [within(v) for v in jaxpr.invars], [within(v) for v in jaxpr.outvars], eqns))


def _names_shapes(params: dict) -> bool:
    return params.get("sharding") is not None or any(k in params for k in ("shape", "out_sharding", "axes", "mesh"))
