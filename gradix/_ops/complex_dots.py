"""Large products of complex matrices, as four of their parts: XLA:CPU has a quick library for real ones alone."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from gradix._core.aval import make_aval
from gradix._core.dtypes import real_dtype
from gradix._ops.basis import free_axes

_LEAST = 128            # rows, columns and terms of one product
_WORK = 1 << 26         # products of elements in it; of fewer, the passes over the parts take what the library saves


def emit_complex_dots(em, out, x, y, contracted, batched, product: Callable):
    """`product(out, x, y)` of real operands, for complex ones of the result's dtype; None where it does not pay."""
    if em.platform != "cpu" or out.dtype.kind != "c" or not x.aval.dtype == y.aval.dtype == out.dtype:
        return None
    if not all(type(n) is int for n in (*x.aval.shape, *y.aval.shape)):
        return None
    (left, right), (x_batch, y_batch) = contracted, batched
    parts = (x, left), (x, free_axes(x.aval.ndim, left, x_batch)), (y, free_axes(y.aval.ndim, right, y_batch))
    sizes = [prod(v.aval.shape[i] for i in axes) for v, axes in parts]
    if min(sizes) < _LEAST or prod(sizes) < _WORK:
        return None
    part = make_aval(out.shape, real_dtype(out.dtype))
    (a, b), (c, d) = [[_part(em, name, v) for name in ("real", "imag")] for v in (x, y)]
    real = em.op("subtract", part, product(part, a, c), product(part, b, d))
    return em.op("complex", out, real, em.op("add", part, product(part, a, d), product(part, b, c)))


def _part(em, name: str, x):
    """A part of `x`; of a transpose, the transpose of that part."""
    source, permutation = x.turned or (x, range(x.aval.ndim))
    return em.transpose(em.op(name, make_aval(source.aval.shape, real_dtype(x.aval.dtype)), source), permutation)
