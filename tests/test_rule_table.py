"""`python -m gradix._ops` shows every primitive, and what it shows is so."""

import subprocess
import sys

import pytest

from gradix import lax
from gradix._core.primitive import Primitive
from gradix._ops import rule_table
from gradix._ops.rule_table import COLUMNS, HAS, MISSING, NONE, families, row, table

EXPORTED = {name: p for name, p in ((name, getattr(lax, name)) for name in dir(lax)) if isinstance(p, Primitive)}


def cells(prim):
    return dict(zip(COLUMNS, row(prim)))


def test_the_table_covers_what_lax_exports():
    shown = {id(p) for group in families().values() for p in group}
    assert {name for name, p in EXPORTED.items() if id(p) not in shown} == set()
    assert len(EXPORTED) > 120


def test_no_primitive_is_shown_twice():
    shown = [id(p) for group in families().values() for p in group]
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("name", sorted(EXPORTED))
def test_required_rules_are_there(name):
    found = cells(EXPORTED[name])
    assert found["abstract"] == HAS
    assert found["lower"] != MISSING
    assert found["batch"] != MISSING


def test_marks():
    assert cells(lax.sin_p) == {
        "abstract": HAS,
        "host": HAS,
        "lower": "direct",
        "jvp": HAS,
        "transpose": MISSING,
        "linearize": "jvp",
        "batch": HAS,
        "dtypes": "floating, complex",
        "also": "specialise divide live=elements formula=periodic",
    }
    assert cells(lax.floor_p)["jvp"] == cells(lax.floor_p)["transpose"] == cells(lax.floor_p)["linearize"] == NONE
    assert cells(lax.stop_gradient_p)["jvp"] == NONE
    assert cells(lax.nextafter_p)["jvp"] == MISSING
    assert cells(lax.add_p)["transpose"] == HAS
    assert cells(lax.scan_p)["linearize"] == HAS
    assert cells(lax.scan_p)["host"] == "run"


def test_a_rule_set_on_the_primitive_itself_counts():
    bare = Primitive("bare")
    assert set(row(bare)) == {MISSING, ""}
    bare.jvp = lambda primals, tangents: None
    bare.expand = lambda x: x
    assert cells(bare)["jvp"] == HAS
    assert cells(bare)["linearize"] == "jvp"
    assert cells(bare)["lower"] == "expand"


def test_the_command_prints_the_table():
    command = [sys.executable, "-W", "error", "-X", "utf8", "-m", "gradix._ops"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == table().strip()
    names = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert {p.name for p in EXPORTED.values()} <= set(names)
    assert rule_table.families().keys() <= set(names)
