"""Evaluating primitives on concrete arrays: small work by NumPy on the host, the rest by XLA."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._core import array as _array, trace as _trace
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from gradix._core.key_flow import run_checked
from gradix._runtime import policy, xla
from gradix._runtime.program import Program, fetch, to_device

_PROGRAMS_LIMIT = 1024
_programs: dict[tuple, Program] = {}
_options = _config.state
_modes = policy.modes()


def _silence() -> tuple[Callable, Callable]:
    """Functions that stop NumPy's floating-point warnings and resume them, at a tenth of `errstate`'s price."""
    try:
        from_private = np._core.umath
        quiet, variable = from_private._make_extobj(all="ignore"), from_private._extobj_contextvar
        variable.reset(variable.set(quiet))
        return (lambda: variable.set(quiet)), variable.reset
    except (AttributeError, TypeError):
        def enter() -> AbstractContextManager:
            state = np.errstate(all="ignore")
            state.__enter__()
            return state
        return enter, lambda state: state.__exit__(None, None, None)


_quiet, _resume = _silence()


def evaluate(prim, args, params):
    """Apply a primitive to concrete arrays."""
    host = prim.host
    if host is None:
        if prim.run is not None:
            out = run_checked(prim, args, params) if _options.jax_debug_key_reuse else prim.run(args, params)
            if out is not NotImplemented:
                return out
        return compiled(prim, args, params)
    context = _options.context
    mode, nans, infs = _modes.get(context) or policy.mode_of(context)
    if len(args) == 2 and not prim.multiple_results:           # the commonest cases, without lists
        x, y = args
        out = prim.abstract(x.aval, y.aval, **params)
        if out.size + x.aval.size + y.aval.size > prim.host_limit if mode == "auto" else mode == "xla":
            return compiled(prim, args, params)
        token = _quiet()
        try:
            result = host(x._host if x._host is not None else x.host,
                          y._host if y._host is not None else y.host, **params)
        finally:
            _resume(token)
    elif len(args) == 1 and not prim.multiple_results:
        x, = args
        out = prim.abstract(x.aval, **params)
        if out.size + x.aval.size > prim.host_limit if mode == "auto" else mode == "xla":
            return compiled(prim, args, params)
        token = _quiet()
        try:
            result = host(x._host if x._host is not None else x.host, **params)
        finally:
            _resume(token)
    else:
        out = prim.abstract(*[a.aval for a in args], **params)
        if prim.multiple_results:
            return _evaluate_many(prim, args, params, out, mode, nans or infs)
        size = out.size
        for a in args:
            size += a.aval.size
        if size > prim.host_limit if mode == "auto" else mode == "xla":
            return compiled(prim, args, params)
        if prim.silent:
            result = host(*[a._host if a._host is not None else a.host for a in args], **params)
        else:
            token = _quiet()
            try:
                result = host(*[a._host if a._host is not None else a.host for a in args], **params)
            finally:
                _resume(token)
    if type(result) is not np.ndarray or result.dtype is not out.dtype:
        result = _physical(result, out)
    wrapped = ArrayImpl(result, out)
    if nans or infs:
        check_floats(prim.name, [wrapped])
    return wrapped


def _evaluate_many(prim, args, params, out, mode, checked):
    size = sum([a.size for a in out]) + sum([a.aval.size for a in args])
    if mode == "xla" or (mode == "auto" and size > prim.host_limit):
        return compiled(prim, args, params)
    token = _quiet()
    try:
        results = prim.host(*[a.host for a in args], **params)
    finally:
        _resume(token)
    wrapped = [ArrayImpl(_physical(r, a), a) for r, a in zip(results, out)]
    if checked:
        check_floats(prim.name, wrapped)
    return wrapped


def _physical(result, aval) -> np.ndarray:
    """A host rule's result as an array of its type; NumPy gives scalars for arrays without axes."""
    if type(result) is not np.ndarray:
        result = np.asarray(result)
    if result.dtype != aval.dtype and isinstance(aval.dtype, np.dtype):
        result = result.astype(aval.dtype)
    assert result.shape == aval.shape, (result.shape, aval)
    return result


def compiled(prim, args, params):
    """Apply a primitive to concrete arrays by compiling it alone."""
    avals = tuple([a.aval for a in args])
    try:
        key = prim, avals, tuple([(k, type(v), v) for k, v in params.items()])     # True is not 1
        program = _programs.get(key)
    except TypeError as e:
        raise TypeError(f"A parameter of primitive '{prim.name}' cannot be hashed: {params}. "
                        "Pass tuples instead of lists, and arrays as operands.") from e
    if program is None:
        program = Program(single(prim, avals, params), prim.name)
        if len(_programs) >= _PROGRAMS_LIMIT:
            del _programs[next(iter(_programs))]
        _programs[key] = program
    results = program(args)
    if _options.jax_debug_nans or _options.jax_debug_infs:
        check_floats(prim.name, results)
    return results if prim.multiple_results else results[0]


def single(prim, avals, params) -> ClosedJaxpr:
    """The program of one primitive."""
    invars = [Var(a) for a in avals]
    out = prim.abstract(*avals, **params)
    outvars = [Var(a) for a in (out if prim.multiple_results else [out])]
    effects = prim.effects(params) if prim.effectful else frozenset()
    return ClosedJaxpr(Jaxpr([], invars, list(outvars), [JaxprEqn(prim, invars, outvars, params, effects)]), ())


def check_floats(name: str, results) -> None:
    """What `debug_nans` and `debug_infs` ask for: raise where the first such value is made."""
    for r in results:
        value = r.host
        if value.dtype.kind not in "fcV" or not isinstance(r.aval.dtype, np.dtype):
            continue
        wide = value.astype(np.float32) if value.dtype.kind == "V" else value
        if _options.jax_debug_nans and np.isnan(wide).any():
            raise FloatingPointError(f"invalid value (nan) encountered in {name}. "
                                     "The option jax_debug_nans asks for this check.")
        if _options.jax_debug_infs and np.isinf(wide).any():
            raise FloatingPointError(f"invalid value (inf) encountered in {name}. "
                                     "The option jax_debug_infs asks for this check.")


def clear() -> None:
    """Forget the compiled single operations."""
    _programs.clear()


_trace.install_evaluator(evaluate)
_array.install_device(fetch=fetch, put=to_device, runtime=xla)
__all__: list[Any] = ["evaluate", "single", "clear"]
