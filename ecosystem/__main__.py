"""`python -m ecosystem`: run the programs of `ecosystem/programs` on Gradix and on JAX in turns, and print their times.

The environment has the libraries without jax; that of the comparison lies in a folder of its own, which only its processes see.
`make ecosystem` makes both.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PROGRAMS = sorted(p.stem for p in (FOLDER / "programs").glob("*.py"))
GRADIX, JAX = ("-m", "gradix", "-m", "ecosystem.program"), ("-m", "ecosystem.program")


def packages() -> list[str]:
    """What the programs need from the registry, in order; read from their texts, as nothing is installed yet."""
    found: dict[str, None] = {}
    for name in PROGRAMS:
        for node in ast.parse((FOLDER / f"programs/{name}.py").read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PACKAGES":
                found.update(dict.fromkeys(ast.literal_eval(node.value)))
    return list(found)


def measure(name: str, command: tuple[str, ...], path: str, timeout: float) -> dict:
    """One fresh process; `{"error": last line}` where it fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in (str(FOLDER.parent), path) if p),
        "PYTHONWARNINGS": "ignore",
        "KERAS_BACKEND": "jax",
        "GRADIX_CACHE": "off",
    }
    try:
        done = subprocess.run(
            [sys.executable, *command, name],
            env=environment,
            cwd=FOLDER.parent,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end in {timeout:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": _last_error(done.stderr) or f"exit status {done.returncode}", "text": done.stderr}
    return json.loads(lines[-1])


def _last_error(text: str) -> str:
    """The line of a traceback that names the exception."""
    lines = [line for line in text.strip().splitlines() if line and not line.startswith((" ", "(", "-"))]
    return lines[-1][:160] if lines else ""


def _told(error: str) -> str:
    """An error, and what to do about it where the environment is the cause."""
    if "No module named 'jax'" in error:
        return "it is not at hand (name its folder with --jax)"
    if error.startswith("ModuleNotFoundError"):
        return f"{error} (install what --packages prints)"
    return error


def compare(name: str, path: str, rounds: int, timeout: float) -> dict:
    """Run a program on both in turns: the least times, and whether the values agree."""
    ours, theirs = [], []
    for _ in range(rounds):
        for runs, command, extra in ((ours, GRADIX, ""), (theirs, JAX, path)):
            if not runs or "error" not in runs[-1]:
                runs.append(measure(name, command, extra, timeout))
    out = {"name": name, "gradix": _least(ours), "jax": _least(theirs)}
    if "error" not in out["gradix"] and "error" not in out["jax"]:
        pairs = list(zip(out["gradix"]["values"], out["jax"]["values"]))
        tolerance = out["gradix"]["tolerance"]
        out["agrees"] = all(math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) for a, b in pairs)
    return out


def _least(runs: list[dict]) -> dict:
    if "error" in runs[-1]:
        return runs[-1]
    return {**runs[0], **{k: min(r[k] for r in runs) for k in ("import_s", "first_s", "step_s", "memory_mb")}}


def row(found: dict) -> str:
    """A line of the table."""
    ours, theirs = found["gradix"], found["jax"]
    if "error" in ours or "error" in theirs:
        texts = [_told(side["error"]) if "error" in side else "runs" for side in (ours, theirs)]
        return f"| {found['name']} | {texts[0]}; on JAX: {texts[1]} | | | | |"
    start = [r["import_s"] + r["first_s"] for r in (ours, theirs)]
    values = "the same values" if found["agrees"] else "other values"
    ratios = [start[0] / start[1], *[ours[k] / theirs[k] for k in ("step_s", "memory_mb")]]
    return f"| {found['name']} | {values} | {start[0]:.2f} s | " + " | ".join(f"{r:.2f}" for r in ratios) + " |"


HEAD = """| program | result | start to first step | to JAX's | a step, to JAX's | memory, to JAX's |
|---|---|--:|--:|--:|--:|"""


def main(argv: list[str]) -> int:
    """Print the table; the exit status is 0 if all programs run, and agree with JAX where it is at hand and runs them."""
    parser = argparse.ArgumentParser(prog="python -m ecosystem", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--jax", default="", help="the folder that holds jax")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--packages", action="store_true", help="print what to install, and stop")
    parser.add_argument("--verbose", action="store_true", help="print whole tracebacks")
    options = parser.parse_args(argv)
    if options.packages:
        print(*packages())
        return 0
    unknown = sorted({*options.names} - {*PROGRAMS})
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    print(HEAD, flush=True)
    bad = 0
    for name in options.names or PROGRAMS:
        found = compare(name, options.jax, options.rounds, options.timeout)
        bad += "error" in found["gradix"] or not found.get("agrees", True)
        print(row(found), flush=True)
        if options.verbose:
            for side in ("gradix", "jax"):
                print(found[side].get("text", ""), file=sys.stderr)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
