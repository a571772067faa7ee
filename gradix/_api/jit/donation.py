"""Donated arguments: which of them no result can replace, and why."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from gradix._base import source
from gradix._core.array import ArrayImpl, is_shared
from gradix._runtime import xla


def check(module, traced) -> None:
    """Warn of donated arguments whose memory no result takes over; raise instead where the function is strict.

    Args:
        module: the lowered program.
        traced: what was lowered: its constants come before its arguments.

    Raises:
        ValueError: the function was jitted with donate_strict=True.
    """
    lost = [
        (i - len(traced.consts), _reason(i, module, traced.name))
        for i in module.unusable_donations
        if traced.strict or i in module.kept
    ]
    if not lost:
        return
    names, lines = traced.debug.arg_names, []
    for i, why in lost:
        name = names[i] if i < len(names) else f"number {i}"
        lines.append(f"  {traced.avals[i].str_short()} of argument {name}: {why}")
    advice = "  instead: donate only arguments that a result of the same shape and dtype replaces."
    text = f"Some donated buffers were not usable: {', '.join([traced.avals[i].str_short() for i, _ in lost])}.\n"
    text += "\n".join([*lines, advice])
    if traced.strict:
        raise ValueError(text)
    at = source.current()
    warnings.warn_explicit(text, UserWarning, at.file, at.line)


def _reason(i: int, module, name: str) -> str:
    if i not in module.kept:
        return f"{name} does not use it"
    aval = module.in_avals[len(module.const_args) + module.kept.index(i)]
    same = [a for a in module.out_avals if a.shape == aval.shape and a.dtype == aval.dtype]
    if same:
        return f"the {len(same)} results of this type already live on other donated arguments"
    results = ", ".join([a.str_short() for a in module.out_avals])
    return f"no result of {name} has this shape and dtype; they are {results}"


def own(x: ArrayImpl) -> ArrayImpl:
    """A donated array with memory XLA may write to: no shared number, nor NumPy's, nor held by a view of ours."""
    if is_shared(x):
        x = ArrayImpl(x.host, x.aval)
    host = x._host
    if host is not None:
        if x._buffer is None or not _is_fetched(host) and xla.is_at(x._buffer, host):
            x._buffer = xla.put(host, x.aval)  # which copies, as XLA would, each time
        x._host = None
    return x


def check_held(args, donated, traced) -> None:
    """Raise for donated arrays that NumPy views of the user's still show: XLA would give the result other memory.

    Args:
        args: of the program, its constants first.
        donated: the numbers of those donated.

    Raises:
        ValueError: there are some; they keep their values.
    """
    names, n, lines = traced.debug.arg_names, len(traced.consts), []
    for i in donated:
        x = args[i]
        if _is_viewed(x):
            name = names[i - n] if i - n < len(names) else f"number {i - n}"
            lines.append(
                f"  {x.aval.str_short()} of argument {name}: a NumPy view of it is in use, and its values "
                "must stay"
            )
    if lines:
        advice = f"  instead: keep a copy, np.array(x), in place of the view, or give {traced.name} a copy, x.copy()."
        raise ValueError("Some donated buffers were not usable:\n" + "\n".join([*lines, advice]))


def _is_viewed(x: ArrayImpl) -> bool:
    """Whether a view of the user's shows the memory of the array's buffer."""
    return (
        x._buffer is not None
        and x._host is not None
        and _is_fetched(x._host)
        and any(n > least for n, least in zip(_holders(x), _UNVIEWED))
    )


def _holders(x) -> list[int]:
    """The number of references to the host form of an array and to its base, of which each NumPy view holds one."""
    arrays = [x._host, x._host.base] if isinstance(x._host.base, np.ndarray) else [x._host]
    return [sys.getrefcount(a) for a in arrays]


_UNVIEWED = _holders(ArrayImpl(np.zeros(2)[:], None))


def _is_fetched(host: np.ndarray) -> bool:
    """Whether an array looks at a buffer's memory, rather than the buffer at the array's."""
    base = host
    while isinstance(base, np.ndarray):
        base = base.base
    return base is not None
