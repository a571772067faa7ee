"""Tell which private functions, classes and names of modules the package itself does not use.

Public names are used by those who import them, and members of classes by whoever holds an object;
both are left out. What only tests use counts as unused.

Usage: python .ci/dead_code.py
"""

import re
import sys
from pathlib import Path

from vulture.core import Vulture

PACKAGE = Path(__file__).parents[1] / "gradix"
# Decorators that keep a function for later calls.
REGISTRATIONS = ["@*.defjvp", "@*.given", "@*.on_renewal", "@*.register*", "@_register", "@rule"]
# What is found by its name, and where.
ALLOWED = {
    "exponential_of_two": "the attribute complex_hlo of an operation",
    "exponential_minus_one": "the attribute complex_hlo of an operation",
    "_count_stored_elements": "where JAX has it, for programs written for it",
    "physical_aval": "the table of compat.internals",
    "trace_state_clean": "the table of compat.internals",
}
# Modules whose names programs written for JAX use, where JAX has them.
OF_OTHERS = {"experimental/key_reuse/_core.py", "experimental/sparse/_parts.py"}
ASSIGNMENT = re.compile(r"\w+(?:, \w+)*(?:: [^=]+)? = ")


def unused(package: Path) -> list[str]:
    """A line for each private name of a module that nothing in the package uses."""
    scan = Vulture(ignore_decorators=REGISTRATIONS)
    scan.scavenge([str(package)])
    found, exported = [], set(ALLOWED)
    for item in scan.get_unused_code(min_confidence=60):
        place, name = Path(item.filename).relative_to(package), item.name
        line = Path(item.filename).read_text("utf-8").splitlines()[item.first_lineno - 1]
        names = [name, *[part for part in place.parts if part != "__init__.py"]]
        is_private = any(n.startswith("_") for n in names) and not name.startswith("__")
        if item.typ == "import" and not is_private:
            exported.add(name)
        of_module = item.typ in ("class", "function", "import") and not line.startswith(" ")
        if place.as_posix() in OF_OTHERS:
            continue
        if is_private and (of_module or item.typ == "variable" and ASSIGNMENT.match(line)):
            found.append((name, f"{place}:{item.first_lineno}: unused {item.typ} {name}"))
    return [line for name, line in found if name not in exported]


if __name__ == "__main__":
    lines = unused(PACKAGE)
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(bool(lines))
