"""The list of another suite's tests that do not count, each with the reason."""

import json
import re
from pathlib import Path

LIST = Path(__file__).parents[1] / "by_design.json"


def test_each_entry_names_one_test_and_says_why_in_a_sentence():
    entries = json.loads(LIST.read_text(encoding="utf8"))
    assert list(entries) == sorted(entries)
    for name, reason in entries.items():
        assert re.fullmatch(r"\w+_test::\w+::\S.*", name), name
        assert len(reason.split()) > 5 and reason.endswith("."), name
