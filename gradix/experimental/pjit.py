"""`pjit`, the former name of `jit` with shardings."""

from collections.abc import Callable
from typing import Any

from gradix._api.jit.jit import jit
from gradix._base.listing import own_names as _own_names

_UNSET: Any = object()


def pjit(fun: Any = None, in_shardings: Any = _UNSET, out_shardings: Any = _UNSET, **options: Any):
    """`jit`, with the shardings also by position.

    Args:
        fun: the function; without it, the result is a decorator.
        in_shardings, out_shardings: as for `jit`.
        options: the other options of `jit`.

    Example:
        >>> from gradix.experimental.pjit import pjit
        >>> pjit(lambda x: x + 1, None, None)(1)
        Array(2, dtype=int32, weak_type=True)
    """
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    options.update({name: s for name, s in given.items() if s is not _UNSET})
    made: Callable = jit(**options) if fun is None else jit(fun, **options)
    return made


__all__ = ["pjit"]


__dir__ = _own_names(__name__)
