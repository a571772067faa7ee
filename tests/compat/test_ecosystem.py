"""`python -m ecosystem`: what its table and its exit status say of programs that do not run."""

import pytest

from ecosystem import __main__ as ecosystem

RUNS = {"import_s": 1.0, "first_s": 1.0, "step_s": 1.0, "memory_mb": 100.0, "values": [1.0], "tolerance": 1e-3}
LACKING = {"error": "ModuleNotFoundError: No module named 'optax'"}


@pytest.mark.parametrize(
    "sides, text, status",
    [
        ((RUNS, RUNS), "the same values", 0),
        ((RUNS, {**RUNS, "values": [2.0]}), "other values", 1),
        (
            (RUNS, {"error": "ModuleNotFoundError: No module named 'jax'"}),
            "runs; on JAX: it is not at hand (name its folder with --jax)",
            0,
        ),
        ((LACKING, LACKING), "No module named 'optax' (install what --packages prints); on JAX:", 1),
        (({"error": "TypeError: no"}, RUNS), "TypeError: no; on JAX: runs", 1),
    ],
    ids=["same", "other", "without jax", "lacking", "fails"],
)
def test_rows_and_status(sides, text, status, monkeypatch, capsys):
    monkeypatch.setattr(ecosystem, "measure", lambda name, command, path, timeout: sides[command is ecosystem.JAX])
    assert ecosystem.main(["optax_adamw"]) == status
    head, rule, row = capsys.readouterr().out.splitlines()
    assert text in row and row.count("|") == head.count("|") == rule.count("|")


def test_unknown_programs_are_refused(capsys):
    with pytest.raises(SystemExit):
        ecosystem.main(["no_such"])
    assert "no such program: no_such; there are" in capsys.readouterr().err
