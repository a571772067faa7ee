"""Types of kernels for TPUs: memory spaces, semaphores, and parameters, which have no effect here."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from gradix.experimental.pallas._memory import SEMAPHORE
from gradix.experimental.pallas._specs import GridSpec, MemoryRef, Space, memory_of, no_block_spec


class MemorySpace(Space):
    """A kind of memory of a TPU; calling one gives a place in it, such as `VMEM((8, 128), jnp.float32)`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> place = pltpu.MemorySpace.VMEM((8, 128), jnp.float32)
        >>> place.shape, str(place.memory_space)
        ((8, 128), 'vmem')
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        if self is MemorySpace.SEMAPHORE:
            return memory_of(shape, np.int32, SEMAPHORE)
        return super().__call__(shape, dtype)


class SemaphoreType(enum.Enum):
    """A kind of semaphore; a kind is a scratch shape for one, and `DMA((2,))` is one for two.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.SemaphoreType.DMA((2,)).shape, pltpu.SemaphoreType.DMA.as_memory().shape
        ((2,), ())
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int] | int) -> MemoryRef:
        return memory_of((shape,) if isinstance(shape, int) else shape, np.int32, SEMAPHORE)

    def as_memory(self) -> MemoryRef:
        """The place of one semaphore."""
        return self(())


class GridDimensionSemantics(enum.Enum):
    """Whether programs along an axis of the grid may run at the same time; found out here.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.CompilerParams(dimension_semantics=("parallel", pltpu.ARBITRARY)).dimension_semantics
        ('parallel', <GridDimensionSemantics.ARBITRARY: 'arbitrary'>)
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY


class SideEffectType(enum.Enum):
    """Whether a call may be left out or moved.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.CompilerParams(has_side_effects=pltpu.SideEffectType.PURE).has_side_effects
        <SideEffectType.PURE: 'pure'>
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class CoreType(enum.Enum):
    """A kind of core of a TPU.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.CoreType("tc")
        <CoreType.TC: 'tc'>
    """

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


class DeviceIdType(enum.Enum):
    """How a device is named: by its place in a mesh, or by its number.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> list(pl.DeviceIdType)
        [<DeviceIdType.MESH: 'mesh'>, <DeviceIdType.LOGICAL: 'logical'>]
    """

    MESH = "mesh"
    LOGICAL = "logical"


class LoweringException(Exception):
    """An error of the lowering of a kernel to a TPU.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> raise pltpu.LoweringException("blocks of 3 rows do not fit the tiles of 8")
        Traceback (most recent call last):
            ...
        gradix.experimental.pallas._tpu_types.LoweringException: blocks of 3 rows do not fit the tiles of 8
    """


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of the compiler of kernels for TPUs. They are accepted, and have no effect here.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> params = pltpu.CompilerParams(vmem_limit_bytes=2**20)
        >>> params.replace(collective_id=1).vmem_limit_bytes
        1048576
    """

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def replace(self, /, **changes) -> CompilerParams:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)


