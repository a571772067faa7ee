"""How many elements at the start of a row come before each of some values, by halving."""

from __future__ import annotations

from collections.abc import Callable

from gradix import lax
from gradix.numpy.promotion import number

_FEW = 1 << 10  # values up to which all steps are one fused expression
_PLACES = lax.GatherDimensionNumbers(
    offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)
)


def count_by_halving(row, values, goes_before: Callable, dtype):
    """How many elements of a row that is not empty come before each value, in a dtype that holds the row's size.

    `goes_before(elements, values)` holds for the first elements of the row and not for those behind
    them. Bisected are the first or the last 2^k - 1 elements, with 2^k the largest power up to the
    size: no step leaves the row.
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
    # Fetches from memory overlap only where a step is done for all values before the next.
    first = number(most >> 1, dtype)
    return lax.fori_loop(
        0,
        steps,
        lambda i, at: refined(
            at, lax.shift_right_logical(first, lax.convert_element_type(i, dtype))
        ),
        at,
    )
