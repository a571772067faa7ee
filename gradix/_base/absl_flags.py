"""The options as flags of absl, for programs that define their command line with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from gradix._base.lazy import lazy_module

app: Any = lazy_module("absl.app")
flags: Any = lazy_module("absl.flags")


def define(options: dict[str, Any]) -> list[str]:
    """Define a flag for each option that is a boolean, a number or a text; returns their names.

    Flags that are defined already stay.
    """
    makers = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float, str: flags.DEFINE_string}
    made = []
    for name, value in options.items():
        maker = flags.DEFINE_string if value is None else makers.get(type(value))
        if maker is not None:
            made.append(name)
            if name not in flags.FLAGS:
                maker(name, value, f"the option {name} of gradix")
    return made


def take_over(names: Iterable[str], update: Callable[[str, Any], None]) -> None:
    """Set the options whose flags were given."""
    for name in names:
        if flags.FLAGS[name].present:
            update(name, flags.FLAGS[name].value)


def after_start(names: list[str], update: Callable[[str, Any], None]) -> None:
    """Set the options when `absl.app.run` has read the command line."""
    app.call_after_init(lambda: take_over(names, update))


def read_now(names: list[str], update: Callable[[str, Any], None]) -> None:
    """Set the options on the command line at once, and leave its other flags for others to read."""
    known = {f"--{no}{name}" for name in names for no in ("", "no")}
    given = [a for a in sys.argv[1:] if a.split("=")[0] in known]
    parsed = flags.FlagValues()
    for name in names:
        parsed[name] = flags.FLAGS[name]
    parsed(["", *given])
    take_over(names, update)
