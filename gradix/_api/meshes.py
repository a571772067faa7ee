"""The mesh in force, and meshes made of the present devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._base.errors import class_of
from gradix._core.mesh import AbstractMesh, AxisType, BaseMesh, Mesh, empty_abstract_mesh, empty_mesh
from gradix._core.sharding import SingleDeviceSharding
from gradix._core.trace import state
from gradix._runtime import xla

_options = _config.state


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None, *, devices: Sequence | None = None
) -> Mesh:
    """A mesh of the present devices.

    Args:
        axis_shapes: the number of devices along each axis.
        axis_names: a name for each axis.
        axis_types: an `AxisType` for each; `Explicit` by default.
        devices: the devices to choose from, all by default; the mesh takes as many of them as it
            needs, from the first on.

    Raises:
        ValueError: there are too few devices, not as many names as sizes, or a size is no int.

    Example:
        >>> import gradix
        >>> gradix.make_mesh((1,), ("data",)).axis_types
        (Explicit,)
    """
    if not isinstance(axis_shapes, Iterable) or isinstance(axis_shapes, str):
        raise TypeError(
            f"make_mesh: axis_shapes must hold a size per axis, as in ({axis_shapes!r},), got {axis_shapes!r}."
        )
    names = tuple([axis_names] if isinstance(axis_names, str) else axis_names)
    if not all(isinstance(n, (int, np.integer)) for n in axis_shapes):
        raise ValueError(
            f"`axis_shapes` passed to `make_mesh` should be a sequence of ints, the number of devices along each axis: "
            f"got {tuple(axis_shapes)}."
        )
    sizes = tuple([int(n) for n in axis_shapes])
    found = list(xla.devices() if devices is None else devices)
    if len(found) < prod(sizes):
        raise ValueError(
            f"Number of devices {len(found)} must be >= the product of mesh_shape {sizes}. On the CPU, "
            "gradix.config.update('jax_num_cpu_devices', n) makes more."
        )
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    chosen = np.empty(prod(sizes), dtype=object)
    chosen[:] = found[: prod(sizes)]
    return Mesh(chosen.reshape(sizes), names, types)


class set_mesh:
    """Put a mesh in force, from now on, or until the end of a `with` block.

    PartitionSpecs without a mesh then refer to it, and programs run on its devices.

    Args:
        mesh: the mesh, or None for no mesh.

    Raises:
        ValueError: `mesh` is not a Mesh, or has manual axes, or a function is being traced.

    Example:
        >>> import gradix
        >>> with gradix.set_mesh(gradix.make_mesh((1,), ("data",))):
        ...     gradix.sharding.get_abstract_mesh().axis_names
        ('data',)
    """

    __slots__ = ("mesh", "before")

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `gradix.sharding.Mesh`. Got {class_of(mesh)}.")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(
                f"set_mesh got {mesh}, which contains manual axes {mesh.manual_axes}. Axes are manual inside of "
                "shard_map alone: make the mesh with axis_types of Auto or Explicit."
            )
        if state.stage is not None:
            raise ValueError(
                "`set_mesh` can only be used outside of `jit`. Maybe you want `gradix.sharding.use_abstract_mesh`?"
            )
        self.mesh = mesh
        self.before = [(name, _config.enter_local(name, mesh)) for name in _OPTIONS]

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *exc) -> None:
        for name, entry in self.before:
            _config.leave_local(name, entry)


_OPTIONS = "gradix_mesh", "gradix_home_mesh"


class use_abstract_mesh:
    """Context manager in which PartitionSpecs refer to this mesh, which has no devices.

    Where `set_mesh` has put devices in force, these stand along the axes of this mesh, in their
    order; so the names, the sizes and the types of axes may differ, but not the number of devices.
    A mesh of another `abstract_device` stays without devices.

    Args:
        mesh: the mesh.

    Raises:
        ValueError: `mesh` is not an AbstractMesh, or has more or fewer devices than the mesh in force.

    Example:
        >>> import gradix
        >>> mesh = gradix.sharding.AbstractMesh((2,), ("rows",))
        >>> with gradix.sharding.use_abstract_mesh(mesh):
        ...     print(dict(gradix.sharding.get_abstract_mesh().shape))
        {'rows': 2}
    """

    __slots__ = ("mesh", "before")

    def __init__(self, mesh: BaseMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type AbstractMesh. Got type: {class_of(mesh)}.")
        home = _home_like(mesh)
        if home is not None and mesh.size != home.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh: {home} is in force, of {home.size} devices, "
                f"but got {mesh}, of {mesh.size}. Give the axes other sizes with this product, or put another "
                "mesh in force with gradix.set_mesh."
            )
        self.mesh = mesh

    def __enter__(self) -> BaseMesh:
        home, mesh = _home_like(self.mesh), self.mesh
        if home is not None:
            found = Mesh(home.devices.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)
            self.before = [(name, _config.enter_local(name, found)) for name in _OPTIONS]
        else:
            self.before = [("gradix_mesh", _config.enter_local("gradix_mesh", mesh))]
        return mesh

    def __exit__(self, *exc) -> None:
        for name, entry in self.before:
            _config.leave_local(name, entry)


def _home_like(mesh: AbstractMesh) -> Mesh | None:
    """The mesh that `set_mesh` has put in force, unless `mesh` is empty or of other devices, such as those to come."""
    home, device = _options.gradix_home_mesh, mesh.abstract_device
    if not isinstance(home, Mesh) or home.empty or not mesh.axis_names:
        return None
    return home if device in (None, home.abstract_mesh.abstract_device) else None


def get_mesh() -> Mesh:
    """The mesh in force, with its devices; an empty mesh if there is none.

    Raises:
        ValueError: a function is being traced.

    Example:
        >>> import gradix
        >>> gradix.sharding.get_mesh().empty
        True
    """
    if state.stage is not None:
        raise ValueError(
            "`get_mesh` can only be used outside of `jit`. Maybe you want `gradix.sharding.get_abstract_mesh()`?"
        )
    mesh = _options.gradix_mesh
    return mesh if isinstance(mesh, Mesh) else empty_mesh


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in force, without its devices; an empty mesh if there is none.

    Example:
        >>> import gradix
        >>> gradix.sharding.get_abstract_mesh().axis_names
        ()
    """
    mesh = _options.gradix_mesh
    return empty_abstract_mesh if mesh is None else mesh.abstract_mesh


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays that lie as a whole on `device`.

    Example:
        >>> import gradix
        >>> gradix.sharding.make_single_device_sharding(gradix.devices()[0]).num_devices
        1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
