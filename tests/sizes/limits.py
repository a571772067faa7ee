"""The sizes from which on gradix does something else, read from its source: `python -m tests.sizes.limits` lists them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "gradix"
FOLDERS = ("_platforms", "_runtime", "_ops", "_control", "_api", "numpy", "nn", "random", "lax", "scipy")
LEAST = 1 << 10


class Limit(NamedTuple):
    """A constant of a module that is a power of two from 1024 on."""

    module: str
    name: str
    value: int


def limits() -> list[Limit]:
    """Every constant `NAME = 1 << k` of a module, in elements, bytes or operations."""
    found = []
    for path in sorted(p for folder in FOLDERS for p in (PACKAGE / folder).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets, value = (node.targets, node.value) if isinstance(node, ast.Assign) else ([], None)
            targets = targets[0].elts if len(targets) == 1 and isinstance(targets[0], ast.Tuple) else targets
            values = value.elts if isinstance(value, ast.Tuple) and len(targets) > 1 else [value]
            for target, number in zip(targets, values):
                known = _number(number)
                if isinstance(target, ast.Name) and known is not None and known >= LEAST:
                    found.append(Limit(str(path.relative_to(PACKAGE)), target.id, known))
    return found


def _number(node) -> int | None:
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.LShift)
        and all(isinstance(n, ast.Constant) for n in (node.left, node.right))
    ):
        return node.left.value << node.right.value
    return None


if __name__ == "__main__":
    for limit in limits():
        print(f"{limit.value:>12} {limit.module}: {limit.name}")
