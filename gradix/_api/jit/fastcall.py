"""Calls of a jitted function as code written for one signature: check the arguments, run, wrap the results."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.jit.traced import Traced
from gradix._base import config as _config
from gradix._base.tree import flatten
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import float0
from gradix._core.trace import state
from gradix._runtime import xla
from gradix._runtime.program import to_device

_LEAVES_LIMIT = 512
_BYTES_LIMIT = 1 << 16            # of NumPy arrays given as they are: larger ones may be read after the call returns
_NUMBERS = (bool, int, float, complex)
_NAMED = (bool, int, str, type(None))           # static arguments that one comparison tells apart
MISS: Any = object()
_options = _config.state


class _Unsuited(Exception):
    """The signature has something this module does not write code for."""


class _Writer:
    """Source lines, and the objects they name."""

    def __init__(self):
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.leaves: list[tuple[str, Any]] = []

    def name(self, value: Any, prefix: str = "k") -> str:
        found = f"{prefix}{len(self.names)}"
        self.names[found] = value
        return found

    def unless(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return MISS")

    def let(self, expression: str) -> str:
        found = f"v{len(self.lines)}"
        self.lines.append(f"{found} = {expression}")
        return found

    def take(self, var: str, value: Any) -> None:
        """Lines that take `value`, found in variable `var`, to its leaves, in the order of `flatten`."""
        kind = type(value)
        if kind is dict:
            self.unless(f"type({var}) is dict and len({var}) == {len(value)}")
            for key in sorted(value):
                self.take(self.let(f"{var}[{self._constant(key)}]"), value[key])
        elif kind is tuple or kind is list or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            self.unless(f"type({var}) is {self.name(kind)} and len({var}) == {len(value)}")
            for i, part in enumerate(value):
                self.take(self.let(f"{var}[{i}]"), part)
        elif value is None:
            self.unless(f"{var} is None")
        elif kind in (ArrayImpl, np.ndarray, *_NUMBERS) or isinstance(value, np.generic):
            self.leaves.append((var, value))
        else:
            parts, tree = flatten(value)
            if len(parts) == 1 and parts[0] is value:
                raise _Unsuited
            found = self.let(f"flatten({var})")
            self.unless(f"{found}[1] == {self.name(tree)}")
            for i, part in enumerate(parts):
                self.take(self.let(f"{found}[0][{i}]"), part)

    def static(self, var: str, value: Any) -> None:
        if type(value) is tuple and all(type(n) is int for n in value):       # a shape
            self.unless(f"type({var}) is tuple and {var} == {value}" + "".join([
                f" and type({var}[{i}]) is int" for i in range(len(value))]))
            return
        if isinstance(value, np.dtype):
            self.unless(f"{var} is {self.name(value)}")
            return
        if type(value) not in _NAMED:
            raise _Unsuited
        self.unless(f"type({var}) is {self.name(type(value))} and {var} == {self._constant(value)}")

    def _constant(self, value: Any) -> str:
        return repr(value) if type(value) in (int, str) else self.name(value)

    def build(self, value: Any) -> str:
        """An expression for a tree whose leaves are the numbers of the results."""
        kind = type(value)
        if kind is int:
            return f"r{value}"
        if kind is dict:
            return "{" + ", ".join([f"{self._constant(k)}: {self.build(v)}" for k, v in value.items()]) + "}"
        if kind is list:
            return "[" + ", ".join([self.build(v) for v in value]) + "]"
        if kind is tuple:
            return "(" + "".join([self.build(v) + ", " for v in value]) + ")"
        if value is None:
            return "None"
        raise _Unsuited


def write_call(traced: Traced, args: tuple, kwargs: dict, is_static: Callable[[Any], bool]) -> Callable | None:
    """`call(args, kwargs)` for arguments like these: the function's result, or MISS where they are of another signature.

    Args:
        traced: what was traced and compiled for these arguments.
        is_static: whether the argument of a number or keyword is static.

    Returns:
        The function; None where calls of this kind need more than it could do.
    """
    program = traced.program
    if type(traced) is not Traced or program is None or traced.donated or program.executable.has_callbacks or any(
            a.dtype == float0 for a in program.out_avals):
        return None
    w = _Writer()
    try:
        _write_arguments(w, args, kwargs, is_static)
        if len(w.leaves) > _LEAVES_LIMIT or [id(x) for _, x in w.leaves] != [
                id(x) for x in flatten(_dynamic(args, kwargs, is_static))[0]]:
            return None
        inputs = _write_leaves(w, traced)
        _write_run(w, traced, inputs)
        _write_results(w, traced)
    except (_Unsuited, TypeError, xla.Mismatch):
        return None
    return _defined(w, _options.context)


def _dynamic(args, kwargs, is_static):
    return tuple([a for i, a in enumerate(args) if not is_static(i)]), {
        k: v for k, v in kwargs.items() if not is_static(k)}


def _write_arguments(w: _Writer, args, kwargs, is_static) -> None:
    w.unless(f"len(args) == {len(args)} and len(kwargs) == {len(kwargs)}" if kwargs else
             f"len(args) == {len(args)} and not kwargs")
    for i, value in enumerate(args):
        (w.static if is_static(i) else w.take)(w.let(f"args[{i}]"), value)
    for key in sorted(kwargs):
        (w.static if is_static(key) else w.take)(w.let(f"kwargs[{key!r}]"), kwargs[key])


def _write_leaves(w: _Writer, traced: Traced) -> list[tuple[str, Any]]:
    """Lines that check each leaf; the program's inputs as expressions, with an example of each."""
    inputs: list[tuple[str, Any]] = []
    for aval, (var, value) in zip(traced.avals, w.leaves):
        if type(value) is ArrayImpl:
            w.unless(f"{var}.aval is {w.name(aval)}")
            inputs.append((_buffer(w, var), to_device(value)))
        else:
            w.unless(f"type({var}) is {w.name(type(value))}")
            if isinstance(value, (np.ndarray, np.generic)):
                if value.nbytes > _BYTES_LIMIT or value.dtype.kind not in "biufc" or not value.dtype.isnative:
                    raise _Unsuited
                w.unless(f"{var}.dtype is {w.name(value.dtype)}")
            inputs.append((var, value))
    captured = [(_buffer(w, w.name(c)), to_device(c)) for c in traced.consts]
    inputs = captured + inputs
    program = traced.program
    assert program is not None
    if program.kept is not None:
        inputs = [inputs[i] for i in program.kept]
    return [(w.name(c), c) for c in program.consts] + inputs


