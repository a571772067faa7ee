"""What a user's type checker sees: a marker of types, the members of arrays, and return types of public functions."""
import ast
import inspect
import subprocess
import sys
from pathlib import Path

import gradix
import gradix.numpy as jnp

PACKAGE = Path(gradix.__file__).parent
INTERFACE = PACKAGE / "_core/array_interface.pyi"
# Members of `Array` itself, and what only the package uses.
OWN = {"shape", "dtype", "ndim", "size", "weak_type", "itemsize", "nbytes", "aval", "_committed", "__len__", "__setitem__",
       "__delitem__", "__copy__", "__deepcopy__", "__init_subclass__"}
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
    jnp.ones(1)
    members = {k: v for k, v in vars(gradix.Array).items() if k not in OWN and (callable(v) or isinstance(v, property))}
    found = _declared()
    assert found.keys() - members.keys() == set()
    assert {k for k in members.keys() - found.keys() if k != "__class__"} == set()
    for name, member in members.items():
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in found[name].decorator_list)
        assert is_property == isinstance(member, property), name
        if not is_property:
            assert _parameters(found[name]) == list(inspect.signature(member).parameters), name


def test_a_users_program_is_checked(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"),
               str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          env={"MYPYPATH": str(PACKAGE.parent), "PATH": ""})
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout + done.stderr
    assert 'expression has type "Array", variable has type "str"' in lines[0]
