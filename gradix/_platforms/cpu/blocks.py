"""Reductions by blocks: an axis is cut into blocks, which are combined elementwise.

XLA:CPU reduces integers along the last axis one by one, and calls a library that drops NaN for the
extrema of large float arrays. Its elementwise operations use vectors for all types and keep NaN.
What is left after combining the blocks is short.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._platforms.cpu.kernel_loops import apart
from gradix._stablehlo.attributes import i64_array

# XLA does not vectorize reductions of these along the last axis.
WORDS = frozenset(np.dtype(t) for t in ("int16", "uint16", "int32", "uint32", "int64", "uint64"))
_INT = np.dtype("int32")
_LEAST = 1 << 12  # blocks pay from so many elements on
# The same for sums and products, as XLA compiles its own reductions of them quickly.
_LEAST_ONCE = 1 << 16
# The blocks of one pass. With more than 15, XLA no longer fuses what comes before into the pass.
_BLOCKS = 14
_LANES = 16  # elements side by side that need no reduction within a vector
_REST = 16  # elements of a row that are left to an ordinary reduction


def emit_blocks(
    em, out, x, axes, combine: str, finish: Callable, *, columns: bool, neutral: int | None = None, within: bool = False
):
    """`x` reduced over `axes`, or None where blocks would not pay.

    Args:
        combine: the name of the operation.
        finish: `finish(x, axis, out)` reduces the short rest over one axis.
        columns: whether to use blocks over leading axes too, which XLA vectorizes for some
            operations.
        neutral: the neutral element; None for maximum, minimum, and, or, which may take an element
            twice.
        within: whether `x` is already reduced over other axes.
    """
    shape = x.aval.shape
    if not all(type(n) is int for n in shape):
        return None
    if prod(shape) < (_LEAST if neutral is None or within else _LEAST_ONCE):
        return None
    axes = sorted(axes)
    start = next((i for i in range(len(axes)) if axes[-1] - axes[i] == len(axes) - 1 - i), 0)
    if start:  # neighbouring last axes first, then the others
        inner = make_aval(_without(shape, axes[start:]), out.dtype)
        part = emit_blocks(em, inner, x, axes[start:], combine, finish, columns=columns, neutral=neutral)
        return (
            None
            if part is None
            else emit_blocks(
                em, out, part, axes[:start], combine, finish, columns=columns, neutral=neutral, within=True
            )
        )
    outer, count, inner = (prod(s) for s in (shape[: axes[0]], [shape[a] for a in axes], shape[axes[-1] + 1 :]))
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
        x = _combined(em, x, count, size, inner, combine, neutral=neutral, own=stage > 0)
        count = size
    if count > 1:
        result = make_aval((*rows, inner) if inner > 1 else rows, out.dtype)
        x = em.reshape(x, (*rows, count, inner) if inner > 1 else (*rows, count))
        x = apart(em, "rest", result, lambda x: finish(x, len(rows), result), x)
    return em.reshape(x, out.shape)


def _without(shape, axes) -> tuple:
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def _combined(em, x, count: int, size: int, inner: int, combine: str, *, neutral: int | None, own: bool):
    """Reduce rows of `count` times `inner` elements to rows of `size` times `inner`, by blocks.

    The last block may overlap the one before. If elements must not be taken twice, the shared ones
    are set to the neutral element.

    With `own`, XLA must not fuse it with what comes before, which it would compute again for each
    block.
    """
    axis, result = x.aval.ndim - 1, make_aval((*x.aval.shape[:-1], size * inner), x.aval.dtype)

    def write(x):
        parts = [_block(em, x, axis, min(first, count - size) * inner, size * inner) for first in range(0, count, size)]
        shared = len(parts) * size - count
        if shared and neutral is not None:
            place = em.iota(make_aval(result.shape, _INT), axis)
            again = em.compare(place, em.constant(shared * inner, place.aval), "LT")
            parts[-1] = em.select(again, em.constant(neutral, result), parts[-1])
        while len(parts) > 1:
            parts = [
                em.op(combine, result, *parts[i : i + 2]) if i + 1 < len(parts) else parts[i]
                for i in range(0, len(parts), 2)
            ]
        return parts[0]

    return apart(em, "blocks", result, write, x) if own else write(x)


def _block(em, x, axis: int, start: int, size: int):
    starts, limits = [0] * x.aval.ndim, list(x.aval.shape)
    starts[axis], limits[axis] = start, start + size
    out = make_aval((*x.aval.shape[:axis], size), x.aval.dtype)
    return em.op(
        "slice",
        out,
        x,
        attrs=(
            f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
            f"strides = {i64_array([1] * len(starts))}"
        ),
    )
