"""The layers of the package, as data: which part may import which, and the other rules about files."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

_CORE = {"_base", "_core"}
_BELOW_API = _CORE | {"_stablehlo", "_ops", "_platforms", "_runtime", "_transforms", "_control"}
_INNER = _BELOW_API | {"_api"}

# Part -> what it may import of the package. A part absent here is a face (a root module or a package above numpy)
# and may import everything but `compat`.
ALLOWED = {
    "_base": set(),
    "_core": {"_base"},
    "_stablehlo": _CORE,
    "_ops": _CORE,
    "_platforms": _CORE | {"_stablehlo", "_ops"},
    "_runtime": _CORE | {"_stablehlo", "_platforms"},
    # What a selection cuts of a cotangent is told by masks: `cotangent_masks` is the one part that knows how. Values whose size is
    # decided inside of a program leave it as buffers: `counted` has the two operations for that.
    "_transforms": _CORE | {"_ops.basis", "_ops.cotangent_masks", "_ops.counted"},
    # A branch chosen per example is a selection, and the checkpoints of a loop are rows written and read at a place
    # known only when it runs: what those two need besides basis. Windows reduced by a program are cut out as slices for the
    # derivatives, and spelled as those reduced by one operation. What parts of a mesh hold alike is summed or divided in the
    # derivatives of programs of parts.
    "_control": _CORE
    | {
        "_ops.basis",
        "_ops.comparison",
        "_ops.convert",
        "_ops.indexing.dynamic_slicing",
        "_ops.indexing.slicing",
        "_ops.markers",
        "_ops.complex_parts",
        "_ops.cotangent_masks",
        "_ops.reductions",
        "_ops.select",
        "_ops.arithmetic",
        "_ops.collectives",
        "_ops.operands",
        "_ops.shape",
        "_ops.windows",
        "_transforms",
    },
    "_api": _BELOW_API,
    "lax": _INNER,
    "export": _INNER | {"lax"},
    "numpy": _CORE | {"_api", "lax"},
}
TOP = "compat"

_ARRAYS = {"numpy", "ml_dtypes"}
# Part -> packages of others it may import; parts absent here may use DEFAULT_OUTSIDE.
OUTSIDE = {"_base": set(), "_core": _ARRAYS, "_stablehlo": _ARRAYS}
DEFAULT_OUTSIDE = _ARRAYS | {"opt_einsum"}
JAXLIB_FILES = ("_base/tree.py", "_base/tree/*.py", "_runtime/xla*.py", "_runtime/xla*/*.py")
LAZY_IMPORTER = "_base/lazy.py"
# Runs other programs' imports: that is their job.
PROGRAM_RUNNERS = ("compat/*.py", "compat/internals/*.py", "compat.py", "__main__.py", "pytest.py")
MAX_LINES = 700


class Module:
    """One file: its dotted name, and each import as (line, dotted target, inside a function, for typing only)."""

    def __init__(self, path: Path, package: Path):
        self.relative = path.relative_to(package).as_posix()
        self.text = path.read_text(encoding="utf-8")
        parts = path.relative_to(package.parent).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.part = self.name.split(".")[1] if "." in self.name else ""
        self.imports: list[tuple[int, str, bool, bool]] = []
        self.dynamic: list[int] = []
        tree = ast.parse(self.text, str(path))
        self.late = list(_late_imports(tree))
        self._visit(tree, False, False)

    def _visit(self, node: ast.AST, inside: bool, typing: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                self.imports += [(child.lineno, a.name, inside, typing) for a in child.names]
            elif isinstance(child, ast.ImportFrom):
                base = self._base(child)
                self.imports += [(child.lineno, f"{base}.{a.name}", inside, typing) for a in child.names]
            elif isinstance(child, ast.Call) and _called(child) in ("__import__", "import_module"):
                self.dynamic.append(child.lineno)
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            checking = (
                isinstance(child, ast.If)
                and "TYPE_CHECKING" in ast.unparse(child.test)
                or isinstance(child, ast.With)
                and "on_demand" in ast.unparse(child.items[0])
            )
            self._visit(child, inside or function, typing or checking)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        above = self.name.split(".")
        above = above[: len(above) - node.level + self.is_package]
        return ".".join([*above, node.module] if node.module else above)


def _late_imports(tree: ast.Module):
    """The lines of imports below the first function or class of a file."""
    defined = False
    for node in tree.body:
        defined = defined or isinstance(node, (ast.FunctionDef, ast.ClassDef))
        if defined and isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node.lineno


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def read_modules(package: Path) -> list[Module]:
    return [Module(p, package) for p in sorted(package.rglob("*.py"))]


def _matches(module: Module, patterns) -> bool:
    return any(Path(module.relative).match(p) for p in patterns)


def _may_import(part: str, target: str) -> bool:
    """Whether a file of `part` may import `target`, a dotted name below the package."""
    top = target.split(".")[0]
    if top in (part, "_version"):
        return True
    if part == TOP:
        return True
    if part not in ALLOWED:
        return top != TOP or part in ("__main__", "pytest")
    return any(target == a or target.startswith(a + ".") for a in ALLOWED[part])


def wrong_edges(modules: list[Module], package: str) -> list[str]:
    found = []
    for m in modules:
        for line, target, _, _ in m.imports:
            top, _, rest = target.partition(".")
            where = f"{m.relative}:{line}"
            if top == package:
                # `gradix/__init__.py` holds the names of everything below; nothing imports it.
                if m.part and m.part != TOP and m.relative != "__main__.py" and not rest:
                    found.append(f"{where} imports {package} itself")
                elif rest and m.part and not _may_import(m.part, rest):
                    found.append(f"{where} ({m.part}) may not import {target}")
            elif top == "jaxlib":
                if not _matches(m, JAXLIB_FILES):
                    found.append(f"{where} imports jaxlib; only {', '.join(JAXLIB_FILES)} may")
            elif top not in sys.stdlib_module_names and top not in OUTSIDE.get(m.part, DEFAULT_OUTSIDE):
                found.append(f"{where} ({m.part or 'the root'}) may not import {target}")
    return found


def imports_in_functions(modules: list[Module]) -> list[str]:
    found = []
    for m in modules:
        if m.relative == LAZY_IMPORTER or _matches(m, PROGRAM_RUNNERS):
            continue
        found += [
            f"{m.relative}:{line} imports {target} inside a function; use gradix._base.lazy"
            for line, target, inside, _ in m.imports
            if inside
        ]
        found += [f"{m.relative}:{line} imports by name; use gradix._base.lazy" for line in m.dynamic]
    return found


def imports_at_the_bottom(modules: list[Module]) -> list[str]:
    return [
        f"{m.relative}:{line} imports below what it defines; imports stand at the top"
        for m in modules
        for line in m.late
    ]


def import_cycles(modules: list[Module]) -> list[str]:
    """Groups of modules that import each other; packages above a module do not count as imported."""
    names = {m.name for m in modules}
    graph = {
        m.name: sorted(
            {
                t
                for _, target, inside, typing in m.imports
                if not inside and not typing
                if (t := _module_of(target, names)) and t != m.name
            }
        )
        for m in modules
    }
    return [" -> ".join(sorted(group)) for group in strongly_connected(graph) if len(group) > 1]


def _module_of(target: str, names: set[str]) -> str | None:
    """The module `from a.b import c` loads: a.b.c where that is a module, else a.b."""
    if target in names:
        return target
    above = target.rpartition(".")[0]
    return above if above in names else None


def strongly_connected(graph: dict[str, list[str]]) -> list[list[str]]:
    """Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            groups.append(stack[cut:])
            del stack[cut:]

    for node in graph:
        if node not in index:
            visit(node)
    return groups


