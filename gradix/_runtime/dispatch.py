"""Evaluates primitives on concrete arrays: small operations by NumPy on the host, others by XLA."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._base.bounded import BoundedCache, on_clear
from gradix._base.lazy import lazy_module
from gradix._core import seams
from gradix._core.array import ArrayImpl
from gradix._core.aval import located, seen, within
from gradix._core.effects import MeshEffect
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from gradix._core.mesh import mesh_to_run_on
from gradix._core.sharding import Placement, SingleDeviceSharding
from gradix._core.trace import typed_results
from gradix._runtime import policy, xla
from gradix._runtime.placement import Home, committed, home_of, whole_on
from gradix._runtime.program import Program, fetch

_threads: Any = lazy_module("gradix._base.one_thread")
_key_flow = lazy_module("gradix._core.key_flow")
_key_use = lazy_module("gradix._core.key_use")
_programs: BoundedCache[tuple, Any] = BoundedCache(1024, drop=1)
# For a primitive, types and parameters: the host function, the type of the result, and whether the
# function never warns.
_plans: BoundedCache[tuple, tuple[Callable, Any, bool]] = BoundedCache(1 << 14)
_known_plan = _plans.get  # The method is bound once, because every eager operation calls it.
_options = _config.state
_ndarray, _asarray = np.ndarray, np.asarray
_modes = policy.modes()
is_host_apart = xla.is_host_apart


def _silence() -> tuple[Callable, Callable]:
    """Two functions that suppress NumPy's floating-point warnings and restore them, fast."""
    try:
        from_private = np._core.umath  # type: ignore[attr-defined]
        quiet, variable = from_private._make_extobj(all="ignore"), from_private._extobj_contextvar
        variable.reset(variable.set(quiet))
        return partial(variable.set, quiet), variable.reset
    except (AttributeError, TypeError):

        def enter() -> AbstractContextManager:
            state = np.errstate(all="ignore")
            state.__enter__()
            return state

        return enter, lambda state: state.__exit__(None, None, None)


_quiet, _resume = _silence()


def evaluate(prim, args, params):
    """Apply a primitive to concrete arrays.

    `_decide` evaluates a primitive the first time, and remembers how, by types and parameters.
    Later calls find this plan by one look-up.
    """
    n = len(args)
    if n == 2:
        x, y = args
        key = prim, _options.context, x.aval, y.aval
    elif n == 1:
        (x,) = args
        key = prim, _options.context, x.aval
    elif n == 3:
        x, y, z = args
        key = prim, _options.context, x.aval, y.aval, z.aval
    else:
        return _decide(prim, args, params, None)
    if params:
        key = *key, *params, *params.values()
    try:
        plan = _known_plan(key)
    except TypeError:  # A parameter cannot be hashed.
        return _decide(prim, args, params, None)
    if plan is None:
        return _decide(prim, args, params, key)
    host, out, silent = plan
    a = x._host
    if a is None:
        if is_host_apart():
            return _apart(prim, args, params)
        a = x.host
    if n != 1:
        b = y._host
        if b is None:
            if is_host_apart():
                return _apart(prim, args, params)
            b = y.host
    token = None if silent else _quiet()
    try:
        if n == 2:
            result = host(a, b)
        elif n == 1:
            result = host(a)
        else:
            result = host(a, b, z._host if z._host is not None else z.host)
    finally:
        if token is not None:
            _resume(token)
    if type(result) is not _ndarray:
        if result is NotImplemented:
            return compiled(prim, args, params)
        result = _asarray(result)
    if result.dtype is not out.dtype:
        result = _physical(result, out)
    return ArrayImpl(result, out)


def _decide(prim, args, params, key):
    """Evaluate by the host rule, and remember this under `key`; or evaluate by XLA."""
    if (
        _options.gradix_mesh is not None
        or _options.jax_default_device is not None
        or prim.mesh.placed
        or any(a.aval.place is not None for a in args)
    ):
        return _somewhere(prim, args, params, key)
    return _decide_here(prim, args, params, key)


