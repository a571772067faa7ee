"""Copies between references of a kernel, with the semaphores that tell when they are done."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._base.tree import tree_flatten
from gradix._core.refs import Ref
from gradix.experimental.pallas._memory import check_semaphore
from gradix.experimental.pallas._races import started, waited
from gradix.experimental.pallas._refs import DynamicPart, copy_part
from gradix.experimental.pallas._remote import deliver


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
            if not isinstance(ref, (Ref, DynamicPart)):
                raise TypeError(
                    f"{name} of a copy must be a reference, got {ref!r} of type {type(ref).__name__}. Pass x_ref "
                    "or x_ref.at[index], not x_ref[...]."
                )
        if _type_of(src_ref) != _type_of(dst_ref):
            raise ValueError(
                f"a copy needs references of one type, got {_type_of(src_ref)} and {_type_of(dst_ref)}. Take parts of "
                "them with ref.at[index]."
            )
        if sem is not None:
            check_semaphore("a copy", sem)
        self.src_ref, self.dst_ref, self.sem = src_ref, dst_ref, sem

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy, or with `add` add to what is there, and count that in the semaphore."""
        started(self.src_ref, self.dst_ref, (self.sem, self.sem), add)
        if isinstance(self.src_ref, DynamicPart):
            copy_part(self.src_ref, self.dst_ref, add)
        else:
            value = self.src_ref.read()
            self.dst_ref.write(self.dst_ref.read() + value if add else value)
        if self.sem is not None:
            self.sem.write(self.sem.read() + np.int32(1))

    def wait(self) -> None:
        """Wait until the copy is done."""
        if self.sem is not None:
            waited(self.sem)
            self.sem.write(self.sem.read() - np.int32(1))

    wait_send = wait_recv = wait


def _type_of(ref: Any) -> str:
    """The type of a reference, or of a part of traced size, as text."""
    return ref._shown() if isinstance(ref, DynamicPart) else ref.aval.inner_aval.str_short()


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """A copy between references of one type; `start` and `wait` are its methods.

    Parts of them may have traced sizes, `ref.at[pl.ds(start, size)]`; then the size is that of the source.

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

    Args:
        src_ref, dst_ref: references, or trees of them.
        add: whether to add.

    Raises:
        ValueError: the two are different trees, or a reference has another shape or dtype.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x_ref, out_ref):
        ...     pltpu.sync_copy(x_ref, out_ref)
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([3, 5], dtype=int32)
    """
    sources, tree = tree_flatten(src_ref)
    targets, other = tree_flatten(dst_ref)
    if tree != other:
        raise ValueError(f"sync_copy: src_ref is {tree}, and dst_ref is {other}. Pass trees of one structure.")
    for source, target in zip(sources, targets):
        AsyncCopyDescriptor(source, target, None).start(add=add)


class _RemoteCopyDescriptor(AsyncCopyDescriptor):
    """A copy to a reference of another device; see `make_async_remote_copy`."""

    def __init__(self, src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type):
        super().__init__(src_ref, dst_ref, send_sem)
        if recv_sem is not None:
            check_semaphore("a remote copy", recv_sem)
        self.recv_sem, self.device_id, self.device_id_type = recv_sem, device_id, device_id_type

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Send, and count that in the semaphores: the own one, and that of the device that receives."""

        if isinstance(self.src_ref, DynamicPart):
            raise NotImplementedError(
                f"a copy to another device needs a known size, got {_type_of(self.src_ref)}. Send a part of the "
                "largest size, and mask what is beyond where it arrives."
            )

        def write(arrives, value, dst, *recv):
            old = dst.read()
            dst.write(jnp.where(arrives, old + value if add else value, old))
            for sem in recv:
                sem.write(sem.read() + arrives.astype(np.int32))

        started(self.src_ref, self.dst_ref, (self.sem, self.recv_sem), add, is_remote=True)
        places = [self.dst_ref] if self.recv_sem is None else [self.dst_ref, self.recv_sem]
        deliver("a remote copy", self.device_id, self.device_id_type, self.src_ref.read(), places, write)
        if self.sem is not None:
            self.sem.write(self.sem.read() + np.int32(1))

    def wait(self) -> None:
        """Wait until the copy is sent, and until this device has received one."""
        self.wait_send()
        self.wait_recv()

    def wait_send(self) -> None:
        """Wait until the copy is sent."""
        super().wait()

    def wait_recv(self) -> None:
        """Wait until this device has received a copy that counts in the same semaphore."""
        if self.recv_sem is not None:
            waited(self.recv_sem)
            self.recv_sem.write(self.recv_sem.read() - np.int32(1))


def make_async_remote_copy(
    src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any, device_id_type: Any = None
) -> AsyncCopyDescriptor:
    """A copy to a reference of another device of the mesh, in a kernel under `shard_map`.

    All devices run a kernel in step. A copy that some of them start belongs under `pl.when`; other
    conditionals and loops must take the same way on all devices. What is waited for must have been
    sent further up in the kernel.

    Args:
        src_ref: a reference of this device, or a part of one.
        dst_ref: that of the other device, whose indices this device computes.
        send_sem, recv_sem: semaphores, of this device and of the other one.
        device_id: the other device: its indices along the axes of the mesh, a dict from axes to
            indices (the others being those of this device), or a number.
        device_id_type: what a number means: `pl.DeviceIdType.LOGICAL` counts all devices of the mesh.

    Returns:
        A copy with the methods `start`, `wait`, `wait_send` and `wait_recv`.

    Raises:
        TypeError: an argument is not a reference, or a `device_id` no integer.
        ValueError: the references differ in type; at the start, the `device_id` does not fit the mesh.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def rotate(x_ref, out_ref, send_sem, recv_sem):
        ...     right = (gradix.lax.axis_index("d") + 1) % gradix.lax.axis_size("d")
        ...     copy = pltpu.make_async_remote_copy(x_ref, out_ref, send_sem, recv_sem, device_id=(right,))
        ...     copy.start()
        ...     copy.wait()
        >>> call = pl.pallas_call(
        ...     rotate, gradix.ShapeDtypeStruct((2,), "int32"), scratch_shapes=[pltpu.SemaphoreType.DMA] * 2
        ... )
        >>> mesh, spec = gradix.sharding.Mesh(gradix.devices()[:1], ("d",)), gradix.P("d")
        >>> gradix.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(jnp.arange(2))
        Array([0, 1], dtype=int32)
    """
    return _RemoteCopyDescriptor(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)


def async_remote_copy(
    src_ref: Any, dst_ref: Any, send_sem: Any, recv_sem: Any, device_id: Any, device_id_type: Any = None
) -> AsyncCopyDescriptor:
    """As `make_async_remote_copy`, and start it.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def rotate(x_ref, out_ref, send_sem, recv_sem):
        ...     right = (gradix.lax.axis_index("d") + 1) % gradix.lax.axis_size("d")
        ...     pltpu.async_remote_copy(x_ref, out_ref, send_sem, recv_sem, device_id={"d": right}).wait()
        >>> call = pl.pallas_call(
        ...     rotate, gradix.ShapeDtypeStruct((2,), "int32"), scratch_shapes=[pltpu.SemaphoreType.DMA] * 2
        ... )
        >>> mesh, spec = gradix.sharding.Mesh(gradix.devices()[:1], ("d",)), gradix.P("d")
        >>> gradix.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(jnp.arange(2))
        Array([0, 1], dtype=int32)
    """
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy
