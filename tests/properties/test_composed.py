"""The programs of composed.jsonl give what JAX gave."""

import numpy as np
import pytest

import gradix

from .composed import COUNT, digest, draw, load, program_of
from .transforms import Transformations

OURS = Transformations(gradix)
PARTS = 8


def differences(entries, compiled: bool) -> list[str]:
    wrong = []
    for entry in entries:
        program = program_of(entry)
        f = OURS.stacked(entry["stack"], 0, program)
        got = (gradix.jit(f) if compiled else f)(*program.inputs())
        want = np.array(entry["answer"])
        close = np.allclose(digest(got), want, rtol=1e-7, atol=1e-9 * (1 + want.max(initial=0)))
        if list(got.shape) != entry["shape"] or not close:
            wrong.append(f"{entry['stack']} of {program}\n    gives {got.shape} {digest(got)}, not {entry['answer']}")
    return wrong


@pytest.mark.parametrize("part", [0, *[pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS)]])
def test_eager(part):
    with gradix.enable_x64(True):
        wrong = differences(load()[part::PARTS], compiled=False)
    assert not wrong, f"{len(wrong)} programs differ\n" + "\n".join(wrong[:5])


def test_a_few_compiled():
    with gradix.enable_x64(True):
        wrong = differences(load()[:: COUNT // 30], compiled=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_compiled(part):
    with gradix.enable_x64(True):
        wrong = differences(load()[part::PARTS], compiled=True)
    assert not wrong, f"{len(wrong)} programs differ\n" + "\n".join(wrong[:5])


def test_the_answers_are_those_of_the_programs_drawn():
    entries = load()
    assert len(entries) == COUNT
    drawn = {repr(draw(seed)) for seed in range(50)}
    kept = {repr((program_of(entry), tuple(entry["stack"]))) for entry in entries[:50]}
    assert len(drawn & kept) > 40
