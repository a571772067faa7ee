"""What devices there are, as something meshes are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradix._api.devices import devices as _devices
from gradix._base.listing import own_names as _own_names
from gradix._core.mesh import AxisType, Mesh
from gradix.experimental.mesh_utils import create_device_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """A number of devices.

    Args:
        devices: the devices.
    """

    def __init__(self, devices: list):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of this process's platform.

    Args:
        platform: the name of a platform; None for the default one.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> from gradix.experimental import topologies
        >>> len(topologies.get_attached_topology().devices) >= 1
        True
    """
    return TopologyDescription(list(_devices(platform)))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """Raises: programs are compiled for the devices of this process only.

    Args:
        topology_name: the name of a kind of machine.
        platform: its platform.
        kwargs: further properties of the machine.

    Raises:
        NotImplementedError: always.
    """
    wanted = topology_name or platform or "another machine"
    raise NotImplementedError(
        f"topology not implemented for {wanted}: programs are compiled for devices that are there. "
        "Use get_attached_topology(), and gradix.export to compile on another machine."
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of the devices, with axes of type `Auto`.

    Args:
        topo: the devices.
        mesh_shape: the sizes of the axes; their product must be the number of devices.
        axis_names: the names of the axes.
        contiguous_submeshes: not used; it is for devices in a physical grid.

    Raises:
        ValueError: the sizes do not fit the number of devices, or the number of names.

    Example:
        >>> from gradix.experimental import topologies
        >>> topo = topologies.TopologyDescription(topologies.get_attached_topology().devices[:1])
        >>> topologies.make_mesh(topo, (1, 1), ("x", "y")).shape
        OrderedDict([('x', 1), ('y', 1)])
    """
    grid = create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names, axis_types=(AxisType.Auto,) * len(tuple(axis_names)))


__dir__ = _own_names(__name__)
