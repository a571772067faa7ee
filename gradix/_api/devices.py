"""Devices, processes, and waiting for arrays: devices, local_devices, block_until_ready, …."""

from __future__ import annotations

import gc
import os
import platform as _platform
import sys
from typing import TypeVar

import numpy as np

from gradix._base import config
from gradix._base.lazy import alias
from gradix._base.tree import tree_flatten as flatten
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._runtime import xla
from gradix._version import __version__

T = TypeVar("T")

# -- devices ---------------------------------------------------------------------------------------


Device = xla.Device


def devices(backend: str | None = None) -> list:
    """All devices of all processes.

    Args:
        backend: the name of a platform, such as "cpu"; by default, the fastest that is present.

    Raises:
        RuntimeError: there is no platform of this name.

    Example:
        >>> import gradix
        >>> gradix.devices("cpu")[0].platform
        'cpu'
    """
    if backend is None:
        return xla.devices()
    return xla.devices_of(backend if isinstance(backend, str) else getattr(backend, "platform", backend))


def local_devices(process_index: int | None = None, backend: str | None = None, host_id: int | None = None) -> list:
    """The devices of one process, by default this one.

    Args:
        process_index: the number of the process.
        backend: the name of a platform, "cpu" or "gpu"; by default, the fastest that is present.
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


host_id, host_count = alias(process_index, "host_id"), alias(process_count, "host_count")
host_ids = alias(process_indices, "host_ids")


def default_backend() -> str:
    """The platform computations run on: "cpu", "gpu", ...

    Example:
        >>> import gradix
        >>> gradix.default_backend()
        'cpu'
    """
    return xla.devices()[0].platform


def block_until_ready(x: T) -> T:
    """Wait until all arrays in a tree have been computed, and return the tree.

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


def copy_to_host_async(x: T) -> T:
    """Begin to copy all arrays in a tree to the host, and return the tree.

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


def _change_cpu_devices(count: int | None) -> None:
    """Start the platform again with `count` devices; called when jax_num_cpu_devices is set.

    Raises:
        RuntimeError: an array was put on one of the present devices.
    """
    if not xla.is_started() or count is None or count < 1 or count == len(xla.local_devices()):
        return
    if process_count() > 1:
        raise RuntimeError(
            "jax_num_cpu_devices cannot change once processes have joined; set it before distributed.initialize()."
        )
    give_up_devices(f"jax_num_cpu_devices cannot change to {count} under")


def give_up_devices(what: str) -> None:
    """Give up the devices, so that their next use starts the platform again.

    Arrays that were not put on a device by the user are kept.

    Args:
        what: the beginning of the error's sentence about arrays that prevent this.

    Raises:
        RuntimeError: the user has put an array on a device.
    """
    if not xla.is_started():
        return
    gc.collect()
    arrays = [x for x in gc.get_objects() if type(x) is ArrayImpl and getattr(x, "_buffer", None) is not None]
    held = [x for x in arrays if x.aval.place is not None and not x.is_deleted()]
    if held:
        shown = "; ".join([f"{x.aval.str_short()} on {sorted([d.id for d in x.devices()])}" for x in held[:5]])
        raise RuntimeError(
            f"{what} arrays that lie on the {len(xla.local_devices())} devices there are: {shown}"
            f"{f' and {len(held) - 5} more' if len(held) > 5 else ''}. Delete them with x.delete(), or "
            "keep np.asarray(x) in place of each."
        )
    # These lie on the first device only by default, so their values move to main memory.
    for x in arrays:
        if not x.is_deleted():
            _ = x.host
            x._buffer = None
    del arrays
    xla.renew()


config.on_update("jax_num_cpu_devices", _change_cpu_devices)


def live_arrays(platform: str | None = None) -> list:
    """The arrays that hold device memory now, without small arrays that are kept on the host only.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> big = gradix.jit(lambda x: x + 1)(jnp.zeros(100_000))
        >>> any(a.shape == big.shape for a in gradix.live_arrays())
        True
    """
    if not xla.is_started():
        return []
    devices(platform)
    return [
        ArrayImpl(None, make_aval(tuple(b.aval.shape), np.dtype(b.aval.dtype), False), b)
        for b in xla.client().live_arrays()
        if not b.is_deleted()
    ]


def effects_barrier() -> None:
    """Wait for the effects of all computations that were dispatched.

    It returns at once: the call of a program with effects returns only when they have happened.

    Example:
        >>> import gradix
        >>> gradix.jit(lambda x: gradix.debug.print("x is {}", x))(2)
        x is 2
        >>> gradix.effects_barrier()
    """


def print_environment_info(return_string: bool = False) -> str | None:
    """Print, or return as a string, what bug reports need: versions, devices, environment.

    Example:
        >>> import gradix
        >>> report = gradix.print_environment_info(return_string=True)
        >>> report.splitlines()[0].startswith("gradix:")
        True
    """
    here, posing, package = xla.devices(), sys.modules.get("jax"), sys.modules["gradix"]
    versions = {
        "gradix": __version__,
        **({"jax": posing.__version__} if posing is not None and posing.__file__ == package.__file__ else {}),
        "jaxlib": xla.jaxlib_version,
        "numpy": np.__version__,
        "python": sys.version.replace("\n", " "),
        "device info": f"{here[0].device_kind}-{len(here)}, {local_device_count()} local devices",
        "process_count": process_count(),
        "platform": _platform.uname(),
    }
    lines = [f"{k + ':':<8}{' ' if len(k) > 6 else ''}{v}" for k, v in versions.items()]
    names = ("XLA_FLAGS", "JAX_PLATFORMS", "LIBTPU_INIT_ARGS", "XLA_PYTHON_CLIENT_PREALLOCATE")
    lines += [f"{n}={os.environ[n]}" for n in names if n in os.environ]
    text = "\n".join(lines) + "\n"
    if return_string:
        return text
    return print(text)