def _decide_here(prim, args, params, key):
    if prim.consumes_keys and _options.jax_debug_key_reuse:
        key = None  # No plan is kept, because every call must check its random key.
        if not _key_flow.is_accounted():
            _key_use.consume(prim.name.removeprefix("random_"), args[0].host)
    host = prim.host
    if host is None:
        if prim.run is not None:
            out = _key_flow.run_checked(prim, args, params) if _options.jax_debug_key_reuse else prim.run(args, params)
            if out is not NotImplemented:
                if _options.jax_debug_nans or _options.jax_debug_infs:
                    check_floats(prim.name, [x for x in listed(prim, out) if type(x) is ArrayImpl])
                return out
        return compiled(prim, args, params)
    context = _options.context
    mode, nans, infs = _modes.get(context) or policy.mode_of(context)
    out = prim.abstract(*[a.aval for a in args], **params)
    if prim.multiple_results:
        return _evaluate_many(prim, args, params, out, mode, nans or infs)
    size = out.size + sum([a.aval.size for a in args])
    if _is_on_device(prim, args, size) if mode == "auto" else mode == "xla":
        return compiled(prim, args, params)
    package = prim.threaded(*[a.aval for a in args], **params) if prim.threaded else None
    if package is not None:
        host = _threads.on_one_thread(host, package)
    token = _quiet()
    try:
        result = host(*[a.host for a in args], **params)
    finally:
        _resume(token)
    if result is NotImplemented:
        return compiled(prim, args, params)
    wrapped = ArrayImpl(_physical(result, out), out)
    if nans or infs:
        check_floats(prim.name, [wrapped])
    elif key is not None:
        quick = prim.specialise(*[a.aval for a in args], **params) if prim.specialise else None
        if quick is not None and package is not None:
            quick = _threads.on_one_thread(quick, package)
        _plans.keep(key, (quick or (partial(host, **params) if params else host), out, prim.silent))
    return wrapped


def _somewhere(prim, args, params, key):
    """Evaluate on the devices of the operands, or on those set by options."""
    if prim.mesh.placed and prim.run is not None:
        return prim.run(args, params)
    place = _place_of(prim, args, params)
    is_divided = place is not None and not place.is_whole
    # a value that is reduced is whole everywhere, and a program finds the types of results
    if is_divided or prim.mesh.placed or any(a.aval.division is not None for a in args):
        return _placed_program(prim, args, params)
    if place is not None and is_host_apart() and _runs_compiled(prim, args, params):
        return _placed_program(prim, args, params)
    plain = [a if a.aval.place is None else _here(a) for a in args]
    if place is None:
        return _decide_here(prim, plain, params, None)
    out = _decide_here(prim, plain, params, None)
    if not isinstance(out, list):
        out = _there(out, place)
        plain_key = (
            (prim, _options.context, *[a.aval for a in plain], *params, *params.values())
            if params
            else (prim, _options.context, *[a.aval for a in plain])
        )
        plan = _decided(prim, plain, params, plain_key) if key is not None else None
        if plan is not None:
            _plans.keep(key, (plan[0], out.aval, plan[2]))
        return out
    return [_there(o, place) for o in out]


def _decided(prim, args, params, key):
    """The plan of this operation on arrays without a place; None if it has none."""
    try:
        found = _plans.get(key)
        if found is None and prim.host is not None and not prim.multiple_results and 0 < len(args) < 4:
            _decide_here(prim, args, params, key)
            found = _plans.pop(key, None)
    except TypeError:
        return None
    return found


def _here(x):
    """The array without its place, for evaluation on the host."""
    return ArrayImpl(x.host, x.aval.plain)


def _there(x, place):
    """A result with the place of its operands; the device buffer is made when it is needed."""
    if type(x) is not ArrayImpl:
        return x
    return ArrayImpl(x.host, located(x.aval.plain, place.of_rank(x.aval.ndim)))


