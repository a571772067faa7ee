"""The options of `jit`, as one record."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradix._api.jit.placed import Shardings


class Settings(NamedTuple):
    """The arguments of `jit`, except the function and the roles of the function's arguments."""

    inline: bool = False
    keep_unused: bool = False
    compiler_options: dict | None = None
    max_traces: int | None = None
    max_paths: int | None = None  # None without specialize=True
    donate_strict: bool = False
    abstracted_axes: Any = None
    symbolic: Any = None
    shardings: Shardings | None = None
    check: tuple[str, ...] | None = None  # the kinds of errors that the compiled program checks for
