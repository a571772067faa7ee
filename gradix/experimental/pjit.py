"""`pjit`, the former name of `jit` with shardings, which runs on the mesh of a `with` block."""

import functools
from contextlib import contextmanager
from typing import Any

from gradix._api.arguments import check_callable
from gradix._api.jit.jitted_function import JitFunction
from gradix._api.jit.options import Options, check_names
from gradix._api.jit.placed import WHOLE_ON_MESH
from gradix._base import config as _config
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_map
from gradix._core.mesh import Mesh
from gradix._core.trace import state as _state

_options = _config.state

_UNSET: Any = object()


@contextmanager
def _on_mesh_in_force():
    """Let programs run on the devices of the mesh that `with mesh:` puts in force."""
    mesh = _options.gradix_mesh
    if _state.stage is not None or not isinstance(mesh, Mesh) or mesh is _options.gradix_home_mesh:
        yield
        return
    before = _config.enter_local("gradix_home_mesh", mesh)
    try:
        yield
    finally:
        _config.leave_local("gradix_home_mesh", before)


class _OnMesh(JitFunction):
    """A jitted function that runs on the mesh in force where it is called."""

    def __call__(self, *args, **kwargs):
        options, mesh = self._asked, _options.gradix_mesh
        if mesh is not None and mesh.axis_names and (options.device is not None or options.backend is not None):
            raise ValueError(
                "Mesh context manager should not be used with jit when backend or device is also specified as an "
                f"argument to jit: {self._name} asks for {options.device or options.backend}, and {mesh} is in force. "
                "Leave one of them out."
            )
        with _on_mesh_in_force():
            return super().__call__(*args, **kwargs)

    def trace(self, *args, **kwargs):
        with _on_mesh_in_force():
            return super().trace(*args, **kwargs)

    def __reduce__(self):
        found = super().__reduce__()
        return found if isinstance(found, str) else (_OnMesh, found[1])


def pjit(fun: Any = None, in_shardings: Any = _UNSET, out_shardings: Any = _UNSET, **options: Any) -> Any:
    """`jit`, with the shardings also by position; within `with mesh:` it runs on the mesh's devices.

    Args:
        fun: the function; without it, the result is a decorator.
        in_shardings, out_shardings: as for `jit`; where a mesh is in force at the call, None puts the
            whole array on each of its devices.
        options: the other options of `jit`.

    Raises:
        TypeError, ValueError: as for `jit`; also for a device or backend where a mesh is in force.

    Example:
        >>> from gradix.experimental.pjit import pjit
        >>> pjit(lambda x: x + 1, None, None)(1)
        Array(2, dtype=int32, weak_type=True)
    """
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    options.update({name: _or_whole(s) for name, s in given.items() if s is not _UNSET})
    check_names(options)
    if fun is None:
        return functools.partial(pjit, **options)
    check_callable("pjit", fun)
    return _OnMesh(fun, Options(**options))


def _or_whole(shardings):
    """The shardings with what stands for the whole array on each device in place of None."""
    return tree_map(lambda s: WHOLE_ON_MESH if s is None else s, shardings, is_leaf=lambda s: s is None)


__all__ = ["pjit"]


__dir__ = _own_names(__name__)
