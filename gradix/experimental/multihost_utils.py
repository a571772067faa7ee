"""What programs of several processes do together: gather, broadcast, wait, and check that they agree."""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradix._api.array_assembly import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from gradix._api.devices import (
    devices as _devices,
    local_devices as _local_devices,
    process_count,
    process_index,
)
from gradix._api.distributed import client as _client
from gradix._api.jit.jit import jit
from gradix._api.placing import placed
from gradix._base.tree import flatten_axes, tree_flatten as flatten, tree_map
from gradix._core.array import ArrayImpl, as_array
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.sharding import PartitionSpec, SingleDeviceSharding

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

_WAIT_MS = 600_000
_calls = itertools.count()


def _all_processes() -> Mesh:
    """All devices, with an axis of processes in front."""
    grid = np.empty(len(_devices()), dtype=object)
    grid[:] = sorted(_devices(), key=lambda d: (d.process_index, d.id))
    return Mesh(grid.reshape(process_count(), -1), ("processes", "local_devices"))


def _gathered(x: np.ndarray) -> np.ndarray:
    """The values of all processes, stacked."""
    if process_count() == 1:
        return x[None]
    mesh = _all_processes()
    held = x.astype(np.uint8) if x.dtype == bool else x
    rows = make_array_from_process_local_data(
        NamedSharding(mesh, PartitionSpec("processes")), held[None], (process_count(), *x.shape)
    )
    whole = jit(lambda v: v, out_shardings=NamedSharding(mesh, PartitionSpec()))(rows)
    return np.asarray(whole).astype(x.dtype)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, as NumPy arrays.

    Args:
        in_tree: arrays of one shape on all processes, which are stacked; or arrays over all of
            them, which are gathered whole.
        tiled: put them one after another along the first axis in place of stacking them.

    Example:
        >>> process_allgather(np.arange(2))
        array([[0, 1]])
    """

    def gather(x):
        if (
            type(x) is ArrayImpl
            and x.aval.place is not None
            and not x.aval.place.sharding.is_fully_addressable
        ):
            mesh = getattr(x.aval.place.sharding, "mesh", None) or _all_processes()
            return np.asarray(
                jit(lambda v: v, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)
            )
        stacked = _gathered(np.asarray(x))
        return np.concatenate(list(stacked)) if tiled and stacked.ndim > 1 else stacked

    return tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """What one process has, on all.

    Args:
        in_tree: arrays of one shape and dtype on all processes.
        is_source: whether this is the process; by default process 0 is.

    Example:
        >>> broadcast_one_to_all(np.arange(2))
        array([0, 1])
    """
    source = process_index() == 0 if is_source is None else is_source

    def send(x):
        x = np.asarray(x)
        rows = _gathered(x if source else np.zeros_like(x))
        marks = _gathered(np.asarray(int(source)))
        return rows[int(np.argmax(marks))]

    return tree_map(send, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes are here.

    Args:
        name: the same on all processes.

    Raises:
        RuntimeError: they do not come; the message tells which.
        AssertionError: they are at a place of another name.

    Example:
        >>> sync_global_devices("after loading")
    """
    connection = _client()
    if connection is None or process_count() == 1:
        return
    try:
        connection.wait_at_barrier(f"sync_global_devices:{next(_calls)}", _WAIT_MS)
    except Exception as e:
        raise RuntimeError(
            f"sync_global_devices({name!r}): process {process_index()} waited {_WAIT_MS // 1000} s. "
            f"{e}"
        ) from None
    assert_equal(
        np.uint32(zlib.crc32(name.encode())), f"sync_global_devices name mismatch ('{name}')"
    )


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise AssertionError where the values of the processes differ.

    Example:
        >>> assert_equal({"step": 3})
    """
    expected = broadcast_one_to_all(in_tree)
    ours, theirs = flatten(in_tree)[0], flatten(expected)[0]
    if not all(np.array_equal(a, b) for a, b in zip(ours, theirs)):
        raise AssertionError(f"{fail_message} Expected: {expected}; got: {in_tree}.")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over all processes, of the part that each has.

    Args:
        local_inputs: the parts of this process.
        global_mesh: the devices of all.
        pspecs: PartitionSpecs, as a tree prefix of `local_inputs`.

    Example:
        >>> import gradix
        >>> mesh = gradix.make_mesh((1,), ("x",))
        >>> host_local_array_to_global_array(np.arange(2.0, dtype=np.float32), mesh, PartitionSpec("x"))
        Array([0., 1.], dtype=float32)
    """
    leaves, tree = flatten(local_inputs)
    specs = flatten_axes("host_local_array_to_global_array pspecs", tree, pspecs)
    return tree.unflatten(
        [
            x
            if _is_global(x)
            else make_array_from_process_local_data(NamedSharding(global_mesh, s), np.asarray(x))
            for x, s in zip(leaves, specs)
        ]
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts that this process has of arrays over all processes.

    Args:
        global_inputs: arrays over the mesh.
        global_mesh: the devices of all.
        pspecs: PartitionSpecs, as a tree prefix of `global_inputs`.

    Example:
        >>> import gradix
        >>> mesh = gradix.make_mesh((1,), ("x",))
        >>> global_array_to_host_local_array(as_array(np.ones(2, np.float32)), mesh, PartitionSpec("x"))
        Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten(global_inputs)
    specs = flatten_axes("global_array_to_host_local_array pspecs", tree, pspecs)
    return tree.unflatten([_local_part(as_array(x), global_mesh, s) for x, s in zip(leaves, specs)])


def _is_global(x) -> bool:
    return (
        type(x) is ArrayImpl
        and x.aval.place is not None
        and not x.aval.place.sharding.is_fully_addressable
    )


def _local_part(x: Any, mesh: Mesh, spec: PartitionSpec):
    x = placed(x, NamedSharding(mesh, spec))
    local = NamedSharding(mesh.local_mesh, spec)
    pieces = x.addressable_shards
    part = pieces[0].data.aval.shape
    shape = tuple([n * f for n, f in zip(part, local.factors(len(part)))])
    own: list[Any] = [placed(p.data, SingleDeviceSharding(p.device)) for p in pieces]
    return make_array_from_single_device_arrays(shape, local, own)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the platform is about to stop this program: no platform tells that here.

    Raises:
        RuntimeError: no processes were joined.
    """
    if _client() is None:
        raise RuntimeError(
            "Preemption sync manager has not been initialized: call gradix.distributed.initialize() "
            "first."
        )
    return False


@contextlib.contextmanager
def live_devices(devices: list) -> Iterator[list]:
    """The devices, of those given, whose processes live."""
    connection = _client()
    if connection is None:
        yield [d for d in devices if d in _local_devices()]
        return
    alive = connection.get_live_nodes(sorted({d.process_index for d in devices}))
    yield [d for d in devices if d.process_index in alive]
