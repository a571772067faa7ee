"""The places at which a traced mask is true."""

from __future__ import annotations

from gradix import lax
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.trace import is_unknown, state
from gradix.numpy.bisection import count_by_halving
from gradix.numpy.promotion import convert, number

_counted = lazy_module("gradix._api.counted.places")
_order = lazy_module("gradix.lax.order")


def decides_sizes(x) -> bool:
    """Whether an array's values may decide a size: it is traced in a program, or mapped over."""
    return is_unknown(x) and (state.stage is not None or state.mapped is not None)


def count_of(mask) -> int:
    """How many elements of a mask are true, for a trace that lets Python ask for values.

    The trace depends on their number only, and not on their places.
    """
    count = lax.reduce_sum(convert(mask, index_dtype()), tuple(range(mask.aval.ndim)))
    return int(count)


# In rows of at least so many elements, few places are found faster by bisection than by a scatter.
_LONG = 1 << 14


def first_places(mask, size: int):
    """The places of the first `size` true elements of a row, and which of these there are."""
    n = mask.aval.size
    dtype = dtypes.places_dtype("nonzero", n)
    slots = lax.iota(dtype, size)
    if type(n) is int and n >= _LONG and 4 * size * n.bit_length() < n:
        count = lax.cumsum(convert(mask, dtype))
        last = lax.squeeze(lax.slice_in_dim(count, n - 1, n), (0,))
        there = lax.lt(slots, lax.broadcast_in_dim(last, (size,), ()))
        found = count_by_halving(count, slots, lax.le, dtype)
        return lax.select(there, found, lax.full((size,), number(0, dtype))), there
    places, total = _order.true_places(mask, size, dtype)
    return places, lax.lt(slots, lax.broadcast_in_dim(total, (size,), ()))


def unravelled(flat, shape: tuple) -> list:
    """The index along each axis of places that are counted in the array as one row."""
    out = []
    for n in shape[:0:-1]:
        n = number(n, flat.aval.dtype)
        out.append(lax.rem(flat, n))
        flat = lax.div(flat, n)
    return [flat, *out[::-1]] if shape else []


def decided_places(mask) -> list:
    """The indices at which a mask, as in `count_of`, is true: an array for each of its axes."""
    count, size = count_of(mask), mask.aval.size
    if not count:
        return [lax.full((0,), number(0, index_dtype()))] * mask.aval.ndim
    return unravelled(first_places(lax.reshape(mask, (size,)), count)[0], mask.aval.shape)


def counted_places(mask) -> list:
    """As `decided_places`, for a mask that is known when the program runs."""
    return unravelled(_counted.places(mask), mask.aval.shape)


def padded(x, axis: int):
    """An array with zeros behind its elements, up to the greatest size, if values decide the size of an axis."""
    return x if type(x.aval.shape[axis]) is int else _counted.whole(x, axis)


def index_dtype():
    """The default integer dtype, which that of indices is."""
    return dtypes.python_scalar_dtype(int)
