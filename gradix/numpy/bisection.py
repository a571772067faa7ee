"""Bisection: how many elements at the start of a sorted row come before each of many values."""

from __future__ import annotations

from collections.abc import Callable

from gradix import lax
from gradix.numpy.promotion import number

_FEW = 1 << 10  # Up to this many values, all steps are one fused expression.
_PLACES = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))


def count_by_halving(row, values, goes_before: Callable, dtype):
    """How many elements of a non-empty row come before each of the values.

    Either the first or the last 2^k - 1 elements are bisected, where 2^k is the largest power of
    two up to the size of the row. So no step leaves the row.

    Args:
        row: a vector, sorted with respect to `goes_before`.
        values: an array of any shape.
        goes_before: a function of elements and values of one shape; it is true for the first
            elements of the row, and false for those behind them.
        dtype: the integer dtype of the result; it holds the size of the row.
    """
    n, shape = row.aval.shape[0], values.aval.shape
    steps = n.bit_length() - 1
    most = 1 << steps
    one = number(1, dtype)

    def refined(at, bit):
        last = lax.expand_dims(lax.add(at, lax.sub(bit, one)), (len(shape),))
        pivot = lax.gather(row, last, _PLACES, (1,), mode="promise_in_bounds")
        return lax.select(goes_before(pivot, values), lax.add(at, bit), at)

    middle = lax.squeeze(lax.slice_in_dim(row, most - 1, most), (0,))
    start, zero = [lax.full(shape, number(k, dtype)) for k in (n - most + 1, 0)]
    at = lax.select(goes_before(lax.broadcast_in_dim(middle, shape, ()), values), start, zero)
    if values.aval.size <= _FEW:
        for bit in reversed(range(steps)):
            at = refined(at, number(1 << bit, dtype))
        return at
    # Reads from memory overlap only if each step is done for all values before the next step.
    first = number(most >> 1, dtype)
    return lax.fori_loop(
        0, steps, lambda i, at: refined(at, lax.shift_right_logical(first, lax.convert_element_type(i, dtype))), at
    )
