"""The program of a kernel that is being traced: its place in the grid, conditions and loops in it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.array import ArrayImpl
from gradix._core.trace import is_unknown, outside, state
from gradix.experimental.pallas._axes import named_axes
from gradix.experimental.pallas._memory import as_memory, first_value, new_kernel_ref, scratch_refs
from gradix.experimental.pallas._predicates import Exchange, branch, under
from gradix.experimental.pallas._remote import device_axes

T = TypeVar("T")


class Running:
    """A kernel that is traced: the indices of its program, the sizes of the grid, its shared memory.

    `level` is that of its trace; `shared` has references that all of its programs share, by a name.
    """

    __slots__ = ("ids", "sizes", "level", "shared")

    def __init__(self, ids, sizes):
        self.ids, self.sizes = tuple(ids), tuple(sizes)
        stage: Any = state.stage
        self.level: int = stage.level
        self.shared: dict[str, Any] = {}


class _Programs(threading.local):
    """The kernels that this thread traces, the innermost last."""

    def __init__(self):
        self.stack: list[Running] = []


_programs = _Programs()


@contextlib.contextmanager
def program(ids, sizes, names=None):
    """A context in which a kernel is traced for the program at `ids` of a grid of `sizes`.

    Args:
        names: the names of the axes of the grid, if they have some.
    """
    _programs.stack.append(Running(ids, sizes))
    try:
        with named_axes(names, ids, sizes) if names else contextlib.nullcontext():
            yield
    finally:
        _programs.stack.pop()


def outermost(what: str) -> Running:
    """The kernel that is traced, around all pipelines in it.

    Raises:
        ValueError: there is none.
    """
    if not _programs.stack:
        raise ValueError(f"{what} was called outside of a kernel. Call it in the function that pallas_call gets.")
    return _programs.stack[0]


def _axis(name: str, axis, which: str):
    outermost(f"pl.{name}({axis})")
    running = _programs.stack[-1]
    values, grid = getattr(running, which), running.sizes
    if is_unknown(axis) or not isinstance(axis, (int, np.integer)):
        raise ValueError(f"the axis of pl.{name} must be an int, got {axis!r}.")
    if not 0 <= axis < len(values):
        raise ValueError(
            f"Axis {axis} is out of bounds for grid {grid}. pl.{name} takes an axis of the grid of pallas_call."
        )
    return values[axis]


def program_id(axis: int) -> Any:
    """The index of the running program along an axis of the grid, an int32.

    Raises:
        ValueError: there is no such axis, or no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(o):
        ...     o[pl.program_id(0)] = 10 * pl.program_id(0)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((3,), "int32"), grid=3)()
        Array([ 0, 10, 20], dtype=int32)
    """
    return _axis("program_id", axis, "ids")


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis: an int, or an int32 where the size is traced.

    Raises:
        ValueError: there is no such axis, or no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(o):
        ...     o[pl.program_id(0)] = pl.num_programs(0)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((2,), "int32"), grid=2)()
        Array([2, 2], dtype=int32)
    """
    return _axis("num_programs", axis, "sizes")


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """A decorator that runs a function, which takes and returns nothing, if the condition holds.

    Args:
        condition: a boolean scalar, which may be traced.

    Raises:
        TypeError: the function returns something.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(o):
        ...     @pl.when(pl.program_id(0) == 0)
        ...     def _():
        ...         o[...] = 0
        ...     o[...] += pl.program_id(0)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((), "int32"), grid=5)()
        Array(10, dtype=int32)
    """

    def run(function: Callable[[], None]) -> None:
        def checked():
            out = function()
            if out is not None:
                raise TypeError(
                    f"the function under pl.when must return None, but returned {out!r}. Write its results "
                    "to references."
                )

        if isinstance(condition, (bool, np.bool_, int, np.ndarray, ArrayImpl)):
            if condition:
                checked()
        elif not device_axes():
            lax.cond(condition, checked, lambda: None)
        else:
            try:
                with branch():
                    lax.cond(condition, checked, lambda: None)
            except Exchange:
                with under(condition):
                    checked()

    return run


