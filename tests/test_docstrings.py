"""What the docstrings of public functions say: the value, every argument, what is returned where one line cannot tell, what is raised."""
import ast
import importlib
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

import gradix

PACKAGE = Path(gradix.__file__).parent
FACES = ("gradix", "gradix.numpy", "gradix.numpy.linalg", "gradix.numpy.fft", "gradix.lax", "gradix.lax.linalg", "gradix.random",
         "gradix.nn", "gradix.nn.initializers", "gradix.ops", "gradix.tree", "gradix.tree_util", "gradix.scipy.special",
         "gradix.scipy.linalg", "gradix.scipy.stats", "gradix.scipy.signal", "gradix.scipy.fft", "gradix.scipy.ndimage",
         "gradix.scipy.integrate", "gradix.scipy.interpolate", "gradix.scipy.optimize")
# Parameters that functions take because JAX's do, which the text of a family tells once.
TOLD_ONCE = {"out_sharding", "out", "args", "kwargs", "self", "key"}


@cache
def public_functions() -> dict[str, object]:
    found: dict[str, object] = {}
    seen = set()
    for face in FACES:
        module = importlib.import_module(face)
        for name in sorted(dir(module)):
            f = getattr(module, name, None)
            if name.startswith("_") or isinstance(f, type) or not callable(f):
                continue
            f = inspect.unwrap(f)
            code = getattr(f, "__code__", None)
            if code is not None and Path(code.co_filename).is_relative_to(PACKAGE) and f not in seen:
                seen.add(f)
                found[f"{face}.{name}"] = f
    return found


def _raises(function) -> bool:
    """Whether the function's own body raises."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return False
    return any(isinstance(n, ast.Raise) and n.exc is not None for n in ast.walk(tree))


def lacking(function) -> list[str]:
    """The sections that the docstring of a function should have and has not."""
    text = inspect.getdoc(function) or ""
    if not text:
        return ["summary"]
    parameters = [p for p in inspect.signature(function).parameters if p not in TOLD_ONCE and not p.startswith("_")]
    missing = []
    arguments = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    # One or two operands are told by the line of the value itself: "The product of `x` and `y`".
    if len(parameters) > 2:
        told = arguments[1] if arguments else ""
        if [p for p in parameters if not re.search(rf"\b{re.escape(p)}\b", told)]:
            missing.append("Args")
    result = str(getattr(function, "__annotations__", {}).get("return", ""))
    several = result.startswith("tuple") and not re.search(r"^Returns:", text, re.MULTILINE)
    if several and not re.search(r"\(|pair|both|shape|`", text.split("\n\n")[0]):
        missing.append("Returns")
    if _raises(function) and not re.search(r"^Raises:|\braises?\b|\berrors?\b|\brefuse", text, re.MULTILINE | re.IGNORECASE):
        missing.append("Raises")
    if ">>> " not in text:
        missing.append("Example")
    return missing


def test_public_docstrings_say_what_they_should():
    found = {f"{name}: {section}" for name, f in public_functions().items() for section in lacking(f)}
    assert found == set(), "say these in the docstrings"


def test_the_surface_is_as_large_as_it_seems():
    assert len(public_functions()) > 850


@pytest.mark.parametrize(("text", "body", "wanted"), [
    (None, "return x", ["summary"]),
    ("The value.", "return x", ["Args", "Example"]),
    ("The value.\n\nArgs:\n    x, y: arrays.\n    z: another.\n\nExample:\n    >>> 1\n    1", "return x", []),
    ("The value.\n\nArgs:\n    x, y: arrays.\n\nExample:\n    >>> 1\n    1", "return x", ["Args"]),
])
def test_what_lacks_is_found(text, body, wanted):
    scope: dict = {}
    exec(f"def f(x, y, z):\n    {body}", scope)
    scope["f"].__doc__ = text
    assert lacking(scope["f"]) == wanted
