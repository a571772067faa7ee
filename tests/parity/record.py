"""Write the answers of JAX to the cases, for comparison where JAX is not installed.

    python -m tests.parity.record              # every group, in one process each
    python -m tests.parity.record indexing     # the named groups

One line per case, so that a changed answer is a changed line.
"""

import json
import pathlib
import subprocess
import sys

from tests.parity.cases import GROUPS, group_cases, run_case
from tests.parity.namespace import Namespace

ANSWERS = pathlib.Path(__file__).parent / "answers"


def load(group):
    """Recorded outcomes of a group by case id."""
    return json.loads((ANSWERS / f"{group}.json").read_text(encoding="utf-8"))


def record(group, ns):
    """Run a group and write its file; returns the number of cases and of errors."""
    answers = {}
    for case in group_cases(group):
        outcome = run_case(group, case, ns)
        outcome.pop("message", None)
        answers[case.id] = outcome
    lines = [
        f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(item, separators=(',', ':'), ensure_ascii=False)}"
        for key, item in answers.items()
    ]
    (ANSWERS / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return len(answers), sum("error" in item for item in answers.values())


def main(groups):
    if len(groups) == 1:
        print(groups[0], *record(groups[0], Namespace("jax")))
        return 0
    return max(subprocess.call([sys.executable, "-m", "tests.parity.record", group]) for group in groups or GROUPS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
