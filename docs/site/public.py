"""The public names of Gradix: which modules users import, what each lists, and where a name is at home."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import gradix
from docs.site import elsewhere
from gradix._core.primitive import Primitive

ROOT = Path(gradix.__file__).resolve().parent.parent

# Files that public packages are made of, which are imported through these.
PARTS = (
    "numpy", "random", "nn", "ops", "export", "scipy.special", "scipy.linalg", "scipy.signal", "scipy.optimize",
    "scipy.sparse.linalg", "scipy.spatial.transform", "scipy.stats", "extend.mlir",
)  # fmt: skip
PUBLIC_PARTS = ("numpy.linalg", "numpy.fft", "nn.initializers")


class Name(NamedTuple):
    """One public name, such as `gradix.numpy.sum`."""

    path: str
    value: Any
    kind: str  # function, class, exception, primitive or value
    home: str  # the path of the same object that its page describes it under

    @property
    def module(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def last(self) -> str:
        return self.path.rpartition(".")[2]


def public_modules() -> list[str]:
    """The names of the modules that users import, without `gradix.`; distributions of `scipy.stats` among them.

    Without `pytest`, whose import takes the place of jax in this process.
    """
    found = []
    for module in pkgutil.walk_packages(gradix.__path__, "gradix."):
        name = module.name.partition(".")[2]
        package, _, last = name.rpartition(".")
        made_of = any(name.startswith(p + ".") for p in PARTS) and name not in PUBLIC_PARTS
        if package == "scipy.stats":
            made_of = last in ("operands", "samples", "density_estimates")
        private = any(part.startswith("_") for part in name.split("."))
        if name != "pytest" and not made_of and name.partition(".")[0] != "compat" and not private:
            found.append(name)
    return found


@cache
def modules() -> dict[str, list[str]]:
    """The full name of each public module that lists anything, and the names that it lists."""
    found = {}
    for name in ("gradix", *sorted(f"gradix.{m}" for m in public_modules())):
        module = importlib.import_module(name)
        listed = [n for n in dir(module) if n.isidentifier() and not n.startswith("_")]
        own = sorted(n for n in listed if not isinstance(getattr(module, n), ModuleType))
        if own:
            found[name] = own
    return found


def kind_of(value: Any) -> str:
    """What a public name is: a function, a class, an exception, a primitive or a value."""
    if isinstance(value, Primitive):
        return "primitive"
    if typing.get_origin(value) is not None or value is Any:
        return "value"
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) and hasattr(value, "__name__") else "value"


@cache
def names() -> dict[str, Name]:
    """Every public name by its path."""
    values = {f"{m}.{n}": getattr(importlib.import_module(m), n) for m, own in modules().items() for n in own}
    paths: dict[int, list[str]] = {}
    for path, value in values.items():
        paths.setdefault(id(value), []).append(path)
    return {path: Name(path, value, kind_of(value), _home(value, paths[id(value)])) for path, value in values.items()}


def _home(value: Any, paths: list[str]) -> str:
    """The one path of several that says most: where the object says that it is made, or else the least deep."""
    made = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    if made in paths:
        return made
    # An object whose name is told by a path comes before its further names; then the order of the letters decides.
    own = getattr(value, "__name__", "")
    return min(paths, key=lambda p: (not p.endswith("." + own), p.count("."), ".extend." in p, p))


def source_of(value: Any) -> tuple[str, int] | None:
    """The file, from the root of the repository, and the line where an object is made; None for what is not made here."""
    value = inspect.unwrap(value) if callable(value) else value
    if inspect.isclass(value):
        return _source_of_class(value)
    # Universal functions and the like hold the function that they call.
    inner = [value, *(getattr(value, a, None) for a in ("__wrapped__", "_function", "func", "fun"))]
    code = next((f.__code__ for f in inner if hasattr(f, "__code__")), None)
    return None if code is None else _in_repository(code.co_filename, code.co_firstlineno)


def _source_of_class(value: type) -> tuple[str, int] | None:
    """Classes may name the public module as their own, so the code of their methods tells the file."""
    codes = [getattr(inspect.unwrap(f), "__code__", None) for f in vars(value).values() if callable(f)]
    files = {c.co_filename for c in codes if c is not None and value.__qualname__ in c.co_qualname}
    for file in sorted(files):
        lines = Path(file).read_text(encoding="utf-8").splitlines() if Path(file).exists() else []
        start = re.compile(rf"\s*class {re.escape(value.__name__)}\b")
        for number, line in enumerate(lines, 1):
            if start.match(line):
                return _in_repository(file, number)
    return None


def _in_repository(file: str, line: int) -> tuple[str, int] | None:
    path = Path(file).resolve()
    return (path.relative_to(ROOT).as_posix(), line) if path.is_relative_to(ROOT / "gradix") else None


def summary_of(name: Name) -> str:
    """The first sentence or line of what the docstring says."""
    if name.kind == "primitive":
        return f"The primitive `{name.value.name}`."
    text = docstring(name)
    return " ".join(text.split("\n\n")[0].split()) if text else ""


def docstring(name: Name) -> str:
    """The object's own docstring; nothing for values, whose classes have one that is not theirs."""
    if name.kind == "value" and not vars(type(name.value)).get("__call__"):
        return ""
    if name.home in elsewhere.TEXTS:
        return elsewhere.TEXTS[name.home].strip()
    return inspect.getdoc(name.value) or ""
