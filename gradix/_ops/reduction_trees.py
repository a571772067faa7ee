"""Reductions as trees: blocks of an axis are combined elementwise, by whole vectors and on all cores, and what is left is small.

XLA:CPU reduces integers along the last axis one after the other, and leaves the extrema of large float arrays to a library
that drops NaN. Elementwise it keeps NaN and has vectors for every type.
"""
from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, prod

from gradix._core.aval import make_aval
from gradix._ops.dimensions import i64_array
from gradix._ops.kernel_loops import apart

_LEAST = 1 << 12        # elements worth a tree
_BLOCKS = 14            # in one pass: with more than 15, XLA no longer computes what comes before in the same pass
_LANES = 16             # elements side by side that need no reduction within a vector
_REST = 16              # elements of a row that are left to an ordinary reduction


def emit_tree(em, out, x, axes, combine: str, finish: Callable, *, columns: bool):
    """`x` reduced over `axes`, or None where blocks would not pay.

    Args:
        combine: the name of an operation to which an element may be given twice: maximum, minimum, and, or.
        finish: `finish(x, axis, out)` reduces the little that is left over one axis.
        columns: also reduce over leading axes, which XLA has vectors for, if not for every operation.
    """
    shape = x.aval.shape
    if em.platform != "cpu" or not all(type(n) is int for n in shape) or prod(shape) < _LEAST:
        return None
    axes = sorted(axes)
    start = next((i for i in range(len(axes)) if axes[-1] - axes[i] == len(axes) - 1 - i), 0)
    if start:                                               # apart: the last ones, then the others
        inner = make_aval(_without(shape, axes[start:]), out.dtype)
        part = emit_tree(em, inner, x, axes[start:], combine, finish, columns=columns)
        return None if part is None else emit_tree(em, out, part, axes[:start], combine, finish, columns=columns)
    outer, count, inner = (prod(s) for s in (shape[:axes[0]], [shape[a] for a in axes], shape[axes[-1] + 1:]))
    target = 1 if inner >= _LANES else max(ceil(_REST / inner), count // (_BLOCKS * _LANES))
    if count < (2 if target == 1 else 4 * target) or inner >= _LANES and not columns:
        return None
    rows = (outer,) if outer > 1 else ()
    x = em.reshape(x, (*rows, count * inner))
    stages = max(1, ceil(log(count / target) / log(_BLOCKS) - 1e-9))
    blocks = ceil((count / target) ** (1 / stages) - 1e-9)
    for stage in range(stages):
        size = ceil(count / blocks) if stage < stages - 1 else target
        size = min(count, -(-size // 8) * 8) if inner == 1 else size
        x = _combined(em, x, count, size, inner, combine, own=stage > 0)
        count = size
    if count > 1:
        result = make_aval((*rows, inner) if inner > 1 else rows, out.dtype)
        x = em.reshape(x, (*rows, count, inner) if inner > 1 else (*rows, count))
        x = apart(em, "rest", result, lambda x: finish(x, len(rows), result), x)
    return em.reshape(x, out.shape)


def _without(shape, axes) -> tuple:
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def _combined(em, x, count: int, size: int, inner: int, combine: str, own: bool):
    """Rows of `count` times `inner` elements made rows of `size` times `inner`; the last block may overlap the one before.

    With `own`, XLA may not make one loop of it and what comes before, which would compute that once for each block.
    """
    axis, result = x.aval.ndim - 1, make_aval((*x.aval.shape[:-1], size * inner), x.aval.dtype)

    def write(x):
        parts = [_block(em, x, axis, min(first, count - size) * inner, size * inner) for first in range(0, count, size)]
        while len(parts) > 1:
            parts = [em.op(combine, result, *parts[i:i + 2]) if i + 1 < len(parts) else parts[i]
                     for i in range(0, len(parts), 2)]
        return parts[0]

    return apart(em, "blocks", result, write, x) if own else write(x)


def _block(em, x, axis: int, start: int, size: int):
    starts, limits = [0] * x.aval.ndim, list(x.aval.shape)
    starts[axis], limits[axis] = start, start + size
    out = make_aval((*x.aval.shape[:axis], size), x.aval.dtype)
    return em.op("slice", out, x, attrs=(f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
                                         f"strides = {i64_array([1] * len(starts))}"))
