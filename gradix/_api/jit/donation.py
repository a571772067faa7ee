"""Donated arguments: which of them no result can replace, and why."""
from __future__ import annotations

import warnings

from gradix._base import source


def check(module, traced) -> None:
    """Warn of donated arguments whose memory no result takes over; raise instead where the function is strict.

    Args:
        module: the lowered program.
        traced: what was lowered: its constants come before its arguments.

    Raises:
        ValueError: the function was jitted with donate_strict=True.
    """
    lost = [(i - len(traced.consts), _reason(i, module, traced.name)) for i in module.unusable_donations
            if traced.strict or i in module.kept]
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
    return f"no result of {name} has this shape and dtype; they are {', '.join([a.str_short() for a in module.out_avals])}"
