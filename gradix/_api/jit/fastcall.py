"""Generates Python code that calls a jitted function for one signature.

The code checks the arguments, runs the program, and wraps the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.jit.traced import Traced
from gradix._base import config as _config, source
from gradix._base.config import guards_transfers
from gradix._base.lazy import lazy_module
from gradix._base.tree import tree_flatten as flatten
from gradix._core.array import ArrayImpl, is_shared
from gradix._core.aval import seen as met
from gradix._core.dtypes import float0
from gradix._core.trace import state
from gradix._runtime import xla
from gradix._runtime.program import Donation, Program, to_device

_counted = lazy_module("gradix._api.counted.results")
_static_code = lazy_module("gradix._api.jit.static_code")
_LEAVES_LIMIT = 512
# the largest memory, for all arguments, that is kept to copy NumPy arrays to
_BYTES_LIMIT = 1 << 18
_NUMBERS = (bool, int, float, complex)
MISS: Any = object()
LATER: Any = object()
_options = _config.state


class _Unsuited(Exception):
    """Raised where the signature has a part for which this module cannot write code."""


class Writer:
    """Collects source lines, and the objects that they name."""

    def __init__(self):
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.leaves: list[tuple[str, Any]] = []
        # the variable that holds memory to copy arguments to
        self.memory = ""
        # the number of leading lines that check whether the arguments have this signature
        self.checks = 0

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
        """Write lines that flatten `value`, the content of variable `var`, into its leaves."""
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

    def _constant(self, value: Any) -> str:
        return repr(value) if type(value) in (int, str) else self.name(value)

    def build(self, value: Any) -> str:
        """An expression that builds a result tree; the leaves of `value` are numbers of results."""
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


def write_call(traced: Traced, leaves: list, args: tuple, kwargs: dict, is_static: Callable[[Any], bool]) -> Any:
    """Generate a function `call(args, kwargs)` for arguments of the signature of these.

    Args:
        traced: the signature that was traced and compiled for these arguments.
        leaves: the leaves of those that are not static.
        is_static: says whether the argument of a number or keyword is static.

    Returns:
        The function, which returns MISS for other signatures; None where no code can be written, and
        LATER where the program is taken to run for long, until its first runs turn out to be quick.
    """
    if len(leaves) > _LEAVES_LIMIT or len(leaves) != len(traced.avals):
        return None
    avals = [x.aval if type(x) is ArrayImpl else a for x, a in zip(leaves, traced.avals)]
    program = traced.plain_program(avals)
    if program is None or program.executable.has_callbacks or any(a.dtype == float0 for a in program.out_avals):
        return None
    if program.executable.pace is not None and program.executable.pace.is_long:
        return LATER
    w = Writer()
    try:
        _write_arguments(w, args, kwargs, is_static)
        if [id(x) for _, x in w.leaves] != [id(x) for x in leaves]:
            return None
        inputs = _write_leaves(w, traced, program, avals)
        _write_run(w, program, inputs)
        _write_donation(w, traced, program)
        _write_results(w, traced.out_tree, program)
    except (_Unsuited, TypeError):
        return None
    return _defined(w, _options.context)


def _write_arguments(w: Writer, args, kwargs, is_static) -> None:
    w.lines.append(f"if {f'len(kwargs) != {len(kwargs)}' if kwargs else 'kwargs'}: return MISS")
    names = [f"a{i}" for i in range(len(args))]
    w.lines.append("".join([f"{name}, " for name in names]) + "= args" if args else "if args: return MISS")
    for i, (name, value) in enumerate(zip(names, args)):
        _write_argument(w, name, value, is_static(i))
    for key in sorted(kwargs):
        _write_argument(w, w.let(f"kwargs[{key!r}]"), kwargs[key], is_static(key))


def _write_argument(w: Writer, var: str, value: Any, is_static: bool) -> None:
    if is_static:
        _static_code.write_static(w, var, value)
    else:
        w.take(var, value)


def _write_leaves(w: Writer, traced: Traced, program: Program, avals: list) -> list[str]:
    """Write lines that check each leaf and copy NumPy arrays; returns the inputs as expressions."""
    first = len(traced.consts)
    used = range(first + len(w.leaves)) if program.kept is None else program.kept
    inputs: list[str] = [_buffer(w, w.name(c)) for c in traced.consts]
    copied: list[tuple[int, str, Any]] = []
    for aval, (var, value) in zip(avals, w.leaves):
        if type(value) is ArrayImpl:
            w.unless(f"{var}.aval is {w.name(aval)}")
            if len(inputs) in traced.donated_inputs:
                # only the memory of a buffer that nothing else shows is given away as it is
                w.unless(f"{var}._host is None and {var}._buffer is not None and not {w.name(is_shared)}({var})")
            inputs.append(_buffer(w, var))
            continue
        if len(inputs) in traced.donated_inputs:
            raise _Unsuited
        w.unless(f"type({var}) is {w.name(type(value))}")
        if isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.kind not in "biufc" or not value.dtype.isnative or not value.size:
                raise _Unsuited
            w.unless(f"{var}.dtype is {w.name(value.dtype)}")
        if type(value) is np.ndarray:
            w.unless(f"{var}.shape == {value.shape}")
        if len(inputs) in used:
            copied.append((len(inputs), var, value))
        elif type(value) is int:
            raise _Unsuited  # a Python int may be too large for its dtype, even if it is not used
        inputs.append("")
    if copied:
        w.unless(f"not {w.name(guards_transfers)}()")
        _write_copies(w, program, [avals[i - first] for i, _, _ in copied], copied, inputs)
    return [w.name(c) for c in program.consts] + [inputs[i] for i in used]


def _write_copies(
    w: Writer, program: Program, avals: list, copied: list[tuple[int, str, Any]], inputs: list[str]
) -> None:
    """Write lines that copy NumPy arrays and numbers of these types to memory that one call at a time uses."""
    if sum([a.size * a.dtype.itemsize for a in avals]) > _BYTES_LIMIT:
        raise _Unsuited
    make = xla.staging(avals, [type(value) in _NUMBERS for _, _, value in copied], program.executable.device)
    if make is None or not program.out_avals:
        raise _Unsuited
    w.memory = pool = w.name([])
    w.lines.append(f"try: memory = {pool}.pop()")
    w.lines.append(f"except IndexError: memory = {w.name(make)}()")
    w.lines.append(", ".join([f"s{i}, b{i}" for i, _, _ in copied]) + " = memory")
    for i, var, value in copied:
        inputs[i] = f"b{i}"
        if type(value) is complex:
            w.lines.append(f"s{i}[0] = {var}.real; s{i}[1] = {var}.imag")
        else:
            w.lines.append(f"s{i}[{'0' if type(value) in _NUMBERS else '...'}] = {var}")


def _buffer(w: Writer, var: str) -> str:
    found = w.let(f"{var}._buffer")
    w.lines.append(f"if {found} is None: {found} = to_device({var})")
    return found


def _write_run(w: Writer, program: Program, inputs: list[str]) -> None:
    """Write the line that runs the program.

    jaxlib refuses an argument that a program is still computing by a TypeError. The memory for
    copies is free again when the program is done. It is done when the call returns,
    unless another argument was still being computed.
    """
    executable = program.executable
    w.checks = len(w.lines)
    outs = "".join([f"o{i}, " for i in range(len(executable.out_avals))])
    run = f"{w.name(executable.execute)}([{', '.join(inputs)}]).consume_with_handlers({w.name(executable.handlers)})"
    w.lines += [f"try: {outs}= {run}" if outs else f"try: {run}", "except TypeError: return MISS"]
    if executable.is_awaited and outs:
        w.lines.append("o0.block_until_ready()")  # all results are ready when the first is
    if w.memory:
        w.lines.append(f"if o0.is_ready(): {w.memory}.append(memory)")


def _write_donation(w: Writer, traced: Traced, program: Program) -> None:
    """Write the lines that take the values of donated arguments away, as `donation.run` does."""
    first = len(traced.consts)
    if not program.donated:
        return
    made, debug, name = w.name(Donation), w.name(traced.debug), w.name(traced.name)
    w.lines.append(f"taken = {made}({debug}, {name}, {w.name(source.current)}(3))")
    for i in program.donated:
        var = w.leaves[i - first][0]
        w.lines.append(f"{var}._buffer = None; {var}._extra = taken, {i - first}")


def _write_results(w: Writer, tree, program: Program) -> None:
    avals = program.out_avals
    for i, aval in enumerate(avals):
        w.lines.append(f"r{i} = new(ArrayImpl); r{i}.aval = {w.name(aval)}; r{i}._host = None; r{i}._buffer = o{i}")
    n = len(avals)
    if met.counts is not None and type(tree) is _counted.CountedTree:
        _write_cuts(w, tree)
        tree, n = tree.tree, tree.num_leaves
    try:
        w.lines.append(f"return {w.build(_numbers(tree, n))}")
    except _Unsuited:
        given = ", ".join([f"r{i}" for i in range(n)])
        w.lines.append(f"return {w.name(tree.unflatten)}([{given}])")


def _numbers(tree, n: int):
    """A tree of this structure whose leaves are their numbers.

    Raises:
        _Unsuited: a class in it refuses to be made of numbers.
    """
    try:
        return tree.unflatten(list(range(n)))
    except Exception as e:  # what a user's class raises
        raise _Unsuited from e


def _write_cuts(w: Writer, tree) -> None:
    """Write lines that cut buffers to the sizes whose values follow the results."""
    n = tree.num_leaves
    values = {d: f"n{k}" for k, d in enumerate(tree.dims)}
    w.lines += [f"{value} = int(r{n + k}.host)" for k, value in enumerate(values.values())]
    cut, given = w.name(_counted.sliced), ", ".join([f"{str(d)!r}: {value}" for d, value in values.items()])
    for i, axes in enumerate(tree.axes):
        for axis, d in axes:
            if d not in values:
                values[d] = w.let(f"{w.name(_counted.substituted)}({w.name(d)}, {{{given}}})")
            w.lines.append(f"r{i} = {cut}(r{i}, {values[d]}, {axis})")


def _defined(w: Writer, context) -> Callable:
    """Compile the lines to a function; a failing lookup in its checks counts as a miss."""
    checks, rest = w.lines[: w.checks], w.lines[w.checks :]
    source = [
        "def call(args, kwargs):",
        " if options.context is not context or state.depth: return MISS",
        " try:",
        *["  " + line for line in checks],
        " except (AttributeError, KeyError, TypeError, ValueError): return MISS",
        *[" " + line for line in rest],
    ]
    names = {
        **w.names,
        "MISS": MISS,
        "ArrayImpl": ArrayImpl,
        "new": ArrayImpl.__new__,
        "to_device": to_device,
        "flatten": flatten,
        "options": _options,
        "state": state,
        "context": context,
    }
    exec(compile("\n".join(source), "<call of a jitted function>", "exec"), names)
    return names.pop("call")  # a function in its own namespace would keep itself alive
