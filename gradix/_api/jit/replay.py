"""Replays functions of many operations on small arrays by NumPy, without eager dispatch.

In each call a function checks and promotes its arguments; for argument types met before, the
outcome is the same. So its program is traced once, what depends on no argument is computed once,
and the rest is generated as straight-line code that calls the host rules of the operations. The
results are equal bit for bit, because the rules are the same. A function may define its own host
rule, which replaces its program from the first call on. Long programs are compiled in the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from gradix._api.boundary import Arguments, Flat
from gradix._base import config as _config
from gradix._base.bounded import BoundedCache, on_clear
from gradix._base.lazy import lazy_module
from gradix._base.tree import tree_flatten as flatten
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix._runtime import dispatch, policy, xla
from gradix._runtime.program import Program, to_device
from gradix._transforms.cse import cse_jaxpr
from gradix._transforms.dce import dce_jaxpr
from gradix._transforms.staging import stage

_code = lazy_module("gradix._api.jit.replay_code")

F = TypeVar("F", bound=Callable)
# a function is traced in this call of a signature, because tracing costs as much as many calls
_FIRST = 16
_LIMIT = 1 << 8  # the number of signatures kept per function
# a program of more NumPy calls than this is faster compiled; calls of our functions count twice
_LONG = 15
_COMPILE_AFTER = 256  # a long program is compiled after this many replays, when that pays
_DEPTH = 16  # lists in lists deeper than this, as those that hold themselves, are left to the function
_INTS = frozenset((int,))
_PLAIN = frozenset((int, bool, str, type(None)))
_ONE = flatten(0)[1]
_options = _config.state
_modes = policy.modes()


@overload
def replayed(function: F, *, host: Callable | None = None) -> F: ...


@overload
def replayed(*, host: Callable | None = None) -> Callable[[F], F]: ...


def replayed(function: Callable | None = None, *, host: Callable | None = None) -> Any:
    """`function`, replayed in eager calls with small arrays whose types it has met before.

    The operations of the function must depend on types and plain parameters only. A function that
    reads an array's values, warns, or has effects must not be replayed. Long programs are compiled
    after a number of replays, unless `gradix_eager` is "host". The replays are counted, not timed,
    so that runs of a user's program repeat exactly. Compiled, integer and boolean results are
    equal, and floats may differ in their last bits.

    Args:
        function: the function to replay.
        host: makes the function's own host rule. It is called like `function`, with types in place
            of arrays, and returns a function that computes the result from NumPy arrays, or None
            where there is no rule for these types. The rule returns the results of the function's
            program, floats to a few units in the last place, or NotImplemented.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> middle = replayed(lambda x: (lax.reduce_max(x, (0,)) + lax.reduce_min(x, (0,))) / 2)
        >>> {middle(jnp.arange(4)).item() for _ in range(20)}
        {1.5}
    """
    if function is None:
        return functools.partial(replayed, host=host)
    table: BoundedCache[tuple, Any] = BoundedCache(_LIMIT)
    on_clear(table.clear)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any):
        if state.stage is not None:
            return function(*args, **kwargs)
        key: list = [_options.context]
        arrays = []
        for a in args:
            t = type(a)
            if t is ArrayImpl:
                key.append(a.aval)
                arrays.append(a)
            elif t in _PLAIN:
                key += t, a
            elif t is float:
                key += t, a or repr(a)  # `repr` distinguishes 0.0 from -0.0
            elif t is tuple and _INTS.issuperset(map(type, a)):
                key.append(a)
            elif isinstance(a, (type, np.dtype)):
                key += t, a
            elif not (t is list or t is tuple) or not _is_listed(a, key, arrays):
                return function(*args, **kwargs)
        if kwargs:
            for name, a in kwargs.items():
                t = type(a)
                if t is ArrayImpl:
                    key += name, a.aval
                    arrays.append(a)
                elif t in _PLAIN or (t is tuple and _INTS.issuperset(map(type, a))) or isinstance(a, (type, np.dtype)):
                    key += name, t, a
                elif t is float:
                    key += name, t, a or repr(a)
                else:
                    return function(*args, **kwargs)
        signature = tuple(key)
        found = table.get(signature)
        if type(found) is Replay:
            return found.call(arrays)
        if found is not None and found >= _FIRST:  # it cannot be replayed
            return function(*args, **kwargs)
        rule = _rule(host, args, kwargs) if host is not None and found is None else None
        seen = (found or 0) + 1
        table.keep(signature, seen)
        if seen == _FIRST or rule:
            try:
                table[signature] = made = Replay(function, args, kwargs, rule)
            except Exception:  # the function is called below, and raises the better error
                table[signature] = _FIRST if not rule else seen
            else:
                if rule:
                    return made.call(arrays)
        return function(*args, **kwargs)

    return call


def _rule(host: Callable, args: tuple, kwargs: dict) -> Callable | None:
    """The function's own host rule for arguments of these types."""
    try:
        return host(
            *[a.aval if type(a) is ArrayImpl else a for a in args],
            **{name: a.aval if type(a) is ArrayImpl else a for name, a in kwargs.items()},
        )
    except (AttributeError, TypeError):  # the function itself will raise for these arguments
        return None


