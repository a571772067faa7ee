"""Memory that a kernel asks for: scratch, and the references to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._base.tree import tree_flatten
from gradix._core.array import as_array
from gradix._core.aval import ShapedArray
from gradix._core.refs import AbstractRef, Ref
from gradix.experimental.pallas._contents import undefined
from gradix.experimental.pallas._refs import KernelRef, PaddedRef
from gradix.experimental.pallas._simulation import check_scoped, is_padded
from gradix.experimental.pallas._specs import MemoryRef, memory_of


class Counter:
    """The memory space of semaphores, which hold a count that begins with 0."""

    def __repr__(self) -> str:
        return "SEMAPHORE"


SEMAPHORE = Counter()


def check_semaphore(what: str, sem: Any) -> None:
    """Raise if something is no reference to a semaphore.

    Raises:
        TypeError: it is a value, or a reference to other memory.
    """
    if not isinstance(sem, Ref):
        raise TypeError(f"{what} takes a reference to a semaphore, got {sem!r} of type {type(sem).__name__}.")
    if sem.aval.memory_space is not SEMAPHORE:
        raise TypeError(
            f"{what} takes a reference to a semaphore, got {sem._name()}. Ask for one by "
            "scratch_shapes=[pltpu.SemaphoreType.DMA], or REGULAR for signals."
        )


def as_memory(x: Any) -> MemoryRef:
    """A scratch shape as a place of memory.

    Raises:
        TypeError: it is not one.
    """
    if isinstance(x, MemoryRef):
        return x
    if hasattr(x, "as_memory"):
        return x.as_memory()
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return memory_of(x.shape, x.dtype, getattr(x, "memory_space", None))
    raise TypeError(
        f"a scratch shape must be a place of memory, such as pl.ANY((8, 128), jnp.float32) or "
        f"pltpu.VMEM((8, 128), jnp.float32), got {x!r} of type {type(x).__name__}."
    )


def is_scratch(x) -> bool:
    """Whether a node of a tree of scratch shapes is one of them."""
    return isinstance(x, MemoryRef) or hasattr(x, "as_memory") or hasattr(x, "dtype")


def first_value(memory: MemoryRef):
    """What a place of memory holds before it is written."""
    if memory.memory_space is SEMAPHORE:
        return jnp.zeros(memory.shape, np.int32)
    return undefined(memory.shape, memory.dtype)


def new_kernel_ref(value, memory_space: Any = None) -> KernelRef:
    """A reference to an array."""
    x = as_array(value)
    aval = ShapedArray(x.aval.shape, x.aval.dtype)
    return KernelRef(AbstractRef(aval, memory_space), x.astype(aval.dtype) if x.aval.weak_type else x)


def memory_ref(value, memory_space: Any) -> KernelRef:
    """A reference to memory that a kernel asked for."""
    ref = new_kernel_ref(value, memory_space)
    return PaddedRef(ref.aval, ref.read()) if ref.ndim and is_padded(memory_space) else ref


def scratch_refs(tree: Any) -> Any:
    """The tree of scratch shapes with references to new memory in their place."""
    leaves, treedef = tree_flatten(tree, is_scratch)
    memories = [as_memory(x) for x in leaves]
    check_scoped(memories)
    return treedef.unflatten([memory_ref(first_value(m), m.memory_space) for m in memories])