def _place_of(prim, args, params):
    """Where an operation runs: on the devices of committed operands, or on those set by options."""
    places = [a.aval.place for a in args]
    found = next((p for p in places if p is not None and p.is_committed), None)
    if found is not None:
        if any(p is not found and p is not None and p.is_committed for p in places):
            named = [
                (
                    f"argument {_NAMES[i % 6]} of {prim.name} with shape {a.aval.plain.str_short()}",
                    a.aval.place.sharding,
                )
                for i, a in enumerate(args)
                if a.aval.place is not None and a.aval.place.is_committed
            ]
            home_of(named, (), prim.name)
            return next((p for p in places if p is not None and p.is_committed and not p.is_whole), found)
        return found
    mesh, device = mesh_to_run_on(), xla.default_device()
    if mesh is not None:
        return committed(whole_on(Home(mesh._flat_devices_tuple, mesh)))
    found = next((p for p in places if p is not None), None)
    if found is None and device is not None and device is not xla.local_devices()[0]:
        return Placement(SingleDeviceSharding(device), False)
    return found


_NAMES = "xyzabc"


def _placed_program(prim, args, params):
    """Apply a primitive to arrays on several devices, by a program of this primitive alone."""
    avals = tuple([a.aval for a in args])
    try:
        key = prim, _options.context, avals, prim.params_key(params)
        program = _programs.get(key) or _own_programs(params).get(key)
    except TypeError:
        key = program = None
    if program is None:
        closed = single(prim, [within(a) for a in avals], params)
        named = [
            (f"argument {_NAMES[i % 6]} of {prim.name} with shape {a.plain.str_short()}", a.place.sharding)
            for i, a in enumerate(avals)
            if a.place is not None and a.place.is_committed
        ]
        home = home_of(named, closed.effects, prim.name) or Home((xla.local_devices()[0],), None)
        program = Program(closed, prim.name, home, avals, out_shardings=prim.asked_of(params))
        if key is not None:
            _keep(key, program, params)
    results = program(args)
    if _options.jax_debug_nans or _options.jax_debug_infs:
        check_floats(prim.name, results)
    return results if prim.multiple_results else results[0]


def _evaluate_many(prim, args, params, out, mode, checked):
    size = sum([a.size for a in out]) + sum([a.aval.size for a in args])
    if _is_on_device(prim, args, size) if mode == "auto" else mode == "xla":
        return compiled(prim, args, params)
    host, package = (prim.host, prim.threaded(*[a.aval for a in args], **params) if prim.threaded else None)
    if package is not None:
        host = _threads.on_one_thread(host, package)
    token = _quiet()
    try:
        results = host(*[a.host for a in args], **params)
    finally:
        _resume(token)
    wrapped = [ArrayImpl(_physical(r, a), a) for r, a in zip(results, out)]
    if checked:
        check_floats(prim.name, wrapped)
    return wrapped


def _apart(prim, args, params):
    """Apply a primitive that has a plan for the host to operands of which one is not there."""
    if any(a.aval.place is not None for a in args):
        return _somewhere(prim, args, params, None)
    return compiled(prim, args, params)


def _runs_compiled(prim, args, params) -> bool:
    """Whether XLA evaluates an operation beside a GPU: it must, or it may not in eager mode "host"."""
    mode = policy.mode_of(_options.context)[0]
    if prim.host is None or mode != "auto":
        return prim.run is None if prim.host is None else mode == "xla"
    out = prim.abstract(*[a.aval.plain for a in args], **params)
    outs = out if prim.multiple_results else [out]
    return _is_on_device(prim, args, sum([a.size for a in (*outs, *[a.aval for a in args])]))


def _is_on_device(prim, args, size: int) -> bool:
    """Whether XLA evaluates an operation on `size` elements, by the rule of `policy.mode_of`."""
    return size > prim.host_limit or is_host_apart() and _is_dear_on_host(args, size)


