"""Devices arranged as arrays, from which meshes are made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
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

    Args:
        mesh_shape: the shape; its product must be the number of devices.
        devices: the devices; by default all.
        contiguous_submeshes, allow_split_physical_axes: not used; they are for devices in a
            physical grid, which CPUs and GPUs are not.

    Raises:
        ValueError: the number of devices is not the product of `mesh_shape`.

    Example:
        >>> import gradix
        >>> create_device_mesh((1, 1), gradix.devices()[:1]).shape
        (1, 1)
    """
    shape, found = tuple(mesh_shape), list(_devices() if devices is None else devices)
    if prod(shape) != len(found):
        raise ValueError(
            f"Number of devices {len(found)} must equal the product of mesh_shape {shape}, {prod(shape)}. "
            "Change the shape, or pass as many devices."
        )
    out = np.empty(len(found), dtype=object)
    out[:] = sorted(found, key=lambda d: d.process_index)
    return out.reshape(shape)


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
        allow_split_physical_axes: not used.

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
        blocks[i] = create_device_mesh(mesh_shape, g)
    return np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist())


__dir__ = _own_names(__name__)
