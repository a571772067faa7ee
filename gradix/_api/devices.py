"""Devices and where arrays lie: devices, device_put, device_get, block_until_ready and their kin."""
from __future__ import annotations

import os
import platform as _platform
import sys
from typing import Any

import numpy as np

from gradix._base.tree import flatten_axes, tree_flatten as flatten, tree_map
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array
from gradix._core.aval import make_aval
from gradix._core.operators import Array, install
from gradix._core.sharding import Shard, Sharding, SingleDeviceSharding
from gradix._core.trace import Tracer
from gradix._runtime import xla
from gradix._runtime.program import to_device
from gradix._version import __version__

# -- devices -----------------------------------------------------------------------------------------------------------


Device = xla.Device


def devices(backend: str | None = None) -> list:
    """All devices, of every process.

    Args:
        backend: the name of a platform, such as "cpu"; by default the fastest present.

    Example:
        >>> import gradix
        >>> gradix.devices("cpu")[0].platform
        'cpu'
    """
    found = xla.devices()
    if backend is None:
        return found
    name = backend if isinstance(backend, str) else getattr(backend, "platform", backend)
    if name == found[0].platform:
        return found
    raise RuntimeError(f"Unknown backend: {name!r} requested, but no platforms that are instances of {name} are "
                       f"present. Platforms present are: {found[0].platform}")


def local_devices(process_index: int | None = None, backend: str | None = None, host_id: int | None = None) -> list:
    """The devices of one process, by default this one.

    Args:
        process_index: the number of the process.
        backend: the platform, "cpu" or "gpu"; the default one by default.
        host_id: the former name of `process_index`.

    Raises:
        ValueError: there is no such process.

    Example:
        >>> import gradix
        >>> gradix.local_devices() == gradix.devices()
        True
    """
    wanted = process_index if process_index is not None else host_id
    if wanted is None:
        wanted = xla.client().process_index()
    elif wanted not in process_indices(backend):
        raise ValueError(f"Unknown process_index {wanted}; the processes are {process_indices(backend)}.")
    return [d for d in devices(backend) if d.process_index == wanted]


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes.

    Example:
        >>> import gradix
        >>> gradix.device_count() == len(gradix.devices())
        True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    Example:
        >>> import gradix
        >>> gradix.local_device_count() == len(gradix.local_devices())
        True
    """
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process, from 0.

    Example:
        >>> import gradix
        >>> gradix.process_index()
        0
    """
    return xla.client().process_index()


def process_count(backend: str | None = None) -> int:
    """The number of processes that share the devices.

    Example:
        >>> import gradix
        >>> gradix.process_count()
        1
    """
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes.

    Example:
        >>> import gradix
        >>> gradix.process_indices()
        [0]
    """
    return sorted({d.process_index for d in devices(backend)})


host_id, host_count, host_ids = process_index, process_count, process_indices


def default_backend() -> str:
    """The platform computations run on: "cpu", "gpu", ...

    Example:
        >>> import gradix
        >>> gradix.default_backend()
        'cpu'
    """
    return xla.devices()[0].platform


# -- moving ------------------------------------------------------------------------------------------------------------

class _Placement:
    """What `device_put` keeps with an array: the device it was committed to, and its buffer there."""

    __slots__ = ("device", "buffer")

    def __init__(self, device, buffer):
        self.device, self.buffer = device, buffer


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """A tree of arrays, each on a device.

    Args:
        x: arrays, or anything convertible to one, in a tree.
        device: a device, a sharding on one device, or a tree prefix of them; None leaves the choice open.
        src: where the arrays come from; accepted, not needed.
        donate, may_alias: whether the new arrays may take over the memory of the old. They never do here.

    Raises:
        ValueError: `device` is neither, or no tree prefix of `x`.

    Example:
        >>> import gradix
        >>> gradix.device_put({"w": 1.5}, gradix.devices()[0])
        {'w': Array(1.5, dtype=float32, weak_type=True)}
    """
    leaves, tree = flatten(x)
    if device is None or _is_place(device):
        places = [device] * len(leaves)
    else:
        places = flatten_axes("device_put device", tree, device)
    return tree.unflatten([_put(leaf, place) for leaf, place in zip(leaves, places)])


def _is_place(x) -> bool:
    return x is None or isinstance(x, Sharding) or hasattr(x, "device_kind")


def _put(x, place):
    if not _is_place(place):
        raise ValueError(f"device_put only accepts None, a Device, a Sharding or a tree of these values as `device`; "
                         f"got {place!r} of type {type(place).__name__}.")
    try:
        x = as_array(x)
    except TypeError as e:
        raise TypeError(f"Argument {x!r} of type {type(x)} is not a valid JAX type. {e}") from None
    if isinstance(x, Tracer) or place is None:
        return x
    return _committed_to(x, _one_device(place))


def _one_device(place):
    if not isinstance(place, Sharding):
        return place
    if place.num_devices != 1:
        raise ValueError(f"device_put takes a sharding on one device, got {place} on {place.num_devices} devices.")
    return next(iter(place.device_set))


def _committed_to(x, device) -> ArrayImpl:
    """The array on `device`. The host's value is kept, so that programs for other devices can use it too."""
    out = ArrayImpl(x.host, x.aval)
    if device == xla.local_devices()[0]:
        out._buffer = x._buffer if x._buffer is not None else xla.put(x.host, x.aval, owned=True)
        out._extra = _Placement(device, out._buffer)
    else:
        out._extra = _Placement(device, xla.put(x.host, x.aval, device, owned=True))
    return out


