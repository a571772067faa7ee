"""`python -m gradix._ops`: print which rules every primitive has."""

import sys

from gradix._ops.rule_table import table

if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("usage: python -m gradix._ops")
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]   # consoles without a middle dot
    print(table())
