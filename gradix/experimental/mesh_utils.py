"""Devices arranged as arrays, from which meshes are made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, groupby
from math import prod
from typing import Any

import numpy as np

from gradix._api.devices import devices as _devices
from gradix._base.listing import own_names as _own_names

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices as an array of shape `mesh_shape`, those of a process next to each other.

    TPUs, which stand in a physical grid, are put along the links between them: where the order
    of one axis is free, neighbours in the mesh are neighbours in a ring, and otherwise each axis of
    the mesh goes along one or more axes of the grid.

    Args:
        mesh_shape: the shape; its product must be the number of devices.
        devices: the devices; by default all.
        contiguous_submeshes: not used.
        allow_split_physical_axes: whether an axis of the grid may be divided among axes of the
            mesh; the devices then stay in their order.

    Raises:
        ValueError: the number of devices is not the product of `mesh_shape`.
        NotImplementedError: no axes of the grid have the product that an axis of the mesh needs.

    Example:
        >>> import gradix
        >>> create_device_mesh((1, 1), gradix.devices()[:1]).shape
        (1, 1)
    """
    for name, given in (("mesh_shape", mesh_shape), ("devices", () if devices is None else devices)):
        if not hasattr(given, "__iter__"):
            raise TypeError(f"create_device_mesh: {name} must be a sequence, got a {type(given).__name__}.")
    shape, found = tuple(mesh_shape), list(_devices() if devices is None else devices)
    if prod(shape) != len(found):
        raise ValueError(
            f"Number of devices {len(found)} must equal the product of mesh_shape {shape}, {prod(shape)}. "
            "Change the shape, or pass as many devices."
        )
    if found and found[0].platform == "tpu":
        return _along_links(found, shape, allow_split_physical_axes)
    return _array(sorted(found, key=lambda d: d.process_index)).reshape(shape)


def _array(devices: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(devices), dtype=object)
    out[:] = devices
    return out


# orders of neighbours in a ring: of the eight cores of a tray of two by two chips, and of chips
# that stand two by two, four by two and four by four
_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)
_RINGS = {4: (0, 1, 3, 2), 8: (0, 1, 2, 3, 7, 6, 5, 4), 16: (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)}


def _along_links(devices: list, shape: tuple[int, ...], split: bool) -> np.ndarray:
    """TPUs as an array of a shape, such that communication along its axes takes short ways."""
    kind, n, found = devices[0].device_kind, len(devices), _array(devices)
    if kind in ("TPU v2", "TPU v3"):
        in_rings = n == 8 or (shape[-1] == 8 and n % 8 == 0)
        return (found.reshape(-1, 8)[:, _TRAY] if in_rings else found).reshape(shape)
    if kind == "TPU7x" and n % 8 == 0:
        return found.reshape(-1, 8)[:, _TRAY].reshape(shape)
    if kind in ("TPU v5 lite", "TPU v6 lite") and (n in (4, 8) or n == 16 == max(shape)):
        in_rows = _array(sorted(devices, key=lambda d: tuple(d.coords)[::-1]))
        return in_rows[list(_RINGS[n])].reshape(shape)
    return _on_grid(devices, shape, split)


def _on_grid(devices: list, shape: tuple[int, ...], split: bool) -> np.ndarray:
    """Devices at coordinates as an array, each axis of which goes along axes of their grid.

    The last axis of the mesh chooses first, and takes as many axes of the grid as fit.
    """
    places = np.array([(*d.coords, d.core_on_chip) for d in devices])
    size = tuple(int(m) for m in places.max(0) + 1)
    if prod(size) != len(devices):
        return _array(devices).reshape(shape)
    grid = np.empty(size, dtype=object)
    for place, device in zip(places, devices):
        grid[tuple(place)] = device
    free, order = [i for i, s in enumerate(size) if s > 1], []
    for n in reversed(shape):
        fits = [
            axes
            for count in range(len(free), -1, -1)
            for axes in combinations(free, count)
            if prod(size[i] for i in axes) == n
        ]
        if not fits and split:
            return _array(devices).reshape(shape)
        if not fits:
            raise NotImplementedError(
                f"no axes of the grid of devices, {size}, can be an axis of size {n} of the mesh "
                f"{shape}, which takes axes from the last to the first. Change the shape, or pass "
                "allow_split_physical_axes=True."
            )
        order.append(fits[0])
        free = [i for i in free if i not in fits[0]]
    axes = [i for part in reversed(order) for i in part]
    return grid.transpose(*axes, *[i for i, s in enumerate(size) if s == 1]).reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices as an array of shape `mesh_shape * dcn_mesh_shape`, whose blocks are groups.

    It is meant for networks that are faster within a group of devices than between groups.

    Args:
        mesh_shape: the shape of the block of one group.
        dcn_mesh_shape: the number of groups along each axis.
        devices: the devices; by default all.
        process_is_granule: whether a group is the devices of one process; otherwise it is those of
            one `slice_index`.
        should_sort_granules_by_key: whether to order the groups by their numbers.
        allow_split_physical_axes: as for `create_device_mesh`.

    Raises:
        ValueError: the number of groups is not the product of `dcn_mesh_shape`, the two shapes have
            different lengths, or devices have no `slice_index`.

    Example:
        >>> import gradix
        >>> create_hybrid_device_mesh((1,), (1,), gradix.devices()[:1], process_is_granule=True).shape
        (1,)
    """
    found = list(_devices() if devices is None else devices)
    attribute = "process_index" if process_is_granule else "slice_index"
    if not all(hasattr(d, attribute) for d in found):
        raise ValueError(
            f"Device {found[0]} does not have attribute {attribute}, because it belongs to no slice. Pass "
            "process_is_granule=True to make the devices of each process a group."
        )
    if len(tuple(mesh_shape)) != len(tuple(dcn_mesh_shape)):
        raise ValueError(
            f"mesh_shape {tuple(mesh_shape)} and dcn_mesh_shape {tuple(dcn_mesh_shape)} must have the "
            "same number of axes."
        )

    def key(d):
        return getattr(d, attribute)

    ordered = sorted(found, key=key) if should_sort_granules_by_key else found
    groups = [list(g) for _, g in groupby(ordered, key)]
    if len(groups) != prod(dcn_mesh_shape):
        raise ValueError(
            f"Number of slices {len(groups)} must equal the product of dcn_mesh_shape "
            f"{tuple(dcn_mesh_shape)}, {prod(dcn_mesh_shape)}. Change the shape, or pass other devices."
        )
    blocks = np.empty(len(groups), dtype=object)
    for i, g in enumerate(groups):
        blocks[i] = create_device_mesh(mesh_shape, g, allow_split_physical_axes=allow_split_physical_axes)
    return np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist())


__dir__ = _own_names(__name__)
