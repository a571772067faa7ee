"""Lowered text in a short form that does not depend on the names of values and functions."""

import re
from pathlib import Path

import gradix

from .programs import PROGRAMS

RECORD = Path(__file__).with_name("lowered.txt")

_VALUE = re.compile(r"%[A-Za-z_]*\d+")
_SYMBOL = re.compile(r"@[\w.$-]+")
_CONSTANT = re.compile(r'(%\w+) = "stablehlo\.constant"\(\) \{value = dense<(.*)> : (tensor<.*>)\} : \(\) -> .*')
_TYPES = re.compile(r" : \([^()]*\) -> ")
_TENSOR = re.compile(r"tensor<([^<>]*)>")
_ENUM = re.compile(r"\w+ = #\w+<(\w+) (\w+)>")


def normalised(text: str) -> str:
    """The text with values and functions numbered as they appear, constants where they are used, and less noise."""
    symbols, functions = {}, []
    for line in text.splitlines():
        if line.startswith("func.func"):
            functions.append([])
        if functions:
            functions[-1].append(line)
    if functions and functions[-1][-1] == "}":
        functions[-1].pop()  # the end of the module
    lines = [short for body in functions for short in _function(body, symbols)]
    return "\n".join(lines)


def _function(lines, symbols) -> list[str]:
    values, constants, out = {}, {}, []
    for line in lines:
        found = _CONSTANT.fullmatch(line)
        if found:
            name, value, kind = found.groups()
            constants[name] = f"{value}:{kind}"
            continue
        line = _VALUE.sub(lambda m: constants.get(m[0]) or values.setdefault(m[0], f"%{len(values)}"), line)
        line = _SYMBOL.sub(
            lambda m: "@main" if m[0] == "@main" else symbols.setdefault(m[0], f"@f{len(symbols)}"), line
        )
        out.append(_shorter(line))
    return out


def _shorter(line: str) -> str:
    line = re.sub(r'"(?:stablehlo|func|chlo)\.(\w+)"', r"\1", line)
    line = re.sub(r"^func\.func (public|private) ", r"func ", line)
    line = _TYPES.sub(" : ", line)
    line = _ENUM.sub(r"\2", line)
    return _TENSOR.sub(r"\1", line)


def lowered(name: str) -> str:
    """The normalised text of one program, without what only some versions of jaxlib need."""
    f, *args = PROGRAMS[name]
    before = gradix.config.gradix_rewrites
    gradix.config.update("gradix_rewrites", "all,-keys_through_memory")
    try:
        return normalised(gradix.jit(f).lower(*args).as_text())
    finally:
        gradix.config.update("gradix_rewrites", before)


def recorded() -> dict[str, str]:
    """What the file holds, by program."""
    parts = RECORD.read_text().split("== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].rstrip("\n") for part in parts}


def write(texts: dict[str, str]) -> None:
    RECORD.write_text("".join([f"== {name}\n{text}\n" for name, text in texts.items()]))
