"""The current mesh, at the place where libraries look for it."""

from __future__ import annotations

from gradix._base.config import state as _options
from gradix._base.listing import own_names as _own_names
from gradix._core.mesh import Mesh as Mesh, empty_mesh

__all__ = ["Mesh", "thread_resources"]


class ResourceEnv:
    """The devices over which programs of this thread are divided."""

    @property
    def physical_mesh(self) -> Mesh:
        """The current mesh; without one, a mesh without axes, whose `empty` is True."""
        mesh = _options.gradix_mesh
        return mesh if isinstance(mesh, Mesh) else empty_mesh

    def __repr__(self) -> str:
        return f"ResourceEnv(mesh={self.physical_mesh})"


class ThreadResources:
    """An object whose `env` is the `ResourceEnv` of this thread.

    Example:
        >>> from gradix.interpreters import pxla
        >>> pxla.thread_resources.env.physical_mesh.empty
        True
    """

    env = ResourceEnv()


thread_resources = ThreadResources()


__dir__ = _own_names(__name__)
