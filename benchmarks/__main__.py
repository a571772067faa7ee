"""Compare Gradix with JAX, NumPy and PyTorch, as far as they are installed, side by side in one run.

Each group of cases runs in processes of its own, the libraries by turns, for several rounds; the table holds the
median over rounds of the least time within a process. Each long case has its own process, in which one call is timed.
No ratio is an error: the exit status is always 0.

    python -m benchmarks [--group eager] [--rounds 5] [--only matmul] [--json FILE] [--markdown]
"""

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from benchmarks import (
    cases,  # noqa: F401  (registers the cases)
    overheads,
    rewrites,
)
from benchmarks.case import CASES
from benchmarks.cases.devices import environment
from benchmarks.report import LIBRARIES, Comparison, describe_machine, markdown, plain
from benchmarks.timing import CLOCKS

ROOT = Path(__file__).resolve().parent.parent
GROUPS = tuple(dict.fromkeys(case.group for case in CASES.values()))


def main() -> int:
    """Run the rounds, print the table, and save the samples if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios of time, Gradix to JAX.")
    parser.add_argument("--group", choices=GROUPS, action="append", help="only this group; may be repeated")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name holds this text")
    parser.add_argument("--rounds", type=int, default=5, help="processes per library and group (default 5)")
    parser.add_argument("--budget", type=float, default=0.25, help="seconds per case and process (default 0.25)")
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="cpu counts what all threads of a process compute, for a machine that others use too",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample here")
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    parser.add_argument("--rewrites", action="store_true", help="each rewrite of the CPU's table on and off, instead")
    parser.add_argument("--overheads", action="store_true", help="what looking inside costs, instead")
    options = parser.parse_args()
    if options.overheads:
        overheads.main(options.only, options.markdown)
        return 0
    if options.rewrites:
        rewrites.main(options.only, options.markdown)
        return 0

    chosen = [case for case in CASES.values() if case.group in (options.group or GROUPS) and options.only in case.name]
    comparison = Comparison(chosen)
    targets = [name for name in LIBRARIES if importlib.util.find_spec(name)]
    groups = dict.fromkeys(case.group for case in chosen)
    for group in groups:
        useful = [name for name in targets if any(case.form(name) for case in chosen if case.group == group)]
        alone = [case.name for case in chosen if case.group == group and case.alone]
        others = any(case.group == group and not case.alone for case in chosen)
        for turn in range(options.rounds):
            for case_name in [*([""] if others else []), *alone]:
                # Every other round runs the other way, so that a slow drift of the machine favours nobody.
                for name in useful if turn % 2 == 0 else useful[::-1]:
                    what = case_name or group
                    progress(f"{what}, round {turn + 1} of {options.rounds}: {name}")
                    comparison.add(name, run_worker(name, group, options, case_name))
    progress("")

    print(
        (markdown if options.markdown else plain)(comparison, describe_machine(targets, options.rounds, options.clock))
    )
    if options.json:
        options.json.write_text(json.dumps(comparison.samples, indent=1) + "\n", encoding="utf-8")
    return 0


def run_worker(name: str, group: str, options: argparse.Namespace, only_case: str) -> dict[str, float | str]:
    """Seconds per case from one process; if it fails, the last line of its error for every case."""
    command = [sys.executable, "-m", "benchmarks.worker", "--target", name, "--group", group]
    command += ["--only", options.only, "--budget", str(options.budget)]
    command += ["--case", only_case, "--clock", options.clock]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment() if group == "devices" else None
    )
    if done.returncode == 0:
        return json.loads(done.stdout)
    words = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return {
        case.name: words
        for case in CASES.values()
        if case.group == group and case.form(name) and only_case in ("", case.name)
    }


def progress(text: str) -> None:
    """Show on a terminal what runs now, in one line that is overwritten."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
