"""Topologies: descriptions of the devices of a machine, from which meshes are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradix._api.devices import devices as _devices
from gradix._base.listing import own_names as _own_names
from gradix._core.mesh import AxisType, Mesh
from gradix.experimental.mesh_utils import create_device_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """A description of the devices of a machine.

    Args:
        devices: a list of devices.

    Example:
        >>> import gradix
        >>> from gradix.experimental import topologies
        >>> two = topologies.TopologyDescription(gradix.devices()[:1] * 2)
        >>> len(two.devices)
        2
    """

    def __init__(self, devices: list):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The topology of the devices of one platform that this process sees.

    Args:
        platform: the name of the platform; None for the default platform.

    Raises:
        RuntimeError: `platform` is not available.

    Example:
        >>> from gradix.experimental import topologies
        >>> len(topologies.get_attached_topology().devices) >= 1
        True
    """
    return TopologyDescription(list(_devices(platform)))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """The topology of a machine that is not attached, which is not supported.

    Args:
        topology_name: the name of a kind of machine.
        platform: the platform of the machine.
        **kwargs: further properties of the machine.

    Raises:
        NotImplementedError: always.

    Example:
        >>> from gradix.experimental import topologies
        >>> topologies.get_topology_desc("v5e:2x4", platform="tpu")
        Traceback (most recent call last):
            ...
        NotImplementedError: topology not implemented for v5e:2x4: ...
    """
    wanted = topology_name or platform or "another machine"
    raise NotImplementedError(
        f"topology not implemented for {wanted}: programs are compiled for attached devices only. "
        "Use get_attached_topology(), or gradix.export to compile on another machine."
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of the devices of a topology, with axes of type `Auto`.

    Args:
        topo: the topology, whose devices are all in the mesh.
        mesh_shape: the sizes of the axes; their product must be the number of devices.
        axis_names: the names of the axes.
        contiguous_submeshes: not used; it is for devices in a physical grid.

    Raises:
        ValueError: `mesh_shape` does not fit the number of devices or of `axis_names`.

    Example:
        >>> from gradix.experimental import topologies
        >>> topo = topologies.TopologyDescription(topologies.get_attached_topology().devices[:1])
        >>> dict(topologies.make_mesh(topo, (1, 1), ("x", "y")).shape)
        {'x': 1, 'y': 1}
    """
    if not isinstance(topo, TopologyDescription):
        raise TypeError(
            f"topologies.make_mesh takes a TopologyDescription first, got a {type(topo).__name__}. Write "
            "gradix.make_mesh(shape, axis_names) for a mesh of all devices."
        )
    grid = create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names, axis_types=(AxisType.Auto,) * len(tuple(axis_names)))


__dir__ = _own_names(__name__)
