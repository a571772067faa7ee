"""What a function takes: at most six parameters by position, unless the name is public and others decided its signature."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import gradix

PACKAGE = Path(gradix.__file__).parent
MOST = 6
INSTALLING = ("gradix.pytest", "gradix.compat.answers")  # importing them makes gradix answer for jax
# `x.at[...]` hands its options on in a row; the others get the state of a loop.
KEPT = {"_control/while_adjoint.py mixed", "_ops/special/igamma_formulas.py step"}


def positional(function: ast.FunctionDef) -> list[str]:
    """The names of the parameters that may be given by position, without the object itself."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def long_signatures(path: Path) -> list[ast.FunctionDef]:
    """The functions of a file that take more than `MOST` parameters by position; of overloads the function itself."""
    return [
        n
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.FunctionDef)
        and len(positional(n)) > MOST
        and not any(isinstance(d, ast.Name) and d.id == "overload" for d in n.decorator_list)
    ]


def public_places() -> set[tuple[str, int]]:
    """Files and first lines of what the modules without an underscore in their names hold, methods included."""
    found = set()
    for name_of_module in ("gradix", *[m.name for m in pkgutil.walk_packages([str(PACKAGE)], "gradix.")]):
        if "._" in name_of_module or name_of_module.startswith(INSTALLING):
            continue
        try:
            module = importlib.import_module(name_of_module)
        except ImportError:  # what needs torch or tensorflow
            continue
        for name in dir(module):
            if name.startswith("_"):
                continue
            value = getattr(module, name, None)
            for f in (value, *(vars(value).values() if isinstance(value, type) else ())):
                f = inspect.unwrap(f) if callable(f) else f
                code = getattr(f, "__code__", None)
                if inspect.iscode(code):
                    found.add((code.co_filename, code.co_firstlineno))
    return found


def first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *[d.lineno for d in function.decorator_list]])


def test_private_functions_take_few_parameters_by_position():
    public = public_places()
    found = {
        f"{path.relative_to(PACKAGE)} {f.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for f in long_signatures(path)
        if (str(path), first_line(f)) not in public
    }
    assert found == KEPT, f"make what follows the first {MOST} parameters keyword-only, or a record"


def test_a_long_signature_is_found(tmp_path):
    file = tmp_path / "long.py"
    file.write_text(
        "class A:\n    def __init__(self, a, b, c, d, e, f, g): ...\n    def few(self, a, b, c, d, e, f): ...\n"
        "def by_name(a, b, c, d, e, f, *, g): ...\ndef many(a, b, c, d, e, f, g): ...\n"
    )
    assert [f.name for f in long_signatures(file)] == ["many", "__init__"]