def _is_dear_on_host(args, size: int) -> bool:
    """Whether operands would be copied from the memory of a GPU, or the result to it, at a cost."""
    return size > policy.APART_LIMIT or any(a._host is None for a in args)


def _physical(result, aval) -> np.ndarray:
    """A host rule's result as an array of its type; NumPy returns scalars for 0-d results."""
    if type(result) is not np.ndarray:
        result = np.asarray(result)
    if result.dtype != aval.dtype and isinstance(aval.dtype, np.dtype):
        result = result.astype(aval.dtype)
    assert result.shape == aval.shape, (result.shape, aval)
    return result


def compiled(prim, args, params):
    """Apply a primitive to concrete arrays, by a compiled program of this primitive alone."""
    avals = tuple([a.aval for a in args])
    try:
        key = prim, avals, prim.params_key(params)
        program = _programs.get(key) or _own_programs(params).get(key)
    except TypeError as e:
        raise TypeError(
            f"A parameter of primitive '{prim.name}' cannot be hashed: {params}. "
            "Pass tuples instead of lists, and pass arrays as operands."
        ) from e
    if program is None:
        closed = single(prim, avals, params)
        if any(type(e) is MeshEffect for e in closed.effects):
            return _placed_program(prim, args, params)
        program = Program(closed, prim.name)
        _keep(key, program, params)
    results = program(args)
    if _options.jax_debug_nans or _options.jax_debug_infs:
        check_floats(prim.name, results)
    return results if prim.multiple_results else results[0]


def _own_programs(params) -> dict:
    """Where the program of an equation is kept: with what it was made of, to be freed with it.

    Inner programs and exported ones hold what users captured. Those that stand for all equal ones
    live on, and the program with them.
    """
    for value in params.values():
        for item in value if type(value) is tuple else (value,):
            memo = getattr(item, "memo", None)
            if type(memo) is dict and not memo.get("interned"):
                return memo
    return _programs


def _keep(key: tuple, program, params) -> None:
    own = _own_programs(params)
    if own is _programs:
        _programs.keep(key, program)
    else:
        own[key] = program


def single(prim, avals, params) -> ClosedJaxpr:
    """The program with a single equation, which applies the primitive."""
    invars = [Var(a) for a in avals]
    out = prim.abstract(*avals, **params)
    if seen.divisions:
        out = typed_results(prim, avals, params, out)
    outvars = [Var(a) for a in (out if prim.multiple_results else [out])]
    effects = prim.effects(params) if prim.effectful else frozenset()
    return ClosedJaxpr(Jaxpr([], invars, list(outvars), [JaxprEqn(prim, invars, outvars, params, effects)]), ())


def listed(prim, out) -> list:
    """The results of an application as a list."""
    return out if prim.multiple_results else [out]


def check_floats(name: str, results) -> None:
    """Check results for NaN or infinity, if `jax_debug_nans` or `jax_debug_infs` is set.

    Raises:
        FloatingPointError: a result has such a value.
    """
    for r in results:
        value = r.host
        if value.dtype.kind not in "fcV" or not isinstance(r.aval.dtype, np.dtype):
            continue
        wide = value.astype(np.float32) if value.dtype.kind == "V" else value
        if _options.jax_debug_nans and np.isnan(wide).any():
            raise FloatingPointError(
                f"invalid value (nan) encountered in {name}. The option jax_debug_nans asks for this check."
            )
        if _options.jax_debug_infs and np.isinf(wide).any():
            raise FloatingPointError(
                f"invalid value (inf) encountered in {name}. The option jax_debug_infs asks for this check."
            )


def clear() -> None:
    """Drop all plans and compiled programs of single primitives."""
    _programs.clear()
    _plans.clear()


on_clear(clear)
seams.evaluate, seams.fetch, seams.runtime = evaluate, fetch, xla
__all__: list[Any] = ["evaluate", "single", "clear"]
