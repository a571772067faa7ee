"""One process of the comparison: time a group of cases on one library and print the seconds as JSON."""

import argparse
import json
import sys
from typing import Any

from benchmarks import cases  # noqa: F401  (registers the cases)
from benchmarks.case import CASES, target
from benchmarks.timing import CLOCKS, choose_clock, measure


def main() -> None:
    """Run the cases named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True, help="gradix, jax, numpy or torch")
    parser.add_argument("--group", required=True)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--case", default="", help="the one case of this name")
    parser.add_argument("--budget", type=float, default=0.25, help="seconds to spend on a case")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    choose_clock(options.clock)
    library, results = target(options.target), {}
    for case in CASES.values():
        if case.group != options.group or options.only not in case.name:
            continue
        if options.case not in ("", case.name) or case.alone and not options.case:
            continue
        if case.form(options.target) is None:
            continue
        results[case.name] = outcome(case, library, options.budget)
    json.dump(results, sys.stdout)


def outcome(case: Any, library: Any, budget: float) -> float | str:
    """Seconds, or what went wrong: one broken case does not hide the others."""
    try:
        return measure(case, library, budget)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]


if __name__ == "__main__":
    main()