class Replay:
    """A function's program for given types as calls of host rules; a long one is compiled later."""

    __slots__ = ("call", "host", "left", "program")
    # a function that compiles the program, and the tree of its results
    program: Any

    def __init__(self, function: Callable, args: tuple, kwargs: dict, rule: Callable | None = None):
        mode, nans, infs = _modes.get(_options.context) or policy.mode_of(_options.context)
        if mode == "xla" or nans or infs or _options.jax_disable_jit:
            raise _code.NotReplayable
        bound, avals = _of_arrays(function, args, kwargs)
        if (
            _options.gradix_mesh is not None
            or _options.jax_default_device is not None
            or any(a.place is not None for a in avals)
        ):
            raise _code.NotReplayable  # operations on placed arrays run on their devices
        closed, tree = _program(bound, avals)
        if rule is not None:
            self.call = _where_values_are(_ruled(rule, bound, closed, tree), bound)
            return
        writer = _code.Writer(closed)
        self.host = writer.function(tree, tree == _ONE)
        self.call = _where_values_are(self.host, bound)
        if self.call is self.host and writer.work > _LONG and mode != "host":
            self.call, self.left = self.counted, _COMPILE_AFTER
            self.program = lambda: Program(closed, getattr(function, "__name__", "replayed")), tree

    def counted(self, arrays: list) -> Any:
        """Replay the program, and compile it when enough replays have been counted."""
        self.left -= 1
        if self.left <= 0:
            program, self.program = self.program, None
            if program is not None:  # else another thread compiles it
                make, tree = program
                self.call = _compiled(make(), tree)
        return self.host(arrays)


def _where_values_are(call: Callable, bound: Callable) -> Callable[[list], Any]:
    """`call`, or beside a GPU a function that calls `bound` if the GPU alone has a value."""
    if xla.default_platform() == "cpu":
        return call
    return lambda xs: bound(*xs) if any(x._host is None for x in xs) else call(xs)


def _compiled(program: Program, tree) -> Callable[[list], Any]:
    """A function that runs the compiled program on arrays."""
    run, execute, handlers = program.call, program.executable.execute, program.executable.handlers
    if tree != _ONE:
        return lambda arrays: tree.unflatten(run(arrays))
    executable = program.executable
    if program.consts or program.kept is not None or executable.is_awaited or executable.pace:
        return lambda arrays: run(arrays)[0]
    (aval,) = program.out_avals

    def call(arrays):
        try:
            (out,) = execute(
                [a._buffer if a._buffer is not None else to_device(a) for a in arrays]
            ).consume_with_handlers(handlers)
        except TypeError:  # An argument is still being computed.
            return run(arrays)[0]
        return ArrayImpl(None, aval, out)

    return call


def _is_listed(values: list | tuple, key: list, arrays: list, depth: int = _DEPTH) -> bool:
    """Whether there are only arrays and lists of arrays, not too deep; adds them to `key` and `arrays`."""
    key += type(values), len(values)
    for a in values:
        t = type(a)
        if t is ArrayImpl:
            key.append(a.aval)
            arrays.append(a)
        elif not (t is list or t is tuple) or not depth or not _is_listed(a, key, arrays, depth - 1):
            return False
    return True


def _of_arrays(function, args, kwargs) -> tuple[Callable, list]:
    """The call as a function of its array arguments alone, and the types of these."""
    leaves, tree = flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if type(x) is ArrayImpl]
    avals = [leaves[i].aval for i in places]
    # the function is kept, and the arrays of this call are not
    others = Arguments(leaves, tree, places)

    def bound(*arrays):
        given, named = others.filled(arrays)
        return function(*given, **named)

    return bound, avals


def _program(bound, avals):
    """The simplified program of a function of arrays, and the tree of its results."""
    flat = Flat(bound, "replayed", lambda operands: (operands, {}), close=_only_arrays)
    jaxpr, consts = stage(flat, avals)
    jaxpr = cse_jaxpr(dce_jaxpr(jaxpr, keep_inputs=True)[0])
    if jaxpr.effects or any(
        e.primitive.declines and e.outvars[0].aval.dtype in e.primitive.declines for e in jaxpr.eqns
    ):
        raise _code.NotReplayable
    return ClosedJaxpr(jaxpr, consts), flat.out_tree


def _only_arrays(leaves: list, tree) -> list:
    if any(not isinstance(x, Array) for x in leaves):
        raise _code.NotReplayable
    return leaves


def _ruled(rule: Callable, bound: Callable, closed: ClosedJaxpr, tree) -> Callable[[list], Any]:
    """A function that applies the host rule, or `bound` if that returns NotImplemented."""
    avals = closed.out_avals
    if sum([a.size for a in (*closed.in_avals, *avals)]) > _code.ELEMENTS:
        raise _code.NotReplayable
    aval, one = avals[0], tree == _ONE
    quiet, resume, physical = dispatch._quiet, dispatch._resume, dispatch._physical
    ndarray, dtype = np.ndarray, aval.dtype

    def call(arrays):
        token = quiet()
        try:
            result = rule(*[a._host if a._host is not None else a.host for a in arrays])
        finally:
            resume(token)
        if result is NotImplemented:
            return bound(*arrays)
        if not one:
            return tree.unflatten([ArrayImpl(physical(r, a), a) for r, a in zip(result, avals)])
        if type(result) is not ndarray or result.dtype is not dtype:
            result = physical(result, aval)
        return ArrayImpl(result, aval)

    return call
