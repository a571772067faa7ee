"""How many mechanisms there are for one thing: a feature is a function or a row of a table, and not one more class of these."""

import dataclasses
import inspect
import re
from pathlib import Path

import gradix
import gradix.numpy
from gradix._api.jit.options import Options
from gradix._core import seams
from gradix._stablehlo.emitter import Emitter
from gradix._stablehlo.writer import Writer

PACKAGE = Path(gradix.__file__).parent

CLASS = re.compile(r"^ *class (\w+)\((.*)\):", re.MULTILINE)


def subclasses(*parts: str, of: str) -> set[str]:
    """The names of the classes in these folders that have a base of this name."""
    texts = [p.read_text("utf-8") for part in parts for p in (PACKAGE / part).rglob("*.py")]
    return {
        name
        for text in texts
        for name, bases in CLASS.findall(text)
        if of in [b.strip().rpartition(".")[2] for b in bases.split(",")]
    }


def test_the_emitter_is_two_classes():
    assert [c for c in Emitter.__mro__ if c is not object] == [Emitter, Writer]
    assert subclasses("", of="Writer") == {"Emitter"} and not subclasses("", of="Emitter")


def test_signatures_are_of_one_kind():
    assert not subclasses("_api", of="Traced")


def test_the_options_of_jit_stand_once():
    """In the record of them; the signature, the documentation and the decorator's form follow from it."""
    names = [f.name for f in dataclasses.fields(Options)]
    assert list(inspect.signature(gradix.jit).parameters) == ["fun", *names]
    assert all(re.search(rf"\b{name}\b", gradix.jit.__doc__) for name in names)
    source = (PACKAGE / "_api/jit/jit.py").read_text("utf-8")
    assert not re.search(r"\b(static_argnums|donate_argnums|compiler_options)\b", source)


def test_programs_and_executables_are_of_one_kind():
    for name in ("Program", "Executable", "Compiled"):
        assert not subclasses("_runtime", "_api", of=name)


def test_what_a_lower_layer_gets_from_a_higher_one_is_in_one_record():
    """Beside `_core/seams.py` there are the members of arrays, which `numpy` installs."""
    found = []
    for path in PACKAGE.glob("_*/**/*.py"):
        for name in re.findall(r"^ *def (install(?:_\w+)?)\(", path.read_text("utf-8"), re.MULTILINE):
            found.append(f"{path.relative_to(PACKAGE).as_posix()}:{name}")
    assert found == ["_core/operators.py:install"]


def test_every_seam_is_set():
    import gradix._ops.collectives  # noqa: F401

    gradix.jit(lambda x: x + 1)(gradix.numpy.ones(3))
    assert "abs" in str(gradix.make_jaxpr(abs)(1.0))
    assert [name for name in seams.__annotations__ if getattr(seams, name, None) is None] == []
