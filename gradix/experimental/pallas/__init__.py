"""Kernels on references to blocks of arrays, run for each program of a grid.

They are compiled like other functions, can be differentiated and mapped, and run on any platform.

Example:
    >>> import gradix, gradix.numpy as jnp
    >>> from gradix.experimental import pallas as pl
    >>> def double(x, o):
    ...     o[...] = 2 * x[...]
    >>> pl.pallas_call(double, out_shape=gradix.ShapeDtypeStruct((3,), "float32"))(jnp.ones(3))
    Array([2., 2., 2.], dtype=float32)
"""

from gradix._base.listing import listing as _listing
from gradix._control.kernel_call import pallas_call_p as pallas_call_p
from gradix.experimental.pallas._accesses import (
    atomic_add as atomic_add,
    atomic_and as atomic_and,
    atomic_cas as atomic_cas,
    atomic_max as atomic_max,
    atomic_min as atomic_min,
    atomic_or as atomic_or,
    atomic_xchg as atomic_xchg,
    atomic_xor as atomic_xor,
    load as load,
    store as store,
    swap as swap,
)
from gradix.experimental.pallas._call import pallas_call as pallas_call
from gradix.experimental.pallas._cores import core_map as core_map, kernel as kernel
from gradix.experimental.pallas._costs import CostEstimate as CostEstimate, estimate_cost as estimate_cost
from gradix.experimental.pallas._programs import (
    align_to as align_to,
    broadcast_to as broadcast_to,
    cdiv as cdiv,
    get_global as get_global,
    loop as loop,
    multiple_of as multiple_of,
    next_power_of_2 as next_power_of_2,
    num_programs as num_programs,
    program_id as program_id,
    run_scoped as run_scoped,
    strides_from_shape as strides_from_shape,
    when as when,
    with_scoped as with_scoped,
)
from gradix.experimental.pallas._refused import refused as _refused
from gradix.experimental.pallas._semaphores import (
    semaphore_read as semaphore_read,
    semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
)
from gradix.experimental.pallas._specs import (
    ANY as ANY,
    HOST as HOST,
    BlockDim as BlockDim,
    Blocked as Blocked,
    BlockSpec as BlockSpec,
    BoundedSlice as BoundedSlice,
    Buffered as Buffered,
    Element as Element,
    GridSpec as GridSpec,
    Indirect as Indirect,
    MemoryRef as MemoryRef,
    MemorySpace as MemorySpace,
    RevisitMode as RevisitMode,
    Slice as Slice,
    Squeezed as Squeezed,
    ds as ds,
    dslice as dslice,
    no_block_spec as no_block_spec,
    squeezed as squeezed,
)
from gradix.experimental.pallas._tools import (
    debug_check as debug_check,
    debug_checks_enabled as debug_checks_enabled,
    debug_print as debug_print,
    delay as delay,
    dot as dot,
    empty as empty,
    empty_like as empty_like,
    empty_ref_like as empty_ref_like,
    enable_debug_checks as enable_debug_checks,
    enable_poison_buffers as enable_poison_buffers,
    lower_as_mlir as lower_as_mlir,
    pallas_export_experimental as pallas_export_experimental,
    reciprocal as reciprocal,
    run_state as run_state,
    select_ref as select_ref,
)
from gradix.experimental.pallas._tpu_types import DeviceIdType as DeviceIdType

globals().update(
    _refused(
        "pallas",
        "CompilerParams semaphore",
        "it is a base for the parameters and types of accelerators. Use those of pallas.tpu, such as "
        "pltpu.CompilerParams and pltpu.SemaphoreType.REGULAR.",
    )
)

__dir__ = _listing(__name__)