def long_files(modules: list[Module]) -> list[str]:
    """Files over the limit whose first line does not say why with the words "long because"."""
    return [
        f"{m.relative} has {n} lines, {MAX_LINES} at most; split it, or let its first line say 'long because ...'"
        for m in modules
        if (n := m.text.count("\n")) > MAX_LINES and "long because" not in m.text.partition("\n")[0]
    ]


CHECKS = {
    "edges": lambda modules: wrong_edges(modules, "gradix"),
    "functions": imports_in_functions,
    "late": imports_at_the_bottom,
    "cycles": import_cycles,
    "lengths": long_files,
}


@pytest.fixture(scope="module")
def modules():
    return read_modules(ROOT / "gradix")


@pytest.mark.parametrize("check", CHECKS)
def test_package(check, modules):
    found = CHECKS[check](modules)
    assert not found, "\n" + "\n".join(found)


# ---------------------------------------------------------------- the checks themselves find what they are for
def _findings(tmp_path, files: dict[str, str]) -> list[str]:
    package = tmp_path / "gradix"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    read = read_modules(package)
    return [line for check in CHECKS.values() for line in check(read)]


GOOD = {
    "__init__.py": "from gradix import numpy as numpy\n",
    "_base/lazy.py": "def lazy_module(name):\n    import importlib\n    return importlib.import_module(name)\n",
    "_base/tree.py": "from jaxlib import pytree\n",
    "_core/aval.py": "import numpy as np\nfrom gradix._base import tree\n",
    "_ops/basis.py": "from . import families\n",
    "_ops/families.py": "from gradix._core.aval import x\n",
    "_transforms/jvp.py": "from gradix._ops.basis import add\nfrom gradix._ops import basis\n",
    "_runtime/xla.py": "import jaxlib.xla_client\n",
    "_api/jit/jit.py": "from .._runtime import xla\n",
    "numpy/__init__.py": "from gradix._api import jit\nfrom gradix import lax\n",
    "lax.py": "from gradix._control import scan\n",
    "dtypes.py": "from gradix._core.aval import x\n",
    "compat/__init__.py": "import gradix\nfrom gradix import numpy\n",
}


