"""What a user's type checker sees: a marker of types, the members of arrays, and return types of public functions."""

import ast
import importlib
import inspect
import json
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

import gradix
from docs.site import public
from tests import typical_programs

PACKAGE = Path(gradix.__file__).parent
INTERFACE = PACKAGE / "_core/array_interface.pyi"
# Members of `Array` itself, and what only the package uses.
OWN = {
    "__treescope_ndarray_adapter__",  # what treescope asks arrays for, and no one else
    "__treescope_repr__",
    "__numpy_dtype__",  # what NumPy asks for, with a warning
    "shape",
    "dtype",
    "ndim",
    "size",
    "weak_type",
    "itemsize",
    "nbytes",
    "aval",
    "_committed",
    "__len__",
    "__setitem__",
    "__delitem__",
    "__copy__",
    "__deepcopy__",
    "__init_subclass__",
    "__dir__",
}
MOST_OPEN = 750  # parameters of public functions that take any object, such as refs of kernels
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

# Each line is a mistake that a checker has to find before the program runs.
WRONG = """
import functools
from collections.abc import Callable
import gradix
import gradix.numpy as jnp
from gradix import Array, lax, nn, random

def loss(w: Array, x: Array, scale: float = 1.0) -> Array:
    return scale * ((x @ w - 1.0) ** 2).mean()

@gradix.jit
def step(w: Array, x: Array) -> Array:
    return w - 0.1 * gradix.grad(loss)(w, x)

@functools.partial(gradix.jit, static_argnames="n")
def power(x: Array, *, n: int) -> Array:
    return x ** n

class Model:
    @gradix.jit
    def __call__(self, x: Array) -> Array:
        return x

@gradix.custom_vjp
def straight(x: Array, scale: float) -> Array:
    return x.round() * scale

@functools.partial(gradix.custom_jvp, nondiff_argnums=(1,))
def soft(x: Array, scale: float) -> Array:
    return x * scale

@gradix.custom_gradient
def double(x: Array) -> tuple[Array, Callable[[Array], tuple[Array]]]:
    return x * 2, lambda ct: (ct * 2,)

@gradix.custom_batching.custom_vmap
def rows(x: Array) -> Array:
    return x

w, x, key, model = jnp.zeros(2), jnp.ones((3, 2)), random.key(0), Model()
step(w, "oops")                                  # wrong
step(w)                                          # wrong
step(w, x, x)                                    # wrong
step(w, x).no_such_member                        # wrong
gradix.jit(loss)(w, "oops")                      # wrong
gradix.jit(loss, donate_argnums=0)(w, "oops")    # wrong
gradix.jit(loss, donate_argnum=0)(w, x)          # wrong
gradix.grad(loss)(w, "oops")                     # wrong
gradix.grad(loss)(w, x, scal=2.0)                # wrong
gradix.value_and_grad(loss)(w, "oops")           # wrong
gradix.vmap(loss, (None, 0))(w)                  # wrong
gradix.vmap(gradix.grad(loss))(w, "oops")        # wrong
gradix.checkpoint(loss)(w, "oops")               # wrong
gradix.hessian(loss)(w, "oops")                  # wrong
model("oops")                                    # wrong
straight(x, "oops")                              # wrong
straight(x)                                      # wrong
straight(x, 2.0).no_such_member                  # wrong
gradix.custom_jvp(loss)(w, "oops")               # wrong
soft(x, "oops")                                  # wrong too where `partial` is understood
gradix.jit(straight)(x, "oops")                  # wrong
double("oops")                                   # wrong
rows("oops")                                     # wrong
jnp.sum("abc")                                   # wrong
jnp.sum([1, 2])                                  # wrong
jnp.sum(x, axis="rows")                          # wrong
jnp.mean(x, keepdims=0.5)                        # wrong
jnp.sin("abc")                                   # wrong
jnp.add(x, "abc")                                # wrong
jnp.add(x)                                       # wrong
jnp.maximum(x, None)                             # wrong
jnp.less(x, "abc")                               # wrong
jnp.zeros("3")                                   # wrong
jnp.ones((2, 2.5))                               # wrong
jnp.zeros(3, dtype=32)                           # wrong
jnp.reshape(x, "6")                              # wrong
jnp.concatenate(3)                               # wrong
jnp.stack(["a", "b"])                            # wrong
jnp.clip(x, "low", 1.0)                          # wrong
jnp.dot(x, [1, 2])                               # wrong
jnp.linalg.inv("abc")                            # wrong
jnp.take(x, "abc")                               # wrong
jnp.argmax(x, axis=(0, 1))                       # wrong
lax.add(x, "abc")                                # wrong
lax.dot_general(x, x, 3)                         # wrong
lax.reshape(x, "6")                              # wrong
nn.relu("abc")                                   # wrong
nn.softmax(x, axis="rows")                       # wrong
nn.one_hot(x, "ten")                             # wrong
random.normal(0, (3,))                           # wrong
random.normal(key, "3")                          # wrong
random.split(key, "2")                           # wrong
random.uniform(key, (3,), minval="0")            # wrong
random.gamma(key)                                # wrong
x + "abc"                                        # wrong
x @ None                                         # wrong
x < "abc"                                        # wrong
x.sum(axis="rows")                               # wrong
x.astype(32)                                     # wrong
x.dot("abc")                                     # wrong
x.mean(out=x)                                    # wrong
power(x, n="two")                                # wrong too where `partial` is understood
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
    for name in [*vars(gradix.Array)]:  # methods are made when they are first asked for
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


FACES = (
    "gradix",
    "gradix.numpy",
    "gradix.numpy.linalg",
    "gradix.numpy.fft",
    "gradix.lax",
    "gradix.lax.linalg",
    "gradix.random",
    "gradix.nn",
    "gradix.nn.initializers",
    "gradix.scipy.linalg",
    "gradix.scipy.special",
    "gradix.scipy.stats",
    "gradix.scipy.signal",
    "gradix.scipy.optimize",
    "gradix.scipy.sparse.linalg",
    "gradix.tree",
    "gradix.tree_util",
    "gradix.sharding",
    "gradix.export",
    "gradix.debug",
    "gradix.experimental.checkify",
    "gradix.errors",
    "gradix.typing",
    "gradix.stages",
)


def _programs(folder: Path) -> list[str]:
    """Programs for checkers: those of users, and one that names each public name."""
    (folder / "typical_programs.py").write_text(Path(__file__).with_name("typical_programs.py").read_text("utf-8"))
    lines = []
    for i, face in enumerate(FACES):
        module = importlib.import_module(face)
        lines += [
            f"import {face} as m{i}",
            *[
                f"x = m{i}.{n}"
                for n, v in [(n, getattr(module, n)) for n in dir(module) if n[0] != "_"]
                if not inspect.ismodule(v) and getattr(v, "__module__", "") not in ("typing", "__future__")
            ],
        ]
    (folder / "names.py").write_text("from typing import Any\nx: Any\n" + "\n".join(lines))
    return ["typical_programs.py", "names.py"]


def test_programs_of_users_are_checked(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--no-error-summary",
        "--follow-imports=silent",
        "--check-untyped-defs",
        "--no-implicit-reexport",
        "--cache-dir",
        str(tmp_path / "cache"),
        "program.py",
        "wrong.py",
        *_programs(tmp_path),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={"MYPYPATH": str(PACKAGE.parent), "PATH": ""},
    )
    told = [line for line in done.stdout.splitlines() if ": error: " in line]
    lines = [line for line in told if not line.startswith("wrong.py:")]
    assert len(lines) == 1, done.stdout + done.stderr
    assert lines[0].startswith("program.py:") and 'expression has type "Array", variable has type "str"' in lines[0]
    found = {int(line.split(":")[1]) for line in told if line.startswith("wrong.py:")}
    assert _mistakes() <= found <= _mistakes("# wrong"), done.stdout


@pytest.mark.parametrize("kind", [gradix.custom_jvp, gradix.custom_vjp])
def test_custom_derivatives_are_types_of_functions(kind):
    """Of parameters and result, or of the result alone, as programs for JAX write it."""
    assert typing.get_args(kind[[float, int], gradix.Array]) == ((float, int), gradix.Array)
    assert typing.get_args(kind[gradix.Array]) == (..., gradix.Array)
    assert typing.get_origin(kind[gradix.Array]) is kind


def _mistakes(mark: str = "# wrong\n") -> set[int]:
    """The lines of WRONG that bear the mark."""
    return {i for i, line in enumerate(WRONG.splitlines(keepends=True), 1) if mark in line}


def test_typical_programs_run():
    typical_programs.main()


def test_programs_of_users_are_checked_by_pyright(tmp_path):
    """By basedpyright, which is pyright with its own Node: that of the package `pyright` is fetched when it first runs."""
    pytest.importorskip("basedpyright")
    _programs(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for package in (PACKAGE, Path(np.__file__).parent):  # as installed: pyright then asks what a package exports
        (packages / package.name).symlink_to(package)
    (tmp_path / "pyrightconfig.json").write_text(
        '{"include": ["program.py", "wrong.py", "typical_programs.py", "names.py"], "typeCheckingMode": "standard"}'
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "basedpyright",
            "-p",
            ".",
            "--outputjson",
            "--pythonpath",
            str(tmp_path / "env" / "bin" / "python"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    errors = [t for t in told if t["severity"] == "error"]
    (wrong,) = [t for t in errors if not t["file"].endswith("wrong.py")]  # the last line of PROGRAM
    assert wrong["file"].endswith("program.py") and '"Array" is not assignable to "str"' in wrong["message"], told
    found = {t["range"]["start"]["line"] + 1 for t in errors if t["file"].endswith("wrong.py")}
    assert _mistakes() <= found <= _mistakes("# wrong"), errors


def test_each_parameter_of_a_public_function_has_a_type():
    """And each result, unless overloads tell it: `jit`, `jvp`, `vjp`, `linearize`."""
    lacking, results, open_ones, seen = [], [], 0, 0
    for path, name in public.names().items():
        if name.kind != "function" or path != name.home or public.source_of(name.value) is None:
            continue
        signature = inspect.signature(inspect.unwrap(name.value))
        parameters = signature.parameters.values()
        lacking += [f"{path}({p.name})" for p in parameters if p.annotation is p.empty]
        results += [path] if signature.return_annotation is signature.empty else []
        open_ones += sum(str(p.annotation) == "Any" for p in parameters)
        seen += len(parameters)
    assert lacking == []
    assert set(results) <= {"gradix.jit", "gradix.jvp", "gradix.linearize", "gradix.vjp"}
    assert seen > 4000 and open_ones <= MOST_OPEN, open_ones
