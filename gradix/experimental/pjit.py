"""`pjit`, the former name of `jit` with shardings."""

from collections.abc import Callable
from typing import Any

from gradix._api.jit.jit import jit
from gradix._base import config as _config
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_map
from gradix._core.sharding import PartitionSpec

_options = _config.state

_UNSET: Any = object()


def pjit(fun: Any = None, in_shardings: Any = _UNSET, out_shardings: Any = _UNSET, **options: Any) -> Any:
    """`jit`, with the shardings also by position.

    Args:
        fun: the function; without it, the result is a decorator.
        in_shardings, out_shardings: as for `jit`; under a mesh, None puts the whole array on each
            of its devices.
        options: the other options of `jit`.

    Example:
        >>> from gradix.experimental.pjit import pjit
        >>> pjit(lambda x: x + 1, None, None)(1)
        Array(2, dtype=int32, weak_type=True)
    """
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    options.update({name: _replicated(s) for name, s in given.items() if s is not _UNSET})
    made: Callable = jit(**options) if fun is None else jit(fun, **options)
    return made


def _replicated(shardings):
    """The shardings with the empty spec in place of None, if a mesh is in force."""
    mesh = _options.gradix_mesh
    if mesh is None or not mesh.axis_names:
        return shardings
    return tree_map(lambda s: PartitionSpec() if s is None else s, shardings, is_leaf=lambda s: s is None)


__all__ = ["pjit"]


__dir__ = _own_names(__name__)
