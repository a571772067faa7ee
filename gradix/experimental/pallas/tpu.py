"""Names for kernels written for TPUs, which run on any platform here.

Memory spaces, semaphores and copies are simulated: a copy is made when it is started, and one to
another device of the mesh by a collective. What stands for instructions of a TPU is refused.
"""

from typing import Any as _Any

from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._accesses import load as _load, store as _store
from gradix.experimental.pallas._copies import (
    AsyncCopyDescriptor as AsyncCopyDescriptor,
    async_copy as async_copy,
    async_remote_copy as async_remote_copy,
    make_async_copy as make_async_copy,
    make_async_remote_copy as make_async_remote_copy,
    sync_copy as sync_copy,
)
from gradix.experimental.pallas._cores import (
    TensorCoreMesh as TensorCoreMesh,
    core_barrier as core_barrier,
    create_tensorcore_mesh as create_tensorcore_mesh,
    run_on_first_core as run_on_first_core,
)
from gradix.experimental.pallas._einshape import einshape as einshape
from gradix.experimental.pallas._pipelines import (
    emit_pipeline as emit_pipeline,
    emit_pipeline_with_allocations as emit_pipeline_with_allocations,
)
from gradix.experimental.pallas._refused import refused as _refused
from gradix.experimental.pallas._semaphores import (
    get_barrier_semaphore as get_barrier_semaphore,
    semaphore_read as semaphore_read,
    semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
)
from gradix.experimental.pallas._specs import HOST as HOST
from gradix.experimental.pallas._tpu_arithmetic import (
    bitcast as bitcast,
    pack_elementwise as pack_elementwise,
    roll as roll,
    sample_block as sample_block,
    stochastic_round as stochastic_round,
    to_pallas_key as to_pallas_key,
    touch as touch,
    trace_value as trace_value,
    unpack_elementwise as unpack_elementwise,
    with_memory_space_constraint as with_memory_space_constraint,
)
from gradix.experimental.pallas._tpu_chips import (
    ChipVersion as ChipVersion,
    TpuInfo as TpuInfo,
    get_tpu_info as get_tpu_info,
    get_tpu_info_for_chip as get_tpu_info_for_chip,
)
from gradix.experimental.pallas._tpu_random import (
    prng_random_bits as prng_random_bits,
    prng_seed as prng_seed,
    stateful_bernoulli as stateful_bernoulli,
    stateful_bits as stateful_bits,
    stateful_normal as stateful_normal,
    stateful_uniform as stateful_uniform,
)
from gradix.experimental.pallas._tpu_types import (
    ARBITRARY as ARBITRARY,
    CORE_PARALLEL as CORE_PARALLEL,
    PARALLEL as PARALLEL,
    SUBCORE_PARALLEL as SUBCORE_PARALLEL,
    CompilerParams as CompilerParams,
    CoreType as CoreType,
    DeviceIdType as DeviceIdType,
    GridDimensionSemantics as GridDimensionSemantics,
    InterpretParams as InterpretParams,
    LoweringException as LoweringException,
    MemorySpace as MemorySpace,
    PrefetchScalarGridSpec as PrefetchScalarGridSpec,
    SemaphoreType as SemaphoreType,
    SideEffectType as SideEffectType,
    Tiling as Tiling,
    force_tpu_interpret_mode as force_tpu_interpret_mode,
    is_tpu_device as is_tpu_device,
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
    set_tpu_interpret_mode as set_tpu_interpret_mode,
)

VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM


def load(ref: _Any, *, mask: _Any = None) -> _Any:
    """The elements of a reference, or of a part of one; where the mask is false, zeros.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[:] = pltpu.load(x_ref, mask=jnp.array([True, False]))
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([3, 0], dtype=int32)
    """
    return _load(ref, mask=mask)


def store(ref: _Any, val: _Any, *, mask: _Any = None) -> None:
    """Write the elements of a reference, or of a part of one, where the mask is true.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[:] = x_ref[:]
        ...     pltpu.store(out_ref, x_ref[:] + 10, mask=jnp.array([True, False]))
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([13,  5], dtype=int32)
    """
    _store(ref, None, val, mask=mask)


globals().update(
    _refused(
        "pallas.tpu",
        "BufferType BufferedRef BufferedRefBase dma_semaphore matmul_acc_lhs matmul_pop matmul_push_rhs semaphore",
        "it names hardware of a TPU. Write the kernel with references, BlockSpecs, jax.random with a key as argument, "
        "and emit_pipeline, which run anywhere.",
    )
)

__dir__ = _listing(__name__)
