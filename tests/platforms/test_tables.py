"""The tables of platforms: what they say without importing it is what they hold."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import gradix
from gradix._core.primitive import Primitive
from gradix._platforms import TABLES, rewrites_of


def test_modules_are_listed_with_the_primitives_they_are_for():
    """A platform may need some of a module's rewrites only, and each is needed on some platform."""
    listed = {}
    for table in TABLES.values():
        for module, names in table.modules.items():
            listed.setdefault(module, set()).update(names)
    for module, names in listed.items():
        held = {p.name for r in importlib.import_module(module).REWRITES for p in r.primitives}
        assert held == names, module


def test_names_are_unique():
    for table in TABLES.values():
        names = [r.name for r in (*table.rewrites, *table.choices)]
        assert len(names) == len(set(names))


def test_every_record_has_its_paragraph_and_every_paragraph_its_record():
    page = Path(__file__).parents[2].joinpath("docs", "rewrites.md").read_text()
    records = {r.name for table in TABLES.values() for r in (*table.rewrites, *table.choices)}
    assert set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE)) == records
    assert {r.evidence for r in TABLES["cpu"].choices} <= {f"docs/rewrites.md#{name}" for name in records}


def test_another_primitive_of_a_known_name_has_no_rewrites():
    assert rewrites_of("cpu", "all")[gradix.lax.sin_p]
    assert rewrites_of("cpu", "all")[Primitive("sin")] == ()
    assert rewrites_of("cpu", "off") is None


def test_lowering_imports_only_what_the_program_has():
    code = (
        "import sys, gradix, gradix.numpy as jnp; gradix.jit(lambda x: x + 1)(jnp.ones(3)); "
        "print(*[m for m in sys.modules if m.startswith(('gradix._platforms.cpu.', 'gradix._ops.conv.'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["gradix._platforms.cpu.compiling"]
