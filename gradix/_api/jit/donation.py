"""Donated arguments: checks whether a result can reuse their memory, and says why not."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from gradix._base import source
from gradix._base.tree import keystr, tree_flatten_with_path
from gradix._core.array import ArrayImpl, is_shared
from gradix._core.array_members import is_fetched, take_memory
from gradix._runtime import xla
from gradix._runtime.program import Donation, Program


def check(module, traced) -> None:
    """Warn of donated arguments whose memory no result reuses; raise with donate_strict=True.

    Args:
        module: the lowered program.
        traced: the signature that was lowered; its constants come before its arguments.

    Raises:
        ValueError: the function was jitted with donate_strict=True.
    """
    strict = traced.owner.donate_strict
    lost = [
        (_leaf(i, traced), _reason(i, module, traced.name))
        for i in module.unusable_donations
        if strict or i in module.kept
    ]
    if not lost:
        return
    names, lines = traced.debug.arg_names, []
    for i, why in lost:
        name = names[i] if i < len(names) else f"number {i}"
        lines.append(f"  {traced.avals[i].str_short()} of argument {name}: {why}")
    advice = "  instead: donate only arguments that have a result of as many bytes."
    text = f"Some donated buffers were not usable: {', '.join([traced.avals[i].str_short() for i, _ in lost])}.\n"
    text += "\n".join([*lines, advice])
    if strict:
        raise ValueError(text)
    at = source.current()
    warnings.warn_explicit(text, UserWarning, at.file, at.line)


def _leaf(i: int, traced) -> int:
    """The number of the leaf that gives a donated input of the program."""
    return traced.operands[i - len(traced.consts)]


def run(traced, program: Program, args: list) -> list:
    """Call a program; donated arguments whose memory a result reuses lose their values.

    Args:
        traced: the signature.
        program: one of its programs.
        args: the inputs of the program, constants first.
    """
    if program.home is None:
        if traced.owner.donate_strict:
            check_held(args, program.donated, traced)
        for i in traced.donated_inputs:
            args[i] = own(args[i])
    outs = program(args)
    taken = Donation(traced.debug, traced.name, source.current())
    for i in program.donated:
        # a view keeps its memory alive where XLA could not reuse it
        args[i]._host = args[i]._buffer = None
        args[i]._extra = taken, _leaf(i, traced)
    return outs


def explain(error: Exception, name: str, args: tuple, kwargs: dict) -> None:
    """Note in XLA's error which arguments share memory with each other, or with an array that was donated."""
    if getattr(error, "__notes__", None):
        return
    first: dict[int, str] = {}
    for path, x in tree_flatten_with_path((args, kwargs))[0]:
        if type(x) is not ArrayImpl or x._buffer is None:
            continue
        at = f"{('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}"
        if x._buffer.is_deleted():
            error.add_note(
                f"{at} of {name}, {x.aval.str_short()}, shared its memory with an array that was donated or deleted. "
                "Give away a copy: x.copy(), or gradix.device_put(x, device, may_alias=False)."
            )
        elif id(x._buffer) in first:
            error.add_note(
                f"{first[id(x._buffer)]} and {at} of {name} are one array, {x.aval.str_short()}, whose memory cannot "
                "be given away while it is used twice. Pass a copy for one of them: x.copy()."
            )
        first.setdefault(id(x._buffer), at)


def follow(arrays: list, moved: list) -> None:
    """Take the values of donated arrays away where those that they were moved to lost theirs."""
    for x, y in zip(arrays, moved):
        if y is not x and type(y) is ArrayImpl and y.is_deleted():
            x._host = x._buffer = None
            x._extra = y._extra


def _reason(i: int, module, name: str) -> str:
    if i not in module.kept:
        return f"{name} does not use it"
    aval = module.in_avals[len(module.const_args) + module.kept.index(i)]
    same = [a for a in module.out_avals if a.size == aval.size and a.dtype.itemsize == aval.dtype.itemsize]
    if same:
        return f"the {len(same)} results of this size already live on other donated arguments"
    results = ", ".join([a.str_short() for a in module.out_avals])
    return f"no result of {name} has as many bytes; they are {results}"


def own(x: ArrayImpl) -> ArrayImpl:
    """A donated array whose memory XLA may write to; it is copied if the memory is used elsewhere.

    Cached numbers, NumPy's memory and memory that a view shows must not be written to.
    """
    if is_shared(x):
        x = ArrayImpl(x.host, x.aval)
    take_memory(x)
    if x._host is not None:
        if x._buffer is None:
            x._buffer = xla.put(x._host, x.aval)
        x._host = None
    return x


def check_held(args, donated, traced) -> None:
    """Raise for donated arrays that a NumPy view of the user still shows.

    XLA could not reuse their memory for a result.

    Args:
        args: the arguments of the program, constants first.
        donated: the numbers of the donated ones.

    Raises:
        ValueError: there are such arrays; they keep their values.
    """
    names, lines = traced.debug.arg_names, []
    for i in donated:
        x = args[i]
        if _is_viewed(x):
            leaf = _leaf(i, traced)
            name = names[leaf] if leaf < len(names) else f"number {leaf}"
            lines.append(
                f"  {x.aval.str_short()} of argument {name}: a NumPy view of it is in use, and its values must stay"
            )
    if lines:
        advice = f"  instead: keep np.array(x), a copy, in place of the view, or pass x.copy() to {traced.name}."
        raise ValueError("Some donated buffers were not usable:\n" + "\n".join([*lines, advice]))


def _is_viewed(x: ArrayImpl) -> bool:
    """Whether a NumPy view of the user shows the memory of the array's buffer."""
    return (
        x._buffer is not None
        and x._host is not None
        and is_fetched(x._host)
        and any(n > least for n, least in zip(_holders(x), _UNVIEWED))
    )


def _holders(x) -> list[int]:
    """The reference counts of an array's host form and of its base; each NumPy view holds one."""
    arrays = [x._host, x._host.base] if isinstance(x._host.base, np.ndarray) else [x._host]
    return [sys.getrefcount(a) for a in arrays]


_UNVIEWED = _holders(ArrayImpl(np.zeros(2)[:], None))
