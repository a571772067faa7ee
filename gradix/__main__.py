"""`python -m gradix program.py [arguments]`: run a program written for JAX on gradix.

The commands stand in `compat.commands`.
"""

from __future__ import annotations

import sys

from gradix.compat import commands, programs


def main(argv: list[str]) -> int:
    """Run the command or program of these arguments, and return the exit status."""
    return commands.act(argv) if commands.is_command(argv) else programs.run(argv)


def command() -> int:
    """What the command `gradix` runs, which is `python -m gradix` by a shorter name."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(command())
