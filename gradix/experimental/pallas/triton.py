"""Names for kernels written for Triton, which run on any platform here, by XLA's own code."""

import dataclasses as _dataclasses
from typing import Any as _Any

from gradix import numpy as _jnp
from gradix._base.listing import listing as _listing
from gradix.experimental.pallas._accesses import (
    atomic_add as atomic_add,
    atomic_and as atomic_and,
    atomic_cas as atomic_cas,
    atomic_max as atomic_max,
    atomic_min as atomic_min,
    atomic_or as atomic_or,
    atomic_xchg as atomic_xchg,
    atomic_xor as atomic_xor,
    load as _load,
    store as _store,
)
from gradix.experimental.pallas._programs import debug_barrier as debug_barrier
from gradix.experimental.pallas._tools import dot as dot


@_dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of Triton's compiler. They are accepted, and have no effect here.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import triton
        >>> def double(x, o):
        ...     o[...] = x[...] * 2
        >>> shape = gradix.ShapeDtypeStruct((2,), "int32")
        >>> pl.pallas_call(double, shape, compiler_params=triton.CompilerParams(num_warps=4))(jnp.array([3, 5]))
        Array([ 6, 10], dtype=int32)
    """

    num_warps: int | None = None
    num_stages: int | None = None


def load(
    ref: _Any,
    *,
    mask: _Any = None,
    other: _Any = None,
    cache_modifier: _Any = None,
    eviction_policy: _Any = None,
    volatile: _Any = False,
) -> _Any:
    """The elements of a reference, or of a part of one; where the mask is false, `other` or 0.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import triton
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[:] = triton.load(x_ref, mask=jnp.array([True, False]), other=7)
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([3, 7], dtype=int32)
    """
    return _load(ref, mask=mask, other=other)


def store(ref: _Any, val: _Any, *, mask: _Any = None, eviction_policy: _Any = None) -> None:
    """Write the elements of a reference, or of a part of one, where the mask is true.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import triton
        >>> def kernel(x_ref, out_ref):
        ...     out_ref[:] = x_ref[:]
        ...     triton.store(out_ref, x_ref[:] + 10, mask=jnp.array([True, False]))
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([13,  5], dtype=int32)
    """
    _store(ref, None, val, mask=mask)


def approx_tanh(x: _Any) -> _Any:
    """The hyperbolic tangent; an approximation is allowed, but not needed here.

    Example:
        >>> from gradix.experimental.pallas import triton
        >>> triton.approx_tanh(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return _jnp.tanh(x)


def max_contiguous(x: _Any, values: _Any) -> _Any:
    """`x`, with the promise that its elements are neighbours, which is not needed here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import triton
        >>> triton.max_contiguous(jnp.arange(3), 3)
        Array([0, 1, 2], dtype=int32)
    """
    return x


def elementwise_inline_asm(asm: _Any, *, args: _Any, constraints: _Any, pack: _Any, result_shape_dtypes: _Any) -> _Any:
    """Assembly of a GPU, which XLA cannot compile.

    Raises:
        NotImplementedError: always.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import triton
        >>> x = jnp.ones(4)
        >>> asm = "ex2.approx.f32 $0, $1;"
        >>> triton.elementwise_inline_asm(asm, args=[x], constraints="=f,f", pack=1, result_shape_dtypes=x)
        Traceback (most recent call last):
            ...
        NotImplementedError: elementwise_inline_asm is assembly of a GPU, ...
    """
    raise NotImplementedError(
        "elementwise_inline_asm is assembly of a GPU, which cannot run here. Write the function with gradix.numpy."
    )


__dir__ = _listing(__name__)
