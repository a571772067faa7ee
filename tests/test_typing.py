"""What a user's type checker sees: a marker of types, the members of arrays, and return types of public functions."""
import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradix
from tests import typical_programs

PACKAGE = Path(gradix.__file__).parent
INTERFACE = PACKAGE / "_core/array_interface.pyi"
# Members of `Array` itself, and what only the package uses.
OWN = {"shape", "dtype", "ndim", "size", "weak_type", "itemsize", "nbytes", "aval", "_committed", "__len__", "__setitem__",
       "__delitem__", "__copy__", "__deepcopy__", "__init_subclass__", "__dir__"}
PROGRAM = """
import gradix
import gradix.numpy as jnp
from gradix import Array, random

def loss(w: Array, x: Array) -> Array:
    return ((x @ w - 1.0) ** 2).mean().reshape(()) + abs(-x[0, 0]) * w.T.sum(axis=0)

x: Array = random.normal(random.key(0), (3, 2))
w: Array = jnp.zeros(2)
step: Array = gradix.jit(gradix.grad(loss))(w, x)
shape: tuple = step.shape
number: float = float(step[0])
text: str = step.astype(jnp.float32)
"""


def _parameters(node: ast.FunctionDef) -> list[str]:
    a = node.args
    stars = [x.arg for x in (a.vararg,) if x]
    return [*[x.arg for x in (*a.posonlyargs, *a.args)], *stars, *[x.arg for x in a.kwonlyargs]]


def _declared() -> dict[str, ast.FunctionDef]:
    tree = ast.parse(INTERFACE.read_text("utf-8"))
    cls = next(n for n in tree.body if isinstance(n, ast.ClassDef))
    return {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()


def test_the_interface_declares_the_members_that_arrays_have():
    for name in [*vars(gradix.Array)]:                             # methods are made when they are first asked for
        getattr(gradix.Array, name, None)
    members = {k: v for k, v in vars(gradix.Array).items() if k not in OWN and (callable(v) or isinstance(v, property))}
    found = _declared()
    assert found.keys() - members.keys() == set()
    assert {k for k in members.keys() - found.keys() if k != "__class__"} == set()
    for name, member in members.items():
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in found[name].decorator_list)
        assert is_property == isinstance(member, property), name
        if not is_property:
            assert _parameters(found[name]) == list(inspect.signature(member).parameters), name


FACES = ("gradix", "gradix.numpy", "gradix.numpy.linalg", "gradix.numpy.fft", "gradix.lax", "gradix.lax.linalg", "gradix.random",
         "gradix.nn", "gradix.nn.initializers", "gradix.scipy.linalg", "gradix.scipy.special", "gradix.scipy.stats", "gradix.scipy.signal",
         "gradix.scipy.optimize", "gradix.scipy.sparse.linalg", "gradix.tree", "gradix.tree_util", "gradix.sharding", "gradix.export",
         "gradix.debug", "gradix.experimental.checkify", "gradix.errors", "gradix.typing", "gradix.stages")


def _programs(folder: Path) -> list[str]:
    """Programs for checkers: those of users, and one that names each public name."""
    (folder / "typical_programs.py").write_text(Path(__file__).with_name("typical_programs.py").read_text("utf-8"))
    lines = []
    for i, face in enumerate(FACES):
        module = importlib.import_module(face)
        lines += [f"import {face} as m{i}", *[f"x = m{i}.{n}" for n, v in [(n, getattr(module, n)) for n in dir(module) if n[0] != "_"]
                                              if not inspect.ismodule(v) and getattr(v, "__module__", "") not in ("typing", "__future__")]]
    (folder / "names.py").write_text("from typing import Any\nx: Any\n" + "\n".join(lines))
    return ["typical_programs.py", "names.py"]


def test_programs_of_users_are_checked(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", "--check-untyped-defs",
               "--no-implicit-reexport", "--cache-dir", str(tmp_path / "cache"), "program.py", *_programs(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          env={"MYPYPATH": str(PACKAGE.parent), "PATH": ""})
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout + done.stderr
    assert lines[0].startswith("program.py:") and 'expression has type "Array", variable has type "str"' in lines[0]


def test_typical_programs_run():
    typical_programs.main()


def test_programs_of_users_are_checked_by_pyright(tmp_path):
    """By basedpyright, which is pyright with its own Node: that of the package `pyright` is fetched when it first runs."""
    pytest.importorskip("basedpyright")
    _programs(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for package in (PACKAGE, Path(np.__file__).parent):            # as installed: pyright then asks what a package exports
        (packages / package.name).symlink_to(package)
    (tmp_path / "pyrightconfig.json").write_text(
        '{"include": ["program.py", "typical_programs.py", "names.py"], "typeCheckingMode": "standard"}')
    done = subprocess.run([sys.executable, "-m", "basedpyright", "-p", ".", "--outputjson", "--pythonpath",
                           str(tmp_path / "env" / "bin" / "python")], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    told = json.loads(done.stdout)["generalDiagnostics"]
    wrong, = [t for t in told if t["severity"] == "error"]          # the last line of PROGRAM
    assert wrong["file"].endswith("program.py") and '"Array" is not assignable to "str"' in wrong["message"], told
