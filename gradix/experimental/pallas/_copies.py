"""Copies between references of a kernel, with the semaphores that tell when they are done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._core.refs import Ref
from gradix.experimental.pallas._tools import remote


class AsyncCopyDescriptor:
    """A copy from one reference to another, to be started and waited for.

    Nothing runs at the same time here, so the copy is made when it is started.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def swap_in(refs):
        ...     copy = pltpu.AsyncCopyDescriptor(refs["new"], refs["old"].at[pl.ds(1, 2)], None)
        ...     copy.start()
        ...     copy.wait()
        >>> pl.run_state(swap_in)({"old": jnp.zeros(3), "new": jnp.ones(2)})["old"]
        Array([0., 1., 1.], dtype=float32)
    """

    def __init__(self, src_ref: Any, dst_ref: Any, sem: Any):
        for name, ref in (("src_ref", src_ref), ("dst_ref", dst_ref)):
            if not isinstance(ref, Ref):
                raise TypeError(
                    f"{name} of a copy must be a reference, got {ref!r} of type {type(ref).__name__}. Pass x_ref "
                    "or x_ref.at[index], not x_ref[...]."
                )
        if src_ref.shape != dst_ref.shape or src_ref.dtype != dst_ref.dtype:
            raise ValueError(
                f"a copy needs references of one type, got {src_ref.aval.inner_aval.str_short()} and "
                f"{dst_ref.aval.inner_aval.str_short()}. Take parts of them with ref.at[index]."
            )
        self.src_ref, self.dst_ref, self.sem = src_ref, dst_ref, sem

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy, or with `add` add to what is there, and count that in the semaphore."""
        value = self.src_ref.read()
        self.dst_ref.write(self.dst_ref.read() + value if add else value)
        if self.sem is not None:
            self.sem.write(self.sem.read() + np.int32(1))

    def wait(self) -> None:
        """Wait until the copy is done."""
        if self.sem is not None:
            self.sem.write(self.sem.read() - np.int32(1))

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """A copy between references of one type; `start` and `wait` are its methods.

    Raises:
        TypeError: an argument is not a reference.
        ValueError: the references differ in shape or dtype.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x, o, sem):
        ...     copy = pltpu.make_async_copy(x, o, sem)
        ...     copy.start()
        ...     copy.wait()
        >>> sems = [pltpu.SemaphoreType.DMA]
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((2,), "int32"), scratch_shapes=sems)(jnp.array([3, 5]))
        Array([3, 5], dtype=int32)
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False) -> AsyncCopyDescriptor:
    """As `make_async_copy`, and start it.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def accumulate(refs):
        ...     pltpu.async_copy(refs["x"], refs["sum"], None, add=True).wait()
        >>> pl.run_state(accumulate)({"sum": jnp.ones(2), "x": jnp.array([3.0, 5.0])})["sum"]
        Array([4., 6.], dtype=float32)
    """
    copy = AsyncCopyDescriptor(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copy from one reference to another, or with `add` add to what is there.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x_ref, out_ref):
        ...     pltpu.sync_copy(x_ref, out_ref)
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([3, 5], dtype=int32)
    """
    AsyncCopyDescriptor(src_ref, dst_ref, None).start(add=add)


def _remote_copy(name: str) -> Callable[..., AsyncCopyDescriptor]:
    def copy(
        src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any, device_id_type: Any = None
    ) -> AsyncCopyDescriptor:
        raise remote(name)

    copy.__name__ = copy.__qualname__ = name
    copy.__doc__ = f"""A copy to another device, which kernels cannot make here.

    Raises:
        NotImplementedError: always.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.{name}(None, None, None, None, device_id=1)
        Traceback (most recent call last):
            ...
        NotImplementedError: {name} reaches other devices from within a kernel, ...
    """
    return copy


make_async_remote_copy = _remote_copy("make_async_remote_copy")
async_remote_copy = _remote_copy("async_remote_copy")
