"""What runs compiled in `debug.values()`: functions and loops of which nobody can see that they do.

In such a block all functions run in Python, so that they can be looked into. Of a function that computes and does
nothing else (`silent_code`), while no debugger, profiler or tracer of Python watches, there is nothing to see: it runs
compiled once it has been called so often that compiling it is worth while. The same holds for the steps of loops.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gradix._api.jit.fastcall import MISS
from gradix._api.jit.fingerprint import ATOMS
from gradix._api.jit.jitted_function import JitFunction
from gradix._api.jit.options import Options
from gradix._api.silent_code import Silence, is_named_tuple, silence_of
from gradix._base import config as _config
from gradix._base.bounded import on_clear
from gradix._base.tree import tree_flatten
from gradix._core.array import ArrayImpl
from gradix._core.trace import state

_options = _config.state
CALLS = 16  # that a function runs in Python before it is compiled
STEPS = 8192  # that the body of a loop runs in Python, all loops together, before one is compiled
LONG = 32  # steps that a loop must have


class Unwatched:
    """One function: whether it is silent, and compiled."""

    __slots__ = ("left", "patience", "silence", "run")

    def __init__(self, patience: int):
        # calls, or steps, in Python before the function is looked at; after each failure twice as many
        self.left = self.patience = patience
        self.silence: Silence | None = None
        self.run: Callable | None = None  # the compiled function, where it is a jitted one

    def takes(self, functions: tuple[Callable, ...], kinds: bool | None) -> bool:
        """Whether the functions, of which there were enough calls, are silent for arguments of such `_kinds`."""
        if kinds is None:
            return False
        if self.silence is None:
            self.silence = self._silence(functions)
        elif not self.silence.holds():  # what was compiled is of what the variables were
            self.fails()
        return self.silence is not None and not (self.silence.changes and kinds)

    def _silence(self, functions: tuple[Callable, ...]) -> Silence | None:
        found = [s for s in map(silence_of, functions) if s is not None]
        if len(found) < len(functions):
            self.fails()
            return None
        return functools.reduce(Silence.joined, found)

    def fails(self) -> None:
        """Let the function run in Python, and look at it again after twice as many calls."""
        self.patience *= 2
        self.left, self.silence, self.run = self.patience, None, None


def call(function: JitFunction, args: tuple, kwargs: dict) -> Any:
    """The result of a jitted function that runs compiled; MISS where it must run in Python."""
    found = function.unwatched
    if found is None:
        found = function.unwatched = Unwatched(CALLS)
    if found.left > 0:
        found.left -= 1
        return MISS
    if _is_watched() or state.stage is not None or state.axes or not _are_plain(function, args, kwargs, found):
        return MISS
    with _compiled():
        try:
            if found.run is None:
                asked = function._asked
                roles = replace(Options(), static_argnums=asked.static_argnums, static_argnames=asked.static_argnames)
                found.run = JitFunction(function._fun, roles)
            return found.run(*args, **kwargs)
        except Exception:  # it needs numbers, or is wrong: Python tells more of it
            found.fails()
            return MISS


def _are_plain(function: JitFunction, args, kwargs, found: Unwatched) -> bool:
    """Whether a function is silent, and gets arrays in containers that it does not change."""
    dynamic, named, static = function._split(args, kwargs) if function._has_static else (args, kwargs, ())
    if any(type(value) not in ATOMS for _, (_, value) in static):
        return False
    leaves, tree = tree_flatten((dynamic, named))
    for x in leaves:
        if type(x) is not ArrayImpl:
            return False
    return found.takes((function._fun,), _kinds(tree))


def loop(functions: tuple[Callable, ...], values: Any, steps: int, run: Callable[[], Any]) -> Any:
    """What `run()` returns, the loop compiled, if nobody can see it; MISS where it must run in Python.

    Args:
        functions: the functions that each step calls.
        values: a tree of what the loop begins with.
        steps: how many there are.
        run: runs the loop, in a context in which loops are compiled.
    """
    if not all(type(f) is types.FunctionType for f in functions):
        return MISS
    code = functions[0].__code__
    found = _bodies.get(code)
    if found is None:
        found = _bodies[code] = Unwatched(STEPS)
    found.left -= steps
    if found.left > 0 or steps < LONG or _is_watched() or state.stage is not None:
        return MISS
    found.silence = None  # the functions of two calls may have captured different values
    if not found.takes(functions, _kinds(tree_flatten(values)[1])):
        return MISS
    with _compiled():
        try:
            return run()
        except Exception:
            found.fails()
            return MISS


# what is known of the bodies of loops, by their code
_bodies: weakref.WeakKeyDictionary[types.CodeType, Unwatched] = weakref.WeakKeyDictionary()
on_clear(_bodies.clear)


@contextmanager
def _compiled() -> Iterator[None]:
    """Functions and loops are compiled in this context, and values that are printed raise."""
    entry = _config.enter_local("jax_disable_jit", False)
    state.shows_values, state.is_silent = False, True
    try:
        yield
    finally:
        _config.leave_local("jax_disable_jit", entry)
        state.shows_values, state.is_silent = True, False


def _is_watched() -> bool:
    """Whether something follows Python step by step, or an option asks about single operations."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    if _options.jax_debug_nans or _options.jax_debug_infs or _options.gradix_progress:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(i) is not None for i in range(6))


@functools.lru_cache(1024)
def _kinds(tree: Any) -> bool | None:
    """Whether there are lists or dicts in a tree; None where there are classes that may have code of users."""
    found, changeable = [tree], False
    while found:
        node = found.pop()
        data = node.node_data()
        if data is not None:
            kind = data[0]
            if kind in (list, dict):
                changeable = True
            elif kind not in (tuple, type(None)) and not is_named_tuple(kind):
                return None
            found += node.children()
    return changeable
