"""`import gradix, gradix.numpy` loads what a first program needs; the rest is loaded when it is named."""
import ast
import json
import subprocess
import sys
from pathlib import Path

import gradix

FIRST_PROGRAM = "import gradix, gradix.numpy as jnp; gradix.jit(gradix.grad(lambda x: jnp.sin(x).sum()))(jnp.ones(3))"
MOST = 365                      # modules of ours
LATER = ("scipy", "nn", "random", "image", "interpreters", "export", "experimental", "extend", "distributed", "_api.mapping.pmap",
         "_api.mapping.shard_map", "_api.derivatives.hessians")


def loaded(program: str) -> list[str]:
    code = f"{program}\nimport json, sys; print(json.dumps([m for m in sys.modules if m.startswith('gradix')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_first_program_loads_little():
    modules = loaded(FIRST_PROGRAM)
    assert len(modules) <= MOST, f"{len(modules)} modules: load what a first program does not need when it is named"
    assert not [m for m in modules if any(m == f"gradix.{name}" or m.startswith(f"gradix.{name}.") for name in LATER)]


def test_what_is_named_is_loaded_in_any_way():
    program = "import gradix; a = gradix.scipy; from gradix import nn; import gradix.random as r; b = gradix.hessian, gradix.pmap"
    assert {"gradix.scipy", "gradix.nn", "gradix.random", "gradix._api.mapping.pmap"} <= set(loaded(program))


def test_all_names_are_listed_and_there():
    names = dir(gradix)
    assert {"scipy", "export", "hessian", "pmap", "jit"} <= set(names)
    for name in names:
        getattr(gradix, name)
    try:
        gradix.no_such_name  # noqa: B018
    except AttributeError as e:
        assert "no attribute 'no_such_name'" in str(e)
    else:
        raise AssertionError


def test_type_checkers_see_what_is_loaded_later():
    tree = ast.parse(Path(gradix.__file__).read_text(encoding="utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test))
    told = {a.asname or a.name for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    namespace = vars(gradix)
    assert told == {*namespace["_LATER"], *namespace["_ELSEWHERE"]}
