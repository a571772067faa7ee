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
from gradix.experimental.pallas._call import pallas_call as pallas_call
from gradix.experimental.pallas._programs import (
    align_to as align_to,
    broadcast_to as broadcast_to,
    cdiv as cdiv,
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

__dir__ = _listing(__name__)
