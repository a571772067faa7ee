"""What programs are traced and lowered to is as recorded: a refactoring changes nothing, other changes show what they change.

After a change that is meant, `python -m tests.golden.record` writes the record anew; its difference is to be read.
"""

import difflib
import re

import pytest

import gradix

from .forms import FORMS, lowered, normalised, recorded, written
from .programs import PROGRAMS

pytestmark = [pytest.mark.rewritten, pytest.mark.x32]

RECORD = {kind: recorded(kind) for kind in FORMS}


@pytest.mark.parametrize("kind", FORMS)
def test_the_record_is_of_these_programs(kind):
    assert list(RECORD[kind]) == list(PROGRAMS) and len(PROGRAMS) >= 60


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_recorded(name, kind):
    got, before = FORMS[kind](name), RECORD[kind][name]
    if got != before:
        difference = "\n".join(
            difflib.unified_diff(before.splitlines(), got.splitlines(), "recorded", "now", lineterm="")
        )
        pytest.fail(
            f"{name} is {kind} otherwise than recorded; if that is meant: python -m tests.golden.record\n{difference}"
        )


def test_lowering_is_the_same_each_time():
    for name in ("grad of scan", "hessian", "random normal", "scatter"):
        assert lowered(name) == RECORD["lowered"][name] == lowered(name)


def test_names_do_not_matter():
    f, *args = PROGRAMS["jit of two types"]
    text = written(gradix.jit(f).lower(*args))
    renamed = (
        re.sub(r"%(\d+)", lambda m: f"%{1000 - int(m[1])}", text).replace("@helper", "@other").replace("%arg", "%input")
    )
    assert renamed != text and normalised(renamed) == normalised(text)
    assert normalised(text.replace("stablehlo.multiply", "stablehlo.add")) != normalised(text)
