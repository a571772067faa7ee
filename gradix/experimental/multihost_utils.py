"""What several processes do together: gather, broadcast, wait, and check that they agree."""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradix._api.array_assembly import make_array_from_process_local_data, make_array_from_single_device_arrays
from gradix._api.devices import devices as _devices, process_count, process_index
from gradix._api.distributed import client as _client, global_state
from gradix._api.jit.jit import jit
from gradix._api.placing import device_put, placed
from gradix._base import config as _config
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import flatten_axes, tree_flatten as flatten, tree_map
from gradix._core.array import ArrayImpl, as_array
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.sharding import PartitionSpec, SingleDeviceSharding
from gradix._core.trace import Tracer
from gradix._runtime.xla import reached_sync_point

__all__ = [
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

_options = _config.state
_WAIT_MS = 600_000
_calls = itertools.count()


def _all_processes() -> Mesh:
    """A mesh of all devices, whose first axis is that of the processes."""
    grid = np.empty(len(_devices()), dtype=object)
    grid[:] = sorted(_devices(), key=lambda d: (d.process_index, d.id))
    return Mesh(grid.reshape(process_count(), -1), ("processes", "local_devices"))


def _gathered(x: np.ndarray) -> np.ndarray:
    """The values of all processes, stacked along a new first axis."""
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
    """The values of all processes, as a pytree of NumPy arrays; all processes call it.

    Args:
        in_tree: a pytree of arrays of the same shape on all processes, which are stacked along a
            new first axis, or of arrays divided over all processes, which are gathered whole.
        tiled: whether to concatenate the arrays along their first axis instead of stacking them.
            Arrays divided over all processes are gathered in either case.

    Example:
        >>> process_allgather(np.arange(2))
        array([[0, 1]])
    """

    def gather(x):
        if _is_global(x):
            mesh = getattr(x.aval.place.sharding, "mesh", None) or _all_processes()
            return np.asarray(jit(lambda v: v, out_shardings=NamedSharding(mesh, PartitionSpec()))(x))
        if tiled and process_count() == 1:
            return np.asarray(x)
        stacked = _gathered(np.asarray(x))
        return np.concatenate(list(stacked)) if tiled and stacked.ndim > 1 else stacked

    return tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process as a pytree of NumPy arrays, on all processes, which all call it.

    Args:
        in_tree: a pytree of arrays, of the same shapes and dtypes on all processes.
        is_source: whether this process is the one whose values are sent; by default process 0 is.

    Example:
        >>> broadcast_one_to_all(np.arange(2))
        array([0, 1])
    """
    source = process_index() == 0 if is_source is None else is_source
    if process_count() == 1:
        return tree_map(np.asarray, in_tree)

    def send(x):
        x = np.asarray(x)
        rows = _gathered(x if source else np.zeros_like(x))
        marks = _gathered(np.asarray(int(source)))
        return np.asarray(rows[int(np.argmax(marks))])

    return tree_map(send, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have made this call.

    Args:
        name: a name for the place in the program, the same on all processes.

    Raises:
        RuntimeError: some processes did not call it in time; the message names them.
        AssertionError: the processes gave different names.

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
            f"sync_global_devices({name!r}): process {process_index()} waited {_WAIT_MS // 1000} s. {e}"
        ) from None
    assert_equal(np.uint32(zlib.crc32(name.encode())), f"sync_global_devices name mismatch ('{name}')")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise an error on all processes if their values differ from those of process 0.

    Args:
        in_tree: a pytree of arrays, of the same shapes and dtypes on all processes.
        fail_message: what the error message begins with.

    Raises:
        AssertionError: the values of some process differ.

    Example:
        >>> assert_equal({"step": 3})
    """
    expected = broadcast_one_to_all(in_tree)
    ours, theirs = flatten(in_tree)[0], flatten(expected)[0]
    is_equal = all(np.array_equal(a, b) for a, b in zip(ours, theirs))
    others = np.flatnonzero(~_gathered(np.asarray(is_equal))).tolist()
    if others:  # All processes raise: one that went on would wait for the others.
        raise AssertionError(
            f"{fail_message} Expected the value of process 0: {expected}; got: {in_tree}. The values of "
            f"the processes {others} differ from it."
        )


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays divided over all processes, made of the part that each process has.

    Args:
        local_inputs: a pytree of arrays, the parts of this process.
        global_mesh: a mesh of the devices of all processes.
        pspecs: PartitionSpecs, as a tree prefix of `local_inputs`.

    Raises:
        ValueError: `pspecs` is None.
        TypeError: an array is traced, and there are several processes.

    Example:
        >>> import gradix
        >>> mesh = gradix.make_mesh((1,), ("x",))
        >>> host_local_array_to_global_array(np.arange(2.0, dtype=np.float32), mesh, PartitionSpec("x"))
        Array([0., 1.], dtype=float32)
    """
    leaves, tree = flatten(local_inputs)
    specs = _specs("host_local_array_to_global_array", tree, pspecs)
    return tree.unflatten([_global_array(x, global_mesh, s) for x, s in zip(leaves, specs)])


def _global_array(x: Any, mesh: Mesh, spec: PartitionSpec):
    if _is_global(x):
        return x
    if not isinstance(x, Tracer):
        return make_array_from_process_local_data(NamedSharding(mesh, spec), np.asarray(x))

    if process_count() > 1:
        raise TypeError(
            "host_local_array_to_global_array takes concrete arrays of this process, got a traced "
            "one, whose shape would change with several processes. Call it outside of jit and vmap."
        )
    return device_put(x, NamedSharding(mesh, spec))


def _specs(what: str, tree, pspecs: Any) -> list:
    if pspecs is None:
        raise ValueError(
            f"`None` is not a valid input to the pspecs argument of {what}. Write PartitionSpec() for "
            "arrays that every device holds whole."
        )
    return flatten_axes(f"{what} pspecs", tree, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts that this process holds of arrays divided over all processes.

    Args:
        global_inputs: a pytree of arrays, divided over the mesh.
        global_mesh: a mesh of the devices of all processes.
        pspecs: PartitionSpecs, as a tree prefix of `global_inputs`.

    Raises:
        ValueError: `pspecs` is None.

    Example:
        >>> import gradix
        >>> mesh = gradix.make_mesh((1,), ("x",))
        >>> global_array_to_host_local_array(as_array(np.ones(2, np.float32)), mesh, PartitionSpec("x"))
        Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten(global_inputs)
    if not isinstance(global_mesh, Mesh):
        raise TypeError(
            f"global_array_to_host_local_array: global_mesh must be a Mesh, got a {type(global_mesh).__name__}."
        )
    specs = _specs("global_array_to_host_local_array", tree, pspecs)
    return tree.unflatten([_local_part(as_array(x), global_mesh, s) for x, s in zip(leaves, specs)])


def _is_global(x) -> bool:
    return type(x) is ArrayImpl and x.aval.place is not None and not x.aval.place.sharding.is_fully_addressable


def _local_part(x: Any, mesh: Mesh, spec: PartitionSpec):
    own_sharding = NamedSharding(mesh.local_mesh, spec)
    if type(x) is ArrayImpl and x.aval.place is not None and x.aval.place.sharding == own_sharding:
        return x  # all of it is of this process
    x = placed(x, NamedSharding(mesh, spec))
    local = NamedSharding(mesh.local_mesh, spec)
    pieces = x.addressable_shards
    part = pieces[0].data.aval.shape
    shape = tuple([n * f for n, f in zip(part, local.factors(len(part)))])
    own: list[Any] = [placed(p.data, SingleDeviceSharding(p.device)) for p in pieces]
    return make_array_from_single_device_arrays(shape, local, own)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes should save at this step, because one of them is about to be ended.

    From the first call on, the first SIGTERM does not end a process. Instead all processes agree on
    a step that none of them has passed, and the result is True on each of them at that step. A
    second SIGTERM ends the process.

    Args:
        step_id: the number of the step. It grows from call to call, and all processes call this
            function for each step.

    Example:
        >>> reached_preemption_sync_point(0)
        False
    """
    joined = global_state.joined
    if joined is None or not _options.jax_enable_preemption_service:
        return False
    return reached_sync_point(joined, step_id)


class ProcessFailureError(RuntimeError):
    """Processes were lost in a block under `live_devices`; `failed_devices` holds their devices.

    Example:
        >>> import gradix
        >>> from gradix.experimental.multihost_utils import ProcessFailureError
        >>> try:
        ...     raise ProcessFailureError({gradix.devices()[0]})
        ... except ProcessFailureError as e:
        ...     print(e)
        The processes [0] were lost, with the devices {CpuDevice(id=0)}.
    """

    def __init__(self, failed_devices: set):
        self.failed_devices = failed_devices
        lost = sorted({d.process_index for d in failed_devices})
        super().__init__(f"The processes {lost} were lost, with the devices {failed_devices}.")


@contextlib.contextmanager
def live_devices(devices: list) -> Iterator[list]:
    """A context manager that gives those of the devices whose processes are alive.

    All live processes enter and leave the block together. A process survives the loss of others
    only under the option `jax_enable_recoverability`.

    Args:
        devices: the devices to ask about.

    Raises:
        RuntimeError: the processes were not joined by `gradix.distributed.initialize`.
        ProcessFailureError: a process was lost in the block; it is raised at the end of the block.

    Example:
        >>> import gradix
        >>> from gradix.experimental import multihost_utils
        >>> with multihost_utils.live_devices(gradix.devices()) as alive:
        ...     pass
        Traceback (most recent call last):
            ...
        RuntimeError: Distributed JAX not initialized: call gradix.distributed.initialize() before live_devices.
    """
    connection = _client()
    if connection is None:
        raise RuntimeError("Distributed JAX not initialized: call gradix.distributed.initialize() before live_devices.")
    asked = sorted({d.process_index for d in devices})
    before = connection.get_live_nodes(asked)
    try:
        yield [d for d in devices if d.process_index in before]
    finally:
        after = connection.get_live_nodes(asked)
        # A process that was started again has a new number.
        lost = {i for i, number in before.items() if after.get(i) != number}
        if lost:
            raise ProcessFailureError({d for d in devices if d.process_index in lost})


__dir__ = _own_names(__name__)
