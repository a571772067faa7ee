"""What the docstrings of public functions say: the value, every argument, what is returned where one line cannot tell, what is raised."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

import gradix
from docs.site import elsewhere, public

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


def homes(*kinds: str) -> list[public.Name]:
    """The public names of these kinds, each object once."""
    return [name for path, name in public.names().items() if path == name.home and name.kind in kinds]


def test_every_public_name_has_an_example():
    named = homes("function", "class", "exception")
    without = [name.path for name in named if ">>> " not in public.docstring(name)]
    assert len(named) > 1500 and without == [], "give each an example"


def outside_of_modules() -> list[str]:
    """Names whose examples doctest does not find in a module: objects made elsewhere, and options as contexts."""
    contexts = [n.path for n in homes("value", "function") if not inspect.isfunction(inspect.unwrap(n.value))]
    shown = [p for p in contexts if p.count(".") == 1 and ">>> " in public.docstring(public.names()[p])]
    return sorted({*elsewhere.TEXTS, *shown})


def run(path: str, leave_out: set[int] = frozenset()) -> str:
    """Run the examples of a public name; what fails is told, and without `leave_out` none is skipped."""
    found = doctest.DocTestParser().get_doctest(public.docstring(public.names()[path]), {}, path, path, 0)
    found.examples = [e for e in found.examples if not leave_out & {o for o, on in e.options.items() if on}]
    for example in found.examples:
        example.options.pop(doctest.SKIP, None)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(found, out=report.append)
    return "".join(report)


@pytest.mark.x32
@pytest.mark.parametrize("path", outside_of_modules())
def test_examples_that_no_module_holds_run(path):
    assert run(path, leave_out={doctest.SKIP}) == ""


LIBRARIES = {
    "gradix.experimental.jax2tf": "tensorflow",
    "gradix.experimental.torch": "torch",
    "gradix.experimental.array_serialization": "tensorstore",
}


def of_libraries() -> list[tuple[str, str]]:
    """Names whose examples are skipped, as another library is needed, and that library."""
    skipped = [n.path for n in homes("function", "class") if "doctest: +SKIP" in public.docstring(n)]
    return [(p, library) for p in skipped for begin, library in LIBRARIES.items() if p.startswith(begin + ".")]


@pytest.mark.parametrize(("path", "library"), of_libraries())
def test_examples_with_other_libraries_run_where_these_are(path, library):
    pytest.importorskip(library)
    assert run(path) == ""


def test_few_examples_are_never_run():
    """They need a program of C++, other processes, or no other test in the process."""
    skipped = {n.path for n in homes("function", "class") if "doctest: +SKIP" in public.docstring(n)}
    assert skipped - {path for path, _ in of_libraries()} == {
        "gradix.distributed.initialize",
        "gradix.extend.backend.clear_backends",
        "gradix.ffi.register_ffi_target",
        "gradix.ffi.register_ffi_target_as_batch_partitionable",
        "gradix.ffi.register_ffi_type",
        "gradix.ffi.register_ffi_type_id",
        "gradix.profiler.register_subprocess",
    }


@pytest.mark.slow
def test_doctest_finds_all_other_examples():
    finder, seen = doctest.DocTestFinder(exclude_empty=True), set()
    for module in pkgutil.walk_packages(gradix.__path__, "gradix."):
        if not module.name.endswith(("gradix.pytest", "answers.jax", "__main__")):
            tests = finder.find(importlib.import_module(module.name))
            seen |= {inspect.cleandoc(t.docstring) for t in tests if t.docstring}
    seen |= {inspect.cleandoc(t.docstring) for t in finder.find(gradix) if t.docstring}
    with_example = [n for n in homes("function", "class", "exception", "value") if ">>> " in public.docstring(n)]
    assert {n.path for n in with_example if public.docstring(n) not in seen} == set(outside_of_modules())


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