class PrefetchScalarGridSpec(GridSpec):
    """A grid spec whose index maps read the first arguments, which are prefetched.

    Args:
        num_scalar_prefetch: how many arguments, from the first, index maps get as references after
            the indices of the program. The kernel gets references to them first, whole.
        grid, in_specs, out_specs, scratch_shapes: as for `GridSpec`; `in_specs` are those of the
            other arguments.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(order, x, o):
        ...     o[...] = x[...]
        >>> spec = pltpu.PrefetchScalarGridSpec(
        ...     num_scalar_prefetch=1, grid=(3,),
        ...     in_specs=[pl.BlockSpec((1,), lambda i, order: (order[i],))],
        ...     out_specs=pl.BlockSpec((1,), lambda i, order: (i,)),
        ... )
        >>> call = pl.pallas_call(kernel, gradix.ShapeDtypeStruct((3,), "float32"), grid_spec=spec)
        >>> call(jnp.array([2, 0, 1]), jnp.array([10.0, 20.0, 30.0]))
        Array([30., 10., 20.], dtype=float32)
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        if not isinstance(num_scalar_prefetch, int) or isinstance(num_scalar_prefetch, bool):
            raise TypeError(
                f"num_scalar_prefetch must be the number of arguments to prefetch, got {num_scalar_prefetch!r}. Pass "
                "the scalars as the first arguments of the call."
            )
        if num_scalar_prefetch < 0:
            raise ValueError(f"num_scalar_prefetch must not be negative, got {num_scalar_prefetch}.")
        self.num_scalar_prefetch = num_scalar_prefetch


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """How a TPU is simulated, for `interpret`; kernels are compiled in any case.

    With `out_of_bounds_reads="raise"`, the default, a block or an index out of bounds raises an
    IndexError that names the program of the kernel. `uninitialized_memory` says what memory holds
    before it is written: "nan" stands for the largest number of integers. What a TPU refuses raises a
    ValueError: reading and writing references in HBM or ANY, which can only be copied, memory in HBM
    for `run_scoped` unless `allow_hbm_allocation_in_run_scoped`, and a block of a result to which the
    grid returns. `detect_races` raises a ValueError where the kernel touches what a copy that has not
    been waited for writes, or writes what it reads, and where programs along an axis that
    `dimension_semantics` calls parallel write one block: if that is shown while the kernel is traced,
    by indices that are known or are one value.

    Programs along such axes, which must be the first ones and of known sizes, run in an order of their
    own with a `random_seed`, and are divided among `num_cores_or_threads`: each core begins with
    arguments and scratch memory as they were, and cores run one after another. `grid_point_recorder`
    is called with a token, the place in the grid and the core of each program before it runs. An
    argument that `input_output_aliases` gives to a result is that result's memory. With
    `buffer_bounds="padded"`, scratch memory in VMEM goes on to whole tiles: what is written beyond its
    shape is not kept, and reads find there what memory holds that is not written. With
    `skip_floating_point_ops`, arithmetic on floats in the kernel of a `pallas_call` gives infinity,
    and is not computed. The other fields are accepted.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def add(x_ref, out_ref):
        ...     out_ref[...] += x_ref[...]
        >>> zeros = pltpu.InterpretParams(uninitialized_memory="zero")
        >>> out = gradix.ShapeDtypeStruct((2,), "float32")
        >>> pl.pallas_call(add, out, interpret=zeros)(jnp.ones(2))
        Array([1., 1.], dtype=float32)
        >>> def early(x_ref, out_ref, room, sem):
        ...     pltpu.make_async_copy(x_ref, room, sem).start()
        ...     out_ref[...] = room[...]
        >>> races = pltpu.InterpretParams(detect_races=True)
        >>> room = [pltpu.VMEM((2,), "float32"), pltpu.SemaphoreType.DMA]
        >>> pl.pallas_call(early, out, scratch_shapes=room, interpret=races)(jnp.ones(2))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: race: the kernel reads ..., while the copy started at ... writes the same elements. Wait for ...
    """

    detect_races: bool = False
    out_of_bounds_reads: Literal["raise", "uninitialized"] = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: Literal["nan", "zero"] = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: Literal["eager", "on_wait"] = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[..., Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: Literal["logical", "padded"] = "logical"

    def __post_init__(self) -> None:
        for name, kinds in (
            ("out_of_bounds_reads", ("raise", "uninitialized")),
            ("uninitialized_memory", ("nan", "zero")),
            ("dma_execution_mode", ("eager", "on_wait")),
            ("buffer_bounds", ("logical", "padded")),
        ):
            if getattr(self, name) not in kinds:
                raise ValueError(f"InterpretParams: {name} must be one of {kinds}, got {getattr(self, name)!r}.")

    @property
    def num_cores_per_device(self) -> int:
        """The number of cores."""
        return self.num_cores_or_threads

    def get_vector_clock_size(self, num_devices: int) -> int:
        """The size of the clocks by which races are found."""
        return self.vector_clock_size or num_devices * self.num_cores_or_threads + 2


@contextlib.contextmanager
def force_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> Iterator[None]:
    """A context that is accepted: kernels for TPUs run anywhere. For checks, give `interpret=params`.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> with pltpu.force_tpu_interpret_mode():
        ...     pass
    """
    yield


def set_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> None:
    """It is accepted: kernels for TPUs run anywhere here.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.set_tpu_interpret_mode()
    """


def reset_tpu_interpret_mode_state() -> None:
    """It is accepted: runs of kernels keep no state here.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.reset_tpu_interpret_mode_state()
    """


def is_tpu_device() -> bool:
    """Whether the default device is a TPU.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.is_tpu_device()
        False
    """
    return False


class Tiling(enum.Enum):
    """How arrays are tiled in the memory of a TPU; it has no effect here.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> [tiling.value for tiling in pltpu.Tiling]
        ['compact', 'sparse_core']
    """

    COMPACT = "compact"
    SPARSE_CORE = "sparse_core"
