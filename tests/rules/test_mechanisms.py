"""How many mechanisms there are for one thing: a feature is a function or a row of a table, and not one more class of these."""
import ast
from pathlib import Path

import gradix
from gradix._stablehlo.emitter import Emitter
from gradix._stablehlo.writer import Writer

PACKAGE = Path(gradix.__file__).parent
# What is still a class beside the one signature; docs/design/road.md says what it becomes.
KINDS_OF_SIGNATURES = {"CheckedTraced", "TracedWithRefs"}


def subclasses(*parts: str, of: str) -> set[str]:
    """The names of the classes in these folders that have a base of this name."""
    trees = [ast.parse(p.read_text("utf-8")) for part in parts for p in (PACKAGE / part).rglob("*.py")]
    return {c.name for t in trees for c in ast.walk(t) if isinstance(c, ast.ClassDef)
            for b in c.bases if ast.unparse(b).rpartition(".")[2] == of}


def test_the_emitter_is_two_classes():
    assert [c for c in Emitter.__mro__ if c is not object] == [Emitter, Writer]
    assert subclasses("", of="Writer") == {"Emitter"} and not subclasses("", of="Emitter")


def test_signatures_are_of_one_kind():
    assert subclasses("_api", of="Traced") == KINDS_OF_SIGNATURES


def test_programs_and_executables_are_of_one_kind():
    for name in ("Program", "Executable", "Compiled"):
        assert not subclasses("_runtime", "_api", of=name)