def device_get(x):
    """A tree of arrays as NumPy arrays; other leaves stay as they are, and so do traced arrays, which have no values yet.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.device_get({"a": jnp.arange(3), "b": 2})
        {'a': array([0, 1, 2], dtype=int32), 'b': 2}
    """
    return tree_map(_fetched, x)


def _fetched(leaf):
    if not isinstance(leaf, Array) or isinstance(leaf, Tracer) or isinstance(leaf.aval.dtype, dtypes.ExtendedDType):
        return leaf
    return np.asarray(leaf)


def block_until_ready(x):
    """Wait until all arrays in a tree have been computed; returns the tree.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.block_until_ready(jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    for leaf in flatten(x)[0]:
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x):
    """Begin to fetch all arrays in a tree to the host; returns the tree.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> losses = gradix.copy_to_host_async({"train": jnp.ones(2), "test": jnp.zeros(2)})
        >>> sorted(losses)
        ['test', 'train']
    """
    for leaf in flatten(x)[0]:
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def live_arrays(platform: str | None = None) -> list:
    """The arrays that hold device memory now; small arrays kept on the host alone are not among them.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> big = gradix.jit(lambda x: x + 1)(jnp.zeros(100_000))
        >>> any(a.shape == big.shape for a in gradix.live_arrays())
        True
    """
    if not xla.is_started():
        return []
    devices(platform)
    return [ArrayImpl(None, make_aval(tuple(b.aval.shape), np.dtype(b.aval.dtype), False), b)
            for b in xla.client().live_arrays() if not b.is_deleted()]


def effects_barrier() -> None:
    """Wait for the effects of all computations dispatched.

    Programs with effects are waited for when they are called, so by now all of them have happened.

    Example:
        >>> import gradix
        >>> gradix.jit(lambda x: gradix.debug.print("x is {}", x))(2)
        x is 2
        >>> gradix.effects_barrier()
    """


def print_environment_info(return_string: bool = False) -> str | None:
    """Print, or return, what a bug report needs: versions, devices, platform and environment variables.

    Example:
        >>> import gradix
        >>> report = gradix.print_environment_info(return_string=True)
        >>> report.splitlines()[0].startswith("gradix:")
        True
    """
    here = xla.devices()
    versions = {"gradix": __version__, "jaxlib": xla.jaxlib_version, "numpy": np.__version__,
                "python": sys.version.replace("\n", " "),
                "device info": f"{here[0].device_kind}-{len(here)}, {local_device_count()} local devices",
                "process_count": process_count(), "platform": _platform.uname()}
    lines = [f"{k + ':':<8}{' ' if len(k) > 6 else ''}{v}" for k, v in versions.items()]
    names = ("XLA_FLAGS", "JAX_PLATFORMS", "LIBTPU_INIT_ARGS", "XLA_PYTHON_CLIENT_PREALLOCATE")
    lines += [f"{n}={os.environ[n]}" for n in names if n in os.environ]
    text = "\n".join(lines) + "\n"
    if return_string:
        return text
    return print(text)


# -- members of arrays -------------------------------------------------------------------------------------------------

def _placement(x) -> _Placement | None:
    found = getattr(x, "_extra", None)
    return found if type(found) is _Placement else None


def _device_of(x):
    found = _placement(x)
    if found is None and isinstance(x, Tracer):
        raise AttributeError("A traced array is on no device yet: placement is known of concrete arrays, outside jit.")
    return found.device if found is not None else xla.local_devices()[0]


def _shards(x) -> list[Shard]:
    return [Shard(_device_of(x), (slice(None),) * x.ndim, x)]


def _devices(self):
    """The set of devices that hold the array."""
    return {_device_of(self)}


def _addressable_data(self, index: int):
    """The part of the array on the device of number `index` among this process's."""
    return _shards(self)[index].data


def _unsafe_buffer_pointer(self) -> int:
    """The address of the values on their device, good only while the array lives."""
    if isinstance(self, Tracer):
        raise AttributeError("A traced array has no memory: unsafe_buffer_pointer is of concrete arrays, outside jit.")
    return xla.unsafe_buffer_pointer(to_device(self))


_MEMBERS: dict[str, Any] = {
    "sharding": property(lambda x: SingleDeviceSharding(_device_of(x))),
    "device": property(_device_of),
    "devices": _devices,
    "committed": property(lambda x: _placement(x) is not None),
    "is_fully_addressable": property(lambda x: True),
    "is_fully_replicated": property(lambda x: True),
    "addressable_shards": property(_shards),
    "global_shards": property(_shards),
    "addressable_data": _addressable_data,
    "unsafe_buffer_pointer": _unsafe_buffer_pointer,
}
install(_MEMBERS)
