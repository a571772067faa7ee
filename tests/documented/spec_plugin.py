"""Runs the documented behaviour against a list of what is known to be missing.

Loaded with `-p spec_plugin`. A listed test must fail (a pass is an error, so the list only shrinks); every other one
must pass. What an earlier run compiled is not taken from disk: the checks count compilations.
"""

import os
from pathlib import Path

import pytest

os.environ["GRADIX_CACHE"] = "off"
LIST = Path(__file__).with_name("spec_xfail.txt")


def read_list(text: str) -> dict[str, str]:
    """Test id -> why, from lines `file.py::test[param]  # why`."""
    rows = {}
    for line in text.splitlines():
        test_id, _, why = line.partition("  #")
        if test_id.strip() and not line.startswith("#"):
            rows[test_id.strip()] = why.strip() or "listed in tests/documented/spec_xfail.txt"
    return rows


class StaleEntry(pytest.Item):
    """Stands for a line of the list that names no test, and fails."""

    def runtest(self):
        pytest.fail(f"{LIST.name} lists {self.name}, which does not exist: take the line out.", pytrace=False)

    def reportinfo(self):
        return LIST, None, self.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session, config, items):
    listed = read_list(LIST.read_text(encoding="utf-8"))
    for item in items:
        why = listed.pop(item.nodeid, None)
        if why:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
    if any("::" in arg for arg in config.args):
        return  # one test was asked for: the other lines are not stale
    files = {item.nodeid.partition("::")[0] for item in items}
    items += [StaleEntry.from_parent(session, name=i) for i in listed if i.partition("::")[0] in files]