def _buffer(w: _Writer, var: str) -> str:
    found = w.let(f"{var}._buffer")
    w.lines.append(f"if {found} is None: {found} = to_device({var})")
    return found


def _write_run(w: _Writer, traced: Traced, inputs) -> None:
    """The line that runs the program: at once, or, for NumPy arrays and numbers, by jaxlib's dispatcher."""
    assert traced.program is not None
    executable = traced.program.executable
    given = ", ".join([var for var, _ in inputs])
    outs = "".join([f"o{i}, " for i in range(len(executable.out_avals))]) or "()"
    if all(type(value) is ArrayImpl for _, value in w.leaves):
        run = f"{w.name(executable.execute)}([{given}]).consume_with_handlers({w.name(executable.handlers)})"
        w.lines.append(f"{outs}= {run}" if executable.out_avals else run)
        return
    if _options.jax_enable_x64 or not xla.is_dispatcher_available():
        raise _Unsuited
    call = xla.dispatcher(executable, _once(traced), tuple([value for _, value in inputs]))
    run = f"{w.name(call)}({given})"
    w.lines.append(f"try: {outs}= {run}" if executable.out_avals else f"try: {run}")
    w.lines.append("except (Mismatch, OverflowError, TypeError): return MISS")


def _once(traced: Traced) -> Callable[..., list]:
    """Runs the program on buffers, NumPy arrays and numbers."""
    assert traced.program is not None
    executable = traced.program.executable

    def run(*args):
        buffers = []
        for aval, x in zip(executable.in_avals, args):
            if isinstance(x, (np.ndarray, np.generic, *_NUMBERS)):
                x = xla.put(np.asarray(x, aval.dtype), aval)
            buffers.append(x)
        return list(executable.run(buffers))
    return run


def _write_results(w: _Writer, traced: Traced) -> None:
    assert traced.program is not None
    avals = traced.program.out_avals
    for i, aval in enumerate(avals):
        w.lines.append(f"r{i} = new(ArrayImpl); r{i}.aval = {w.name(aval)}; r{i}._host = None; r{i}._buffer = o{i}")
    numbers = traced.out_tree.unflatten(list(range(len(avals))))
    try:
        w.lines.append(f"return {w.build(numbers)}")
    except _Unsuited:
        given = ", ".join([f"r{i}" for i in range(len(avals))])
        w.lines.append(f"return {w.name(traced.out_tree.unflatten)}([{given}])")


def _defined(w: _Writer, context) -> Callable:
    """The function of the lines; outside of its signature, the lookups it makes fail and are a miss."""
    run = next(i for i, line in enumerate(w.lines) if "o0, " in line or "consume_with" in line or line.startswith("try"))
    checks, rest = w.lines[:run], w.lines[run:]
    source = ["def call(args, kwargs):",
              " if options.context is not context or state.depth: return MISS",
              " try:", *["  " + line for line in checks],
              " except (AttributeError, KeyError, TypeError, ValueError): return MISS", *[" " + line for line in rest]]
    names = {**w.names, "MISS": MISS, "ArrayImpl": ArrayImpl, "new": ArrayImpl.__new__, "to_device": to_device, "flatten": flatten,
             "options": _options, "state": state, "context": context, "Mismatch": xla.Mismatch}
    exec(compile("\n".join(source), "<call of a jitted function>", "exec"), names)
    return names["call"]