def test_a_lawful_tree_passes(tmp_path):
    assert _findings(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_base/config.py", "import numpy\n"),
        ("_base/config.py", "from gradix._core import aval\n"),
        ("_base/config.py", "from .._core import aval\n"),
        ("_core/array.py", "import scipy\n"),
        ("_core/array.py", "import jax\n"),
        ("_core/array.py", "import jaxlib\n"),
        ("_core/array.py", "import gradix\n"),
        ("_core/array.py", "from gradix import numpy\n"),
        ("_core/array.py", "from gradix.dtypes import x\n"),
        ("_core/array.py", "def f():\n    import os\n"),
        ("_core/array.py", "from importlib import import_module\nimport_module('scipy')\n"),
        ("_core/array.py", "class A:\n    def f(self):\n        from math import pi\n"),
        ("_core/array.py", "x = 1\n" * (MAX_LINES + 1)),
        ("_core/array.py", "def f():\n    pass\nfrom math import pi\n"),
        ("_base/tree.py", "from . import lazy\nfrom . import other\n@_other\ndef f(): pass\n"),
        ("_ops/sine.py", "from gradix._stablehlo import emit\n"),
        ("_transforms/jvp.py", "from gradix._ops import families\n"),
        ("_transforms/jvp.py", "from gradix._ops import basis, families\n"),
        ("_transforms/jvp.py", "from gradix._runtime import xla\n"),
        ("_control/scan.py", "from gradix._runtime import xla\n"),
        ("_runtime/host.py", "import jaxlib\n"),
        ("_runtime/host.py", "from gradix._ops import basis\n"),
        ("numpy/linalg.py", "from gradix._ops import basis\n"),
        ("numpy/linalg.py", "from gradix.random import normal\n"),
        ("lax.py", "from gradix import numpy\n"),
        ("nn/__init__.py", "import gradix.compat\n"),
        ("nn/__init__.py", "import scipy.special\n"),
    ],
)
def test_an_unlawful_import_is_found(tmp_path, name, text):
    files = {**GOOD, name: text}
    if "other" in text:
        files["_base/other.py"] = "from gradix._base import tree\n"
    assert _findings(tmp_path, files)


def test_a_cycle_is_named_but_not_one_for_typing_only(tmp_path):
    files = {
        "_core/a.py": "from gradix._core import b\n",
        "_core/b.py": "from gradix._core.c import x\n",
        "_core/c.py": "import gradix._core.a\n",
    }
    assert _findings(tmp_path / "1", files) == ["gradix._core.a -> gradix._core.b -> gradix._core.c"]
    files["_core/c.py"] = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import gradix._core.a\n"
    assert _findings(tmp_path / "2", files) == []


def test_a_long_file_may_say_why(tmp_path):
    assert not _findings(tmp_path, {"_core/a.py": '"""Tables, long because they are data."""\n' + "x = 1\n" * 600})


# -- operations say what they mean, platforms how a compiler is asked ------------------------------------------------------

_TUNING = re.compile(
    r"\bem\.(tunes|tuned_platform|platform|kernel|host_kernel|has_host_kernels)\b|\"(cpu|gpu|cuda|rocm|tpu)\""
)
_ATTRIBUTES = re.compile(r"#stablehlo|#sdy|array<i64|dense<|: i64\b")


def _operations():
    folder = ROOT / "gradix" / "_ops"
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.py"))}


def test_operations_know_no_platform():
    """Only `platform.py` may: its operation, of `platform_dependent`, means the platform itself. All else is in `_platforms`."""
    assert not [name for name, text in _operations().items() if name != "platform.py" and _TUNING.search(text)]


def test_operations_write_attributes_in_lowering_rules_only():
    """The text of the compiler stands in functions of the emitter, `em`, beside the operation that alone needs it."""
    for name, text in _operations().items():
        tree = ast.parse(text)
        rules = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and "em" in [a.arg for a in f.args.args]]
        inside = {id(n) for f in rules for n in ast.walk(f)}
        written = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and _ATTRIBUTES.search(n.value)
        ]
        assert not [n.lineno for n in written if id(n) not in inside], name


def test_the_index_of_operations_names_every_file_by_its_first_line():
    index = (ROOT / "gradix" / "_ops" / "README.md").read_text(encoding="utf-8")
    for name, text in _operations().items():
        if not name.endswith("__init__.py"):
            line = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
            assert f"]({name}) | {line} |" in index, f"_ops/README.md: the line of {name} is to be: {line}"
