"""`python -m gradix check --fix`: writes what replaces a name that JAX has removed, where that is one name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

from gradix.compat.check import Missing, Uses, check_source, why_missing
from gradix.compat.removed import instead_of
from gradix.extend import core as extend_core

_NAME = re.compile(r"jax(\.\w+)+")


def replacement(name: str) -> str | None:
    """The name `jax...` that stands for a removed one; None if there is none, or not one alone.

    Example:
        >>> replacement("jax.tree_map"), replacement("jax.experimental.stax.Dense")
        ('jax.tree.map', 'jax.example_libraries.stax.Dense')
    """
    parts = name.split(".")[1:]
    new = None
    if parts[0] == "core" and len(parts) > 1 and hasattr(extend_core, parts[1]):
        new = ".".join(["jax.extend", *parts])
    for n in range(len(parts), 0, -1):
        instead = instead_of(".".join(parts[:n]))
        if new is None and instead is not None and _NAME.fullmatch(instead):
            new = ".".join([instead, *parts[n:]])
    return new if new is not None and why_missing(new) is None else None


class _Edit(NamedTuple):
    """A part of a text, between two places (line, byte of the line), and what replaces it."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class _Fixes(Uses):
    """Collects the edits of a file."""

    def __init__(self, path: str):
        super().__init__(path)
        self.edits: list[_Edit] = []

    def _edit(self, node: ast.expr | ast.stmt, text: str) -> None:
        start = node.lineno, node.col_offset
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        self.edits.append(_Edit(start, end, text))

    def report(self, node: ast.AST, name: str) -> bool:
        there = super().report(node, name)
        if not there and not self.guards and isinstance(node, ast.Attribute):
            new = replacement(name)
            text = self._in_scope(new) if new is not None else None
            if text is not None:
                self._edit(node, text)
        return there

    def _in_scope(self, name: str) -> str | None:
        """A dotted name as this place of the file can write it."""
        known = {key: there for scope in self.scopes for key, there in scope.items()}
        fits = [(there, key) for key, there in known.items() if there and f"{name}.".startswith(f"{there}.")]
        if not fits:
            return None
        there, key = max(fits, key=lambda pair: len(pair[0]))
        return key + name[len(there) :]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        super().visit_ImportFrom(node)
        module = node.module or ""
        if node.level or module.split(".")[0] != "jax" or self.guards:
            return
        names: dict[str, list[str]] = {module: []}
        for alias in node.names:
            is_all = alias.name == "*"
            name = module if is_all else f"{module}.{alias.name}"
            new = replacement(name) if why_missing(name) is not None else None
            if new is None:
                names[module].append(_written(alias))
            elif is_all:
                names.setdefault(new, []).append("*")
            else:
                where, _, found = new.rpartition(".")
                own = alias.asname or alias.name
                names.setdefault(where, []).append(_written(ast.alias(found, own)))
        if len(names) > 1:
            lines = [f"from {m} import {', '.join(found)}" for m, found in names.items() if found]
            self._edit(node, ("\n" + " " * node.col_offset).join(lines))

    def visit_Import(self, node: ast.Import) -> None:
        super().visit_Import(node)
        if self.guards:
            return
        new = {
            alias: replacement(alias.name)
            for alias in node.names
            if alias.asname and alias.name.startswith("jax.") and why_missing(alias.name)
        }
        if any(new.values()):
            names = [_written(ast.alias(new.get(a) or a.name, a.asname)) for a in node.names]
            self._edit(node, f"import {', '.join(names)}")


def _written(alias: ast.alias) -> str:
    own = alias.asname
    return f"{alias.name} as {own}" if own and own != alias.name else alias.name


def fixed_source(source: bytes, path: str = "<string>") -> bytes:
    """The text of a file with names that JAX has removed replaced, where one name stands for each.

    What is in code that expects names to be missing stays as it is, and so does a file that is not
    valid Python in UTF-8.

    Example:
        >>> fixed_source(b"import jax\\njax.tree_map(f, x)\\n")
        b'import jax\\njax.tree.map(f, x)\\n'
    """
    try:
        source.decode("utf-8")
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError):
        return source
    fixes = _Fixes(path)
    fixes.visit(tree)
    lines = source.splitlines(keepends=True)
    for edit in sorted(set(fixes.edits), reverse=True):
        (first, a), (last, b) = edit.start, edit.end
        before, after = lines[first - 1][:a], lines[last - 1][b:]
        if "\n" in edit.text and (before.strip() or after.strip()[:1] not in (b"", b"#")):
            continue  # the statement shares its line with others
        whole = before + edit.text.encode() + after
        lines[first - 1 : last] = [whole]
    fixed = b"".join(lines)
    try:
        ast.parse(fixed, path)
    except SyntaxError:
        return source
    return fixed


def fix(files: list[Path]) -> tuple[list[Missing], list[Missing]]:
    """Replace names in files; returns the uses that are gone, and those that are left."""
    gone, left = [], []
    for file in files:
        source = file.read_bytes()
        fixed = fixed_source(source, str(file))
        after = check_source(fixed, str(file))
        if fixed != source:
            file.write_bytes(fixed)
            remaining = [m._replace(line=0) for m in after]
            for use in check_source(source, str(file)):
                if use._replace(line=0) in remaining:
                    remaining.remove(use._replace(line=0))
                else:
                    gone.append(use)
        left += after
    return gone, left