def loop(
    lower: Any, upper: Any, *, init_carry: T | None = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[..., T | None]], T | None]:
    """A decorator that runs a function for each number from `lower` up to, but not including, `upper`.

    Args:
        lower, upper: integers, which may be traced.
        init_carry: the first carry; with it, the function takes the number and the carry, and
            returns the next carry. Without it, the function takes the number, and returns nothing.
        step: the distance of the numbers.
        unroll: how many numbers one turn of the compiled loop takes; only with known bounds.

    Returns:
        A decorator, which gives the last carry.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x, o):
        ...     o[0] = 0.0
        ...     @pl.loop(0, 3)
        ...     def _(i):
        ...         o[0] += x[i]
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((1,), "float32"))(gradix.numpy.arange(3.0))
        Array([3.], dtype=float32)
    """
    has_carry = init_carry is not None
    turns = upper - lower if isinstance(step, int) and step == 1 else -((lower - upper) // step)

    def run(body):
        def turn(i, carry):
            number = lower + i * step
            if has_carry:
                return body(number, carry)
            body(number)
            return None

        return lax.fori_loop(0, turns, turn, init_carry, unroll=unroll)

    return run


def run_scoped(f: Callable[..., T], *types: Any, collective_axes: Any = (), **kw_types: Any) -> T:
    """Run a function with references to memory of its own.

    Args:
        f: a function of references, which returns arrays.
        *types, **kw_types: pytrees of places of memory, such as `pltpu.VMEM((8, 128), jnp.float32)`.
        collective_axes: accepted; it has no effect here.

    Returns:
        What the function returns.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x, o):
        ...     def doubled(scratch):
        ...         scratch[...] = x[...]
        ...         o[...] = scratch[...] * 2
        ...     pl.run_scoped(doubled, pl.ANY((2,), jnp.float32))
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((2,), "float32"))(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    refs, kw_refs = scratch_refs((types, kw_types))
    return f(*refs, **kw_refs)


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable:
    """`run_scoped` as a decorator, which runs the function at once.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def double(refs):
        ...     @pl.with_scoped(pl.ANY((2,), jnp.float32))
        ...     def _(scratch):
        ...         scratch[...] = refs[...] + refs[...]
        ...         refs[...] = scratch[...]
        >>> pl.run_state(double)(jnp.array([1.0, 3.0]))
        Array([2., 6.], dtype=float32)
    """

    def run(f):
        return run_scoped(f, *types, collective_axes=collective_axes, **kw_types)

    return run


def get_global(what: Any) -> Any:
    """A reference, in a kernel, to memory that all programs of the kernel share.

    Each call gives memory of its own, which holds at first what scratch memory does: NaN, or 0 for
    the count of a semaphore.

    Args:
        what: a place of memory, or a kind of semaphore.

    Raises:
        ValueError: no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(o):
        ...     count = pl.get_global(pltpu.SemaphoreType.REGULAR)
        ...     pl.semaphore_signal(count)
        ...     o[pl.program_id(0)] = pl.semaphore_read(count)
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((3,), "int32"), grid=3)()
        Array([1, 2, 3], dtype=int32)
    """
    running, memory = outermost("pl.get_global"), as_memory(what)
    with outside():
        return shared_ref(running, first_value(memory), memory.memory_space)


def shared_ref(running: Running, value, memory_space: Any = None) -> Any:
    """A reference that the kernel finds as one from outside, which all of its programs share."""
    ref = new_kernel_ref(value, memory_space)
    ref._level = running.level
    return ref


def debug_barrier() -> None:
    """Wait for the other threads of the program; there are none here.

    Example:
        >>> from gradix.experimental.pallas import triton
        >>> triton.debug_barrier()
    """


def cdiv(a: Any, b: Any) -> Any:
    """The quotient of integers, rounded up: the number of blocks of `b` that hold `a` elements.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.cdiv(10, 4)
        3
    """
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return (a + (b - 1)) // b


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of `alignment` that is not below `a`.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.align_to(13, 8), pl.align_to(16, 8)
        (16, 16)
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of 2 that is not below `x`.

    Raises:
        ValueError: `x` is negative.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.next_power_of_2(5), pl.next_power_of_2(8)
        (8, 8)
    """
    if x < 0:
        raise ValueError(f"next_power_of_2 requires a non-negative integer, got {x}.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements apart neighbours along each axis are, in row-major order.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.strides_from_shape((2, 3, 4))
        (12, 4, 1)
    """
    return tuple([int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))])


def multiple_of(x: Any, values: Any) -> Any:
    """`x`, with the promise that it is a multiple of `values`, which is not needed here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> pl.multiple_of(jnp.int32(16), 8)
        Array(16, dtype=int32)
    """
    return x


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Any:
    """The array broadcast to a shape.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> pl.broadcast_to(jnp.arange(2), (2, 2))
        Array([[0, 1],
               [0, 1]], dtype=int32)
    """
    return jnp.broadcast_to(a, shape)
