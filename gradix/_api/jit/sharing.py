"""Traces that functions given anew find again: `jit(f)(x)` in a loop traces and compiles `f` once.

So do functions given to loops, branches and `checkpoint`.

They are kept for each function while it lives. A trace is found only while all that the function
captures is as it was: what closures, defaults and globals hold, also by way of other functions of
the user. Arrays are compared by identity, other objects by their content.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import functools
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._api.jit.fingerprint import ATOMS, NoFingerprint, Walk
from gradix._base import config as _config
from gradix._base.bounded import BoundedCache, on_clear
from gradix._base.lazy import lazy_module
from gradix._base.name_stack import current_names
from gradix._core.array import ArrayImpl
from gradix._core.aval import seen
from gradix._core.keys import Same, SameWhileAlive
from gradix._core.trace import state

_counted = lazy_module("gradix._transforms.counted")

if TYPE_CHECKING:
    from gradix._api.boundary import Flat
    from gradix._api.jit.options import Options
    from gradix._api.jit.traced import Traced

_options = _config.state
_PARTS = 500  # a function that captures more has traces of its own
_BYTES = 1 << 16  # so has one that captures a larger NumPy array, which someone may write to
_SIGNATURES = 64  # for each function
# by the function's id, with a weak reference to it
_known: BoundedCache[int, tuple[weakref.ref, BoundedCache]] = BoundedCache(1024)


class SharedTraces:
    """The traces of one function with some options."""

    __slots__ = ("function", "options", "traces")

    def __init__(self, function: Callable, options: Any, traces: BoundedCache):
        self.function, self.options, self.traces = function, options, traces

    def get(self, key: tuple) -> Traced | None:
        """The trace for a signature, if the function captures what it did when it was made."""
        try:
            found = self.traces.get((self.options, key))
        except Exception:  # the __eq__ of a static argument raised; tracing tells of it
            return None
        if found is None or found[1] != captured(self.function):
            return None
        found[0].warm = 0
        return found[0]

    def keep(self, key: tuple, traced: Traced) -> None:
        content = captured(self.function)
        if content is not None:
            traced.is_shared = True
            self.traces.keep((self.options, key), (traced, content))


def shared_traces(function: Callable, options: Options) -> SharedTraces | None:
    """The traces that functions jitted with these options share; None where they cannot.

    A lambda, and what a transformation returns, is made where it is jitted, and hardly ever jitted
    again.
    """
    if type(function) is not types.FunctionType or function.__name__ == "<lambda>":
        return None
    if hasattr(function, "__wrapped__"):
        return None
    if options.specialize or options.symbolic:
        return None
    key = _key_of(options)
    if key is None:
        return None
    found = _known.get(id(function))
    if found is None or found[0]() is not function:
        drop = functools.partial(_drop, _known, id(function))
        found = _known.keep(id(function), (weakref.ref(function, drop), BoundedCache(_SIGNATURES, drop=1)))
    return SharedTraces(function, key, found[1])


# -- functions given to loops, branches and checkpoint ---------------------------------------------

# by code: the function that has it, by a weak reference, and its traces
_given: BoundedCache[types.CodeType, tuple[Callable, BoundedCache]] = BoundedCache(1024)
on_clear(_given.clear)


def stage_shared(function: Callable, flat: Flat, avals: list, form: Any) -> tuple:
    """As `flat.stage_with_refs(avals)`, which is found again while the function captures the same.

    Args:
        function: the user's function.
        flat: this function on operands, which alone are traced.
        avals: the types of the operands.
        form: what else the trace depends on, such as the structure of the operands.
    """
    traces = _traces_of(function)
    if traces is None:
        return flat.stage_with_refs(avals)
    axes = [(name, t.size) for name, t in state.axes.items()]
    is_shown = getattr(state.stage, "made_scalars", None) is not None
    key = form, *avals, _options.context, *axes, state.manual, current_names(), is_shown
    try:
        found = traces.get(key)
    except Exception:  # a static argument that cannot be hashed or compared
        return flat.stage_with_refs(avals)
    if found is not None and found[2] == captured(function):
        flat.out_tree = found[1]
        return found[0]
    traced = flat.stage_with_refs(avals)
    jaxpr, consts, refs = traced
    defines_sizes = seen.counts is not None and _counted.defines_any(jaxpr)
    if not (refs or defines_sizes) and all(type(c) is ArrayImpl for c in consts):
        content = captured(function)
        if content is not None:
            traces.keep(key, (traced, flat.out_tree, content))
    return traced


def _traces_of(function: Callable) -> BoundedCache | None:
    """The traces of a function; None for one whose code belongs to others too, made anew each time."""
    if type(function) is not types.FunctionType or hasattr(function, "__wrapped__"):
        return None
    code = function.__code__
    found = _given.get(code)
    if found is None:
        ref = weakref.ref(function, functools.partial(_drop_given, _given, code))
        return _given.keep(code, (ref, BoundedCache(_SIGNATURES, drop=1)))[1]
    if found[0]() is function:
        return found[1]
    _given.keep(code, (lambda: None, BoundedCache(1)))
    return None


def _drop_given(given: BoundedCache, code: types.CodeType, _: weakref.ref) -> None:
    given.pop(code, None)


def forget(function: Callable) -> None:
    """Drop the traces of a function."""
    _known.pop(id(function), None)


on_clear(_known.clear)


def _drop(known: BoundedCache, number: int, ref: weakref.ref) -> None:
    # The cache is given, because the module's names are gone when the process ends.
    if number in known and known[number][0] is ref:
        for traced, _ in known.pop(number)[1].values():
            traced.take_apart()


def _key_of(options: Options) -> tuple | None:
    """What distinguishes options, or None if any of them cannot be compared."""
    try:
        return tuple(
            [
                (f.name, Walk(_PARTS).of(getattr(options, f.name)))
                for f in dataclasses.fields(options)
                if getattr(options, f.name) is not f.default
            ]
        )
    except (NoFingerprint, RecursionError):
        return None


def captured(function: Callable) -> Any:
    """A snapshot of what a function captures; None if it cannot be compared."""
    try:
        return _Captures(_PARTS).of(function)
    except (NoFingerprint, RecursionError):
        return None


class _Captures(Walk):
    """A walk that also follows the globals that functions read.

    Its result keeps no function alive, nor a class or a module that holds it, since it is kept as
    long as the function lives.
    """

    __slots__ = ("met",)

    def __init__(self, limit: int):
        super().__init__(limit)
        self.met: dict[int, int] = {}

    def of(self, x) -> Any:
        if type(x) in ATOMS:
            return type(x), x
        kind, content = super().of(x)
        return (self.same(kind) if kind.__class__ is type else kind), content

    def same(self, x) -> Any:
        try:
            return SameWhileAlive(x)
        except TypeError:  # it cannot be referenced weakly
            return Same(x)

    def globals_of(self, f) -> int:
        return id(f.__globals__)

    def _function(self, f):
        number = self.met.get(id(f))
        if number is not None:
            return "met", number
        is_first = not self.met
        self.met[id(f)] = len(self.met)
        if not is_first and _is_installed(f.__code__.co_filename):
            return self.same(f)
        every = f.__globals__
        names, attributes = _names_read(f.__code__)
        read = tuple([(n, self._read(every[n], attributes)) for n in names if n in every])
        return self._by_parts(f), read

    def _captured(self, x):
        if type(x) in ATOMS:
            return x
        return self.same(x) if type(x) is types.ModuleType else super()._captured(x)

    def _read(self, x, attributes: tuple[str, ...]):
        """A global, and of a user's module or class the attributes of these names."""
        found = self._captured(x)
        if not isinstance(x, (types.ModuleType, type)) or _is_of_library(x):
            return found
        own = vars(x)
        return found, tuple([(n, self._captured(own[n])) for n in attributes if n in own])

    def _array(self, x: np.ndarray):
        if x.nbytes > _BYTES:
            raise NoFingerprint("a large array")
        return super()._array(x)

    def _content(self, x, kind: type):
        return self.same(x) if kind is ArrayImpl else super()._content(x, kind)


_INSTALLED = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")})


@functools.lru_cache(4096)
def _is_installed(file: str) -> bool:
    """Whether a file is of an installed library, whose functions are compared by identity."""
    return file.startswith(_INSTALLED) or "/gradix/" in file


def _is_of_library(x: types.ModuleType | type) -> bool:
    """Whether a module or class is of an installed library, or of the interpreter."""
    module = x if isinstance(x, types.ModuleType) else sys.modules.get(x.__module__)
    file = getattr(module, "__file__", None)
    return module is None or module is builtins or (file is not None and _is_installed(file))


@functools.lru_cache(4096)
def _names_read(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The global names that a function, or one inside of it, reads and does not assign.

    The second are the names of the attributes that it reads, of whatever.
    """
    read, assigned, attributes = dict[str, None](), set(), dict[str, None]()
    for i in dis.get_instructions(code):
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            read[i.argval] = None
        elif i.opname in ("STORE_GLOBAL", "STORE_NAME"):
            assigned.add(i.argval)
        elif i.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes[i.argval] = None
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names, others = _names_read(inner)
            read.update(dict.fromkeys(names))
            attributes.update(dict.fromkeys(others))
    return tuple([name for name in read if name not in assigned]), tuple(attributes)
