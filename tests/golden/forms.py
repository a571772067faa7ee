"""What is recorded of a program: its jaxpr, and its lowered text without the names of values and functions."""

import re
from pathlib import Path

import gradix

from .programs import PROGRAMS

RECORDS = {kind: Path(__file__).with_name(f"{kind}.txt") for kind in ("traced", "lowered")}

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


def written(lowered) -> str:
    """The text of a program as it was written, without places; `as_text` has it printed by MLIR."""
    return re.sub(r' loc\("(?:[^"\\]|\\.)*"\)$', "", lowered._module.text, flags=re.MULTILINE)


def lowered(name: str) -> str:
    """The normalised text of one program, without what only some versions of jaxlib need."""
    f, *args = PROGRAMS[name]
    before = gradix.config.gradix_rewrites
    gradix.config.update("gradix_rewrites", "all,-keys_through_memory")
    try:
        return normalised(written(gradix.jit(f).lower(*args)))
    finally:
        gradix.config.update("gradix_rewrites", before)


def traced(name: str) -> str:
    """The jaxpr of one program, without the addresses of the functions it names."""
    f, *args = PROGRAMS[name]
    return re.sub(r" at 0x[0-9a-f]+", "", str(gradix.make_jaxpr(f)(*args)))


FORMS = {"traced": traced, "lowered": lowered}


def recorded(kind: str) -> dict[str, str]:
    """What the file of a kind holds, by program."""
    parts = RECORDS[kind].read_text().split("== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].rstrip("\n") for part in parts}


def write(kind: str, texts: dict[str, str]) -> None:
    RECORDS[kind].write_text("".join([f"== {name}\n{text}\n" for name, text in texts.items()]))
