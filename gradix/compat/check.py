"""`python -m gradix check`: the names of JAX that a code base uses and gradix lacks."""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from gradix.compat import elsewhere
from gradix.compat.internals import is_mapped, lookup, use_of
from gradix.compat.removed import why_removed
from gradix.extend import core as extend_core

_ABOUT_THE_MODULE = {"__version__", "__version_info__", "__file__", "__name__", "__path__", "__dict__", "__doc__"}
_CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"}


class Missing(NamedTuple):
    """A use of a name that gradix lacks.

    Attributes:
        path, line: where the use is.
        name: the dotted name, `jax...`.
        why: why the name is missing.
        guarded: whether the code seems to expect that it may be missing.
    """

    path: str
    line: int
    name: str
    why: str
    guarded: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}: {self.why}" + (" (guarded)" if self.guarded else "")


def why_missing(name: str) -> str | None:
    """Why gradix lacks the dotted name `jax...`, or None if it has it.

    Example:
        >>> why_missing("jax.numpy.sin") is None
        True
        >>> why_missing("jax.numpy.no_such")
        'gradix.numpy has no no_such'
    """
    there: object = importlib.import_module("gradix")
    path = "gradix"
    if name == "jax.lib" or name.startswith("jax.lib.__"):
        return None
    for part in name.split(".")[1:]:
        if not isinstance(there, ModuleType) or part in _ABOUT_THE_MODULE:
            # The attributes of classes and values are not checked.
            return None
        if (path, part) == ("gradix", "_src"):
            return _why_internal(name.split(".")[2:])
        if part.startswith("_") or (path, part) == ("gradix", "compat"):
            return "is internal to JAX; public names are in jax, jax.extend and jax.interpreters"
        found = _member(there, path, part)
        if found is None:
            absent = elsewhere.find(f"{path}.{part}"[len("gradix.") :])
            if absent is not None:
                return f"can be imported but not used: it {absent.what}"
            return _why_removed(name) or f"{path} has no {part}"
        there, path = found[0], f"{path}.{part}"
    return None


def _why_removed(name: str) -> str | None:
    """Why `jax...` is missing, if JAX has removed it or the module or class that contains it."""
    parts = name.split(".")[1:]
    if parts[0] == "core" and len(parts) > 1 and hasattr(extend_core, parts[1]):
        return f"JAX has removed it too; write jax.extend.core.{parts[1]}"
    reasons = [why_removed(".".join(parts[:n])) for n in range(len(parts), 0, -1)]
    return next(filter(None, reasons), None)


def _why_internal(parts: list[str]) -> str | None:
    """As `why_missing`, for the parts of a name below `jax._src`."""
    area = ""
    for part in parts:
        below = f"{area}.{part}".lstrip(".")
        if is_mapped(below):
            area = below
            continue
        try:
            lookup(area, part)
        except LookupError:
            use = use_of(f"{below}")
            what = f", used for {use.purpose}; the public way: {use.instead}" if use else ""
            public = "; public names are in jax, jax.extend and jax.interpreters"
            return f"is internal to JAX and not mapped{what or public}"
        return None
    return None


def check_paths(paths: Iterable[str | os.PathLike]) -> list[Missing]:
    """The uses of names that gradix lacks, in files and in all `.py` files below folders.

    Args:
        paths: files or folders; nothing in them is imported or run.

    Returns:
        A list with a `Missing` for each use, ordered by file and line.

    Raises:
        FileNotFoundError: a path does not exist.
    """
    return [m for file in files_of(paths) for m in check_source(file.read_bytes(), str(file))]


def check_source(source: str | bytes, path: str = "<string>") -> list[Missing]:
    """The uses of names that gradix lacks, in the text of a file.

    Args:
        source: the text. If it is not valid Python, that is the one finding.
        path: the path that the findings name.

    Example:
        >>> print(*check_source("import jax.numpy as jnp\\njnp.no_such(1)"))
        <string>:2: jax.numpy.no_such: gradix.numpy has no no_such
    """
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError) as e:
        return [Missing(path, getattr(e, "lineno", None) or 1, "syntax", f"cannot be read as Python: {e}")]
    uses = Uses(path)
    uses.visit(tree)
    return sorted(set(uses.missing), key=lambda m: (m.line, m.name))


def files_of(paths: Iterable[str | os.PathLike]) -> Iterator[Path]:
    """The files, and all `.py` files below the folders."""
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"no such file or folder: {str(path)!r}. Pass existing paths.")
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _member(module: ModuleType, path: str, part: str) -> tuple[object] | None:
    try:
        return (getattr(module, part),)
    except AttributeError:
        pass
    try:
        return (importlib.import_module(f"{path}.{part}"),)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{path}.{part}.".startswith(e.name + "."):
            raise
        return None


class Uses(ast.NodeVisitor):
    """Tracks what the names of a file refer to, scope by scope."""

    def __init__(self, path: str):
        self.path, self.guards = path, 0
        # For each scope, the dotted name of JAX that a name refers to, or None.
        self.scopes: list[dict[str, str | None]] = [{}]
        self.missing: list[Missing] = []

    def report(self, node: ast.AST, name: str) -> bool:
        """Note the use of a name `jax...` if gradix lacks it; returns whether gradix has it."""
        why = why_missing(name)
        if why is not None:
            self.missing.append(Missing(self.path, getattr(node, "lineno", 1), name, why, self.guards > 0))
        return why is None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            ours = alias.name.split(".")[0] == "jax"
            there = ours and self.report(node, alias.name)
            if alias.asname:
                self.scopes[-1][alias.asname] = alias.name if there else None
            else:
                self.scopes[-1][alias.name.split(".")[0]] = "jax" if ours else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        ours = not node.level and (node.module or "").split(".")[0] == "jax"
        there = ours and (why_missing(node.module or "") is None or self.report(node, node.module or ""))
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            known = there and alias.name != "*" and self.report(node, name)
            self.scopes[-1][alias.asname or alias.name] = name if known else None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, base = [node.attr], node.value
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        meaning = self._meaning(base.id) if isinstance(base, ast.Name) else None
        if meaning:
            self.report(node, ".".join([meaning, *reversed(parts)]))
        else:
            self.visit(base)

    def _meaning(self, name: str) -> str | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.scopes[-1][node.id] = None

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        for outside in [*getattr(node, "decorator_list", []), getattr(node, "returns", None)]:
            if outside is not None:
                self.visit(outside)
        self.visit(node.args)
        a = node.args
        arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        self.scopes.append({x.arg: None for x in arguments})
        for child in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(child)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_Lambda = visit_FunctionDef

    def visit_Try(self, node: ast.Try) -> None:
        caught = any(
            h.type is None or {n.id for n in ast.walk(h.type) if isinstance(n, ast.Name)} & _CAUGHT
            for h in node.handlers
        )
        self.guards += caught
        for child in node.body:
            self.visit(child)
        self.guards -= caught
        for child in [*node.handlers, *node.orelse, *node.finalbody]:
            self.visit(child)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        asks = any(
            isinstance(n, ast.Name)
            and n.id in ("hasattr", "TYPE_CHECKING")
            or isinstance(n, ast.Attribute)
            and n.attr in ("__version__", "__version_info__", "TYPE_CHECKING")
            for n in ast.walk(node.test)
        )
        self.guards += asks
        for child in [*node.body, *node.orelse]:
            self.visit(child)
        self.guards -= asks
