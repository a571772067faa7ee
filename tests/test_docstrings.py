"""What the docstrings of public functions say: the value, every argument, what is returned where one line cannot tell, what is raised."""

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

import gradix
from docs.site import public

PACKAGE = Path(gradix.__file__).parent
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
    "gradix.ops",
    "gradix.tree",
    "gradix.tree_util",
    "gradix.scipy.special",
    "gradix.scipy.linalg",
    "gradix.scipy.stats",
    "gradix.scipy.signal",
    "gradix.scipy.fft",
    "gradix.scipy.ndimage",
    "gradix.scipy.integrate",
    "gradix.scipy.interpolate",
    "gradix.scipy.optimize",
)
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
    if _raises(function) and not re.search(
        r"^Raises:|\braises?\b|\berrors?\b|\brefuse", text, re.MULTILINE | re.IGNORECASE
    ):
        missing.append("Raises")
    if ">>> " not in text:
        missing.append("Example")
    return missing


def test_public_docstrings_say_what_they_should():
    found = {f"{name}: {section}" for name, f in public_functions().items() for section in lacking(f)}
    assert found == set(), "say these in the docstrings"


# Public functions, classes and exceptions whose docstring has no example: most are types of other packages, such as NumPy's, and
# what only accelerators, several processes or other libraries can run. It only gets smaller.
MOST_WITHOUT_EXAMPLE = 257
SHORT = {"jnp": "gradix.numpy"}


def most_used() -> list[str]:
    """The functions that at least half of the code bases use whose names were counted, under their own paths."""
    found = []
    for line in (Path(__file__).parent / "data/library_names.txt").read_text(encoding="utf-8").splitlines():
        count, _, names = line.partition(": ")
        for name in names.split() if count.isdigit() and int(count) >= 18 else ():
            known = public.names().get(name.replace("jax", "gradix", 1))
            if (
                known
                and known.home not in found
                and (known.kind == "function" or known.kind == "value" and callable(known.value))
            ):
                found.append(known.home)
    return found


def shown(text: str) -> int:
    """How many lines of the examples give something."""
    return sum(bool(e.want) for e in doctest.DocTestParser().get_examples(text))


def resolved(name: str) -> bool:
    head, _, rest = name.partition(".")
    return any(path in public.names() for path in (name, f"gradix.{name}", f"{SHORT.get(head, '?')}.{rest}"))


@pytest.mark.parametrize("path", most_used())
def test_the_most_used_have_a_second_example_and_say_what_to_see_also(path):
    text = public.docstring(public.names()[path])
    assert shown(text) >= 2, "give a second example"
    also = re.search(r"^See also:\n((?:    .*\n?)+)", text, re.MULTILINE)
    assert also, "say what to see also"
    names = re.findall(r"`([^`]+)`", also[1])
    assert len(names) >= 3 and [n for n in names if not resolved(n)] == []


def test_fifty_functions_are_the_most_used():
    assert 50 <= len(most_used()) <= 60


def test_what_has_no_example_gets_less():
    without = [
        path
        for path, name in public.names().items()
        if path == name.home
        and name.kind in ("function", "class", "exception")
        and ">>> " not in public.docstring(name)
    ]
    assert len(without) <= MOST_WITHOUT_EXAMPLE, f"give examples to what is new among {without}"


def test_an_example_is_a_session_and_nothing_else():
    """The site shows it as code, so prose in it is read as Python."""
    wrong = []
    for path, name in public.names().items():
        example = re.search(
            r"^Example:\n(\s*)(\S.*)$", public.docstring(name) if path == name.home else "", re.MULTILINE
        )
        if example and not example[2].startswith(">>>"):
            wrong.append(path)
    assert wrong == []


def test_each_see_also_names_what_there_is():
    wrong = {}
    for path, name in public.names().items():
        also = re.search(
            r"^See also:\n((?:    .*\n?)+)", public.docstring(name) if path == name.home else "", re.MULTILINE
        )
        if also and (lost := [n for n in re.findall(r"`([^`]+)`", also[1]) if not resolved(n)]):
            wrong[path] = lost
    assert wrong == {}


def test_the_surface_is_as_large_as_it_seems():
    assert len(public_functions()) > 850


@pytest.mark.parametrize(
    ("text", "body", "wanted"),
    [
        (None, "return x", ["summary"]),
        ("The value.", "return x", ["Args", "Example"]),
        ("The value.\n\nArgs:\n    x, y: arrays.\n    z: another.\n\nExample:\n    >>> 1\n    1", "return x", []),
        ("The value.\n\nArgs:\n    x, y: arrays.\n\nExample:\n    >>> 1\n    1", "return x", ["Args"]),
    ],
)
def test_what_lacks_is_found(text, body, wanted):
    scope: dict = {}
    exec(f"def f(x, y, z):\n    {body}", scope)
    scope["f"].__doc__ = text
    assert lacking(scope["f"]) == wanted
