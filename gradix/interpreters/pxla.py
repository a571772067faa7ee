"""The mesh in force, where libraries look for it."""

from __future__ import annotations

from gradix._base.config import state as _options
from gradix._core.mesh import Mesh as Mesh, empty_mesh

__all__ = ["Mesh", "thread_resources"]


class ResourceEnv:
    """What programs of this thread are divided over."""

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh of devices in force; one without axes, whose `empty` is True, where there is none."""
        mesh = _options.gradix_mesh
        return mesh if isinstance(mesh, Mesh) else empty_mesh

    def __repr__(self) -> str:
        return f"ResourceEnv(mesh={self.physical_mesh})"


class ThreadResources:
    """Holds the `ResourceEnv` of this thread.

    Example:
        >>> from gradix.interpreters import pxla
        >>> pxla.thread_resources.env.physical_mesh.empty
        True
    """

    env = ResourceEnv()


thread_resources = ThreadResources()
