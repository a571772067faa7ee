"""`import gradix, gradix.numpy` loads what a first program needs; the rest is loaded when it is named."""

import ast
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradix
from gradix._base.lazy import on_demand

FIRST_PROGRAM = "import gradix, gradix.numpy as jnp; gradix.jit(gradix.grad(lambda x: jnp.sin(x).sum()))(jnp.ones(3))"
MOST_SERVING = 254  # modules of ours that reading an exported file and calling it load
MOST_IMPORTED, MOST = 151, 227  # modules of ours: of the import, and of a first compiled program
LATER = (
    "scipy",
    "nn",
    "random",
    "image",
    "interpreters",
    "export",
    "experimental",
    "extend",
    "distributed",
    "_api.mapping.pmap",
    "_api.mapping.shard_map",
    "_api.derivatives.hessians",
)


def loaded(program: str) -> list[str]:
    code = f"{program}\nimport json, sys; print(json.dumps([m for m in sys.modules if m.startswith('gradix')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_import_loads_little():
    modules = loaded("import gradix, gradix.numpy")
    assert len(modules) <= MOST_IMPORTED, f"{len(modules)} modules: load what the import does not need when it is named"


@pytest.mark.parametrize(
    ("program", "more"), [("import gradix, gradix.numpy", {"logging", "json"}), (FIRST_PROGRAM, set())]
)
def test_little_of_others_is_loaded(program, more):
    """Beside NumPy and jaxlib: `importlib.metadata` alone would bring what reads e-mail, archives and sockets."""
    code = (
        f"import sys, numpy, jaxlib._jax, ml_dtypes; before = set(sys.modules); {program}\n"
        "print(*{m.split('.')[0] for m in set(sys.modules) - before} - {'gradix'})"
    )
    found = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not found & {"email", "zipfile", "socket", "tempfile", "scipy", "concurrent", "multiprocessing", *more}, (
        found
    )


def test_a_first_program_loads_little():
    modules = loaded(FIRST_PROGRAM)
    assert len(modules) <= MOST, f"{len(modules)} modules: load what a first program does not need when it is named"
    assert not [m for m in modules if any(m == f"gradix.{name}" or m.startswith(f"gradix.{name}.") for name in LATER)]


def test_a_process_that_serves_an_exported_file_loads_little(tmp_path):
    """Nothing that traces with symbolic shapes, differentiates or exports, nor the Python classes of the compiler's operations."""
    path = tmp_path / "model.bin"
    (n,) = gradix.export.symbolic_shape("n")
    spec = gradix.ShapeDtypeStruct((n, 3), "float32")
    path.write_bytes(gradix.export.export(gradix.jit(lambda x: {"y": gradix.numpy.tanh(x).sum(1)}))(spec).serialize())
    # The extension for Shardy's dialect brings the classes of its operations in newer versions of jaxlib.
    program = (
        "import sys, jaxlib.mlir._mlir_libs._sdy; own = set(sys.modules)\n"
        f"import numpy as np; from gradix import export; f = export.deserialize(open({str(path)!r}, 'rb').read())\n"
        "assert f.call(np.zeros((2, 3), 'f4'))['y'].tolist() == [0.0, 0.0]\n"
        "print('operations:', [m for m in sys.modules.keys() - own if m.endswith(('stablehlo_ops_gen', 'sdy_ops_gen'))])"
    )
    code = f"{program}\nimport json; print(json.dumps([m for m in sys.modules if m.startswith('gradix')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    operations, modules = done.stdout.splitlines()
    assert operations == "operations: []"
    assert not {
        "gradix.export.exporting",
        "gradix.export.shapes",
        "gradix._api.derivatives.autodiff",
        "gradix.scipy",
    } & set(modules := json.loads(modules))
    assert len(modules) <= MOST_SERVING, f"{len(modules)} modules: load what serving does not need when it is named"


def test_what_is_named_is_loaded_in_any_way():
    program = "import gradix; a = gradix.scipy; from gradix import nn; import gradix.random as r; b = gradix.hessian, gradix.pmap"
    assert {"gradix.scipy", "gradix.nn", "gradix.random", "gradix._api.mapping.pmap"} <= set(loaded(program))


def test_all_options_are_known_from_the_start():
    package = Path(gradix.__file__).parent
    text = "\n".join([p.read_text(encoding="utf-8") for p in package.rglob("*.py")])
    names = set(re.findall(r'config\.define\(\s*"(gradix_\w+)"', text))
    code = f"import gradix\nprint([n for n in {names!r} if not hasattr(gradix.config, n)])"
    assert len(names) > 5
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


WHOLE_IN_EVERY_ORDER = """if True:
    import json, os, re, sys
    import gradix
    from gradix import lax
    from gradix._base.lazy import load_package

    def rules(primitive):
        found = {}
        for kind in reversed(type(primitive).__mro__):
            found.update({k: v for k, v in vars(kind).items() if not k.startswith("__")})
        found.update({k: getattr(primitive, k) for k in getattr(type(primitive), "__slots__", ()) if hasattr(primitive, k)})
        found.update(getattr(primitive, "__dict__", {}))
        return {k: re.sub(" at 0x[0-9a-f]+", "", repr(v)) for k, v in found.items() if "memo" not in k and "cache" not in k}

    for name in sys.argv[1:]:
        if os.fork() == 0:                      # each in a process that has loaded nothing else
            primitive = getattr(lax, name)
            first = rules(primitive)
            load_package("gradix")
            last = rules(primitive)
            lacking = [k for k in {*first, *last} if first.get(k) != last.get(k)]
            if lacking:
                print(name, lacking, flush=True)
            os._exit(0)
        os.wait()"""


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([n for n in dir(gradix.lax) if n.endswith("_p")], marks=pytest.mark.slow),
        ["gather_p", "jit_p", "dynamic_slice_p", "sort_p", "scan_p"],
    ],
    ids=["all", "some"],
)
def test_a_primitive_has_its_rules_as_soon_as_it_is_loaded(names):
    done = subprocess.run(
        [sys.executable, "-c", WHOLE_IN_EVERY_ORDER, *names], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


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


def test_names_of_faces_are_imported_for_readers_and_type_checkers():
    """Each name that is loaded later stands in an import statement; none is bound in any other way."""
    for face in (gradix, gradix.lax, gradix.numpy):
        tree = ast.parse(Path(face.__file__).read_text(encoding="utf-8"))
        told = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        assert set(face.__all__) <= told


def test_everything_can_be_imported_at_once():
    program = (
        "from gradix.numpy import *\nfrom gradix.lax import *\nfrom gradix import *\n"
        "print(type(ufunc), sin, linalg, hessian)\n"
    )
    assert "gradix.numpy.universal" in loaded(program)


def test_a_module_may_name_what_it_imports_later_only_in_full():
    face = {"__name__": "face"}
    with pytest.raises(SyntaxError, match="from math import"), on_demand(face):
        exec("import math", face)
    with on_demand(face):
        exec("from math import pi\nfrom math import no_such_name as other", face)
    assert face["__getattr__"]("pi") == math.pi and face["pi"] == math.pi
    with pytest.raises(AttributeError):
        face["__getattr__"]("other")
