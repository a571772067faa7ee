"""Semaphores of kernels: counts that signals raise and waits lower."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._core.trace import outside
from gradix.experimental.pallas._memory import SEMAPHORE, check_semaphore
from gradix.experimental.pallas._programs import outermost, shared_ref
from gradix.experimental.pallas._races import waited
from gradix.experimental.pallas._remote import deliver

_BARRIER = "barrier"


def semaphore_signal(
    sem_or_view: Any, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None
) -> None:
    """Add to the count of a semaphore, of this device or of another one of the mesh.

    Args:
        sem_or_view: a reference to the semaphore. With a `device_id`, that of the other device.
        inc: how much to add.
        device_id: the device, in a kernel under `shard_map`: its indices along the axes of the mesh,
            a dict from axes to indices (the others being those of this device), or a number.
        device_id_type: what a number means: `pl.DeviceIdType.LOGICAL` counts all devices of the mesh.
        core_index: accepted; it has no effect here.

    Raises:
        ValueError: a `device_id` does not fit the mesh, or there is none.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def count(refs):
        ...     def signal(sem):
        ...         pl.semaphore_signal(sem, 2)
        ...         pl.semaphore_signal(sem)
        ...         refs[...] = pl.semaphore_read(sem)
        ...     pl.run_scoped(signal, pltpu.SemaphoreType.REGULAR)
        >>> pl.run_state(count)(0)
        Array(3, dtype=int32)
    """
    check_semaphore("pl.semaphore_signal", sem_or_view)
    inc = jnp.asarray(inc, np.int32)
    if device_id is None:
        sem_or_view.write(sem_or_view.read() + inc)
        return

    def write(arrives, inc, sem):
        sem.write(sem.read() + jnp.where(arrives, inc, np.int32(0)))

    deliver("semaphore_signal", device_id, device_id_type, inc, [sem_or_view], write)


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Wait until a semaphore has counted to `value`, and take that off.

    Nothing runs at the same time here, so what is waited for has happened.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def count(refs):
        ...     def wait(sem):
        ...         pl.semaphore_signal(sem, 5)
        ...         pl.semaphore_wait(sem, 3)
        ...         refs[...] = pl.semaphore_read(sem)
        ...     pl.run_scoped(wait, pltpu.SemaphoreType.REGULAR)
        >>> pl.run_state(count)(0)
        Array(2, dtype=int32)
    """
    check_semaphore("pl.semaphore_wait", sem_or_view)
    waited(sem_or_view)
    if decrement:
        sem_or_view.write(sem_or_view.read() - jnp.asarray(value, np.int32))


def semaphore_read(sem_or_view: Any) -> Any:
    """The count of a semaphore, an int32.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def counts(refs):
        ...     def read(sem):
        ...         pl.semaphore_signal(sem.at[1], 4)
        ...         refs[...] = pl.semaphore_read(sem)
        ...     pl.run_scoped(read, pltpu.SemaphoreType.REGULAR((2,)))
        >>> pl.run_state(counts)(jnp.zeros(2, "int32"))
        Array([0, 4], dtype=int32)
    """
    check_semaphore("pl.semaphore_read", sem_or_view)
    return sem_or_view.read()


def get_barrier_semaphore() -> Any:
    """A reference to the semaphore of the running kernel by which devices wait for each other.

    Each call in a kernel gives the same one, whose count begins with 0.

    Raises:
        ValueError: no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(o):
        ...     pl.semaphore_signal(pltpu.get_barrier_semaphore(), 2)
        ...     pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)
        ...     o[0] = pl.semaphore_read(pltpu.get_barrier_semaphore())
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((1,), "int32"))()
        Array([1], dtype=int32)
    """
    running = outermost("pltpu.get_barrier_semaphore")
    found = running.shared.get(_BARRIER)
    if found is None:
        with outside():
            found = running.shared[_BARRIER] = shared_ref(running, jnp.zeros((), np.int32), SEMAPHORE)
    return found
