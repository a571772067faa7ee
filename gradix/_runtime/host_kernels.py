"""What compiled programs leave to NumPy, whose sorts, partitions and correlations use the processor's vectors.

Each function takes the operands of a call and then its results, matrices on the program's own
memory; operands are only read. Equal are, as XLA has it, all zeros, what it flushes to zero, and
all NaNs, which are the largest. NumPy lets other threads run meanwhile, so large matrices are
shared among some.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import NamedTuple

import numpy as np

from gradix._runtime.cores import cores

_SHARED = 1 << 15  # elements from which on rows are given to several threads
# elements of rows taken together, whose copies stay in the cache of a processor
_BLOCK = 1 << 17
_PRODUCTS = 1 << 18  # of two numbers, worth a thread
# elements of a row from which on it is quicker to bisect it than to compare all
_LONG = 1 << 12


def sort(x, out) -> None:
    """Each row in order; equal numbers in the order they came, each with its own bits."""
    _by_rows(_sort, out, x)


def sort_numbers(_, out) -> None:
    """Sort each row of `out` in place, without the care that zeros and NaNs need."""
    _by_rows(_put_in_order, out, out)


def order(*keys_and_out) -> None:
    """The places that put each row in order, by the first key, and where that is equal by the next."""
    *keys, out = keys_and_out
    _by_rows(_order, out, *keys)


def largest(x, values, places) -> None:
    """The largest of each row in IEEE's total order and their places, the largest first, of equal ones the first."""
    _by_rows(_largest, places, x, values, block=4 * _BLOCK)


def at_ranks(x, ranks, out) -> None:
    """What sorting row i would put at its places `ranks[i]`."""
    if len(x) > 1 and not (ranks == ranks[0]).all():
        return _by_rows(_at_own_ranks, out, x, ranks)
    _by_rows(functools.partial(_at_ranks, ranks[0]), out, x)


def correlate(x, w, out) -> None:
    """Sums of products of each row and the one row of `w`, at all places where that meets elements only."""
    (kernel,), (rows, count) = w, out.shape
    threads = max(1, min(cores(), out.size * len(kernel) // _PRODUCTS))
    pieces = -(-threads // rows)
    ends = [count * i // pieces for i in range(pieces + 1)]
    parts = [
        (x[i, first : last + len(kernel) - 1], out[i, first:last])
        for i in range(rows)
        for first, last in zip(ends, ends[1:])
        if first < last
    ]
    _share(functools.partial(_correlate, kernel), [(parts[i::threads],) for i in range(threads)])


KERNELS = {
    "sort": sort,
    "sort_numbers": sort_numbers,
    "order": order,
    "largest": largest,
    "at_ranks": at_ranks,
    "correlate": correlate,
}


# -- numbers as integers ---------------------------------------------------------------------------


class _Format(NamedTuple):
    """A float format in integers: of its bits, those beside the sign, infinity, NaN, and the least that is no zero.

    `marks`: in a row in order zeros lie between the first two of these, NaNs from the last on.
    """

    dtype: np.dtype
    magnitude: int
    infinity: int
    nan: int
    least: int
    marks: np.ndarray


@functools.lru_cache(None)
def _format(dtype) -> _Format | None:
    """Of integers and bool none."""
    if dtype.kind in "biu":
        return None
    signed = np.dtype(f"int{8 * dtype.itemsize}")
    magnitude = int(np.iinfo(signed).max)
    infinity, nan = [int(np.array(v, dtype).view(signed)) for v in (np.inf, np.nan)]
    # XLA compares float16 as float32
    least = 1 if dtype == np.float16 else infinity & -infinity
    marks = np.array([least - magnitude - 1, least, nan & magnitude], signed).view(dtype)
    return _Format(signed, magnitude, infinity, nan & magnitude, least, marks)


def _flipped(bits) -> np.ndarray:
    """Sign and magnitude to two's complement, and back."""
    out = bits >> (8 * bits.itemsize - 1)
    out &= np.iinfo(bits.dtype).max
    out ^= bits
    return out


def _keys(x, zeros: bool = True, nans: bool = True) -> np.ndarray:
    """Integers in the order of the numbers: one for all zeros and for all NaNs, or as IEEE's total order has them."""
    form = _format(x.dtype)
    if form is None:
        return x.view(np.uint8) if x.dtype.kind == "b" else x
    bits = x.view(form.dtype)
    keys = _flipped(bits)
    if not zeros and not nans:
        return keys
    magnitude = bits & form.magnitude
    if zeros:
        keys[magnitude < form.least] = 0
    if nans:
        keys[magnitude > form.infinity] = form.nan
    return keys


def _with_places(keys) -> tuple[np.ndarray, int]:
    """Numbers that order rows as the keys do and after them by place; and how many of their last bits are the place.

    Those of 33 to 61 bits are positive float64, neither denormal nor NaN: AVX2 compares floats of
    that width, but no integers.
    """
    n, bits = keys.shape[1], 8 * keys.itemsize
    places = max(1, (n - 1).bit_length())
    dtype = np.dtype("i8" if bits + places > 32 else f"{keys.dtype.kind}4")
    packed = np.left_shift(keys, places, dtype=dtype)
    if not 32 < bits + places < 62:
        packed += np.arange(n, dtype=dtype)
        return packed, places
    offset = (1 << 62) + (1 << bits - 1 + places if keys.dtype.kind == "i" else 0)
    packed += np.arange(offset, offset + n, dtype=dtype)
    return packed.view(np.float64), places


def _places_of(numbers, bits: int) -> np.ndarray:
    """What `_with_places` put below the keys, in their memory."""
    places = numbers.view(f"i{numbers.itemsize}")
    places &= (1 << bits) - 1
    return places


def _halves(key) -> list:
    """Keys short enough to stand beside a place, the leading one first."""
    if key.itemsize < 8:
        return [key]
    return [(key >> 32).astype(f"{key.dtype.kind}4"), key.astype(np.uint32)]


# -- rows ------------------------------------------------------------------------------------------


def _put_in_order(rows, _=None, threads: int = 1) -> None:
    """Sort in place: a long row by several threads, each what lies between two of its ranks."""
    if rows.itemsize <= 2:
        return rows.sort(-1, "stable")  # by counting
    if len(rows) > 1 or threads < 2:
        return rows.sort(-1)
    pieces = [rows[0]]
    while 2 * len(pieces) <= threads:
        for piece in pieces:
            piece.partition(len(piece) // 2)
        pieces = [half for p in pieces for half in (p[: len(p) // 2], p[len(p) // 2 :])]
    _share(np.ndarray.sort, [(p,) for p in pieces])


def _sort(out, x, threads: int = 1) -> None:
    form = _format(x.dtype)
    if form is None:
        out[...] = x
        return _put_in_order(out, threads)
    if x.itemsize > 2:
        out[...] = x
        _put_in_order(out, threads)
        if len(out) == 1 or out.shape[1] >= _LONG:
            for own, row in zip(x, out):
                _keep_equal_ones_of_row(form, own, row)
            return
    bits, found = x.view(form.dtype), out.view(form.dtype)
    if x.itemsize <= 2:
        found[...] = _keys(x)
        _put_in_order(found, threads)
        found[...] = _flipped(found)
    _keep_equal_ones(form, bits, found)


def _keep_equal_ones(form: _Format, bits, found) -> None:
    """Put zeros and NaNs in the order they came: a row has as many of either as before, and row follows row."""
    magnitude = found & form.magnitude
    zeros = magnitude < form.least
    if zeros.any():
        own = bits[(bits & form.magnitude) < form.least]
        if own.any():
            found[zeros] = own
    if magnitude[:, -1].max() > form.infinity:
        found[magnitude > form.infinity] = bits[(bits & form.magnitude) > form.infinity]


def _keep_equal_ones_of_row(form: _Format, x, out) -> None:
    """The same for a row, by bisection."""
    first, last, end = out.searchsorted(form.marks)
    if last - first < 2 and end == len(out):
        return
    bits, found = x.view(form.dtype), out.view(form.dtype)
    zeros = found[first:last]
    if zeros.any():
        zeros[(zeros & form.magnitude) < form.least] = bits[(bits & form.magnitude) < form.least]
    if end < len(out):
        found[end:] = bits[(bits & form.magnitude) > form.infinity]


def _order(out, *keys, threads: int = 1) -> None:
    places = None
    for key in reversed(
        [half for k in keys for part in _parts(k) for half in _halves(_keys(part))]
    ):
        numbers, bits = _with_places(key if places is None else _taken(key, places))
        _put_in_order(numbers, threads)
        order = _places_of(numbers, bits)
        places = order if places is None else _taken(places, order)
    out[...] = places


def _taken(rows, places) -> np.ndarray:
    """`rows[i, places[i, j]]`."""
    starts = np.arange(0, rows.size, rows.shape[1])[:, None]
    return rows.reshape(-1).take(places.astype(np.intp) + starts)


def _parts(x) -> list:
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


def _largest(places, x, values, threads: int = 1) -> None:
    _largest_places(places, x, threads)
    values[...] = _taken(x, places)


def _largest_places(out, x, threads: int) -> None:
    """In order what no lower bound excludes; where that is too much, what partition finds."""
    (rows, n), k = x.shape, out.shape[1]
    found = _not_below_bound(x, k)
    if found is None or 4 * len(found) > x.size:
        return _largest_by_partition(out, x, threads)
    row, place = np.divmod(found, n)
    keys = ~_keys(x.reshape(-1).take(found), False, False)
    if keys.itemsize < 8:
        bits = (n - 1).bit_length()
        packed = row << 8 * keys.itemsize
        packed += keys
        packed -= np.iinfo(keys.dtype).min
        packed <<= bits
        packed |= place
        packed.sort()
        packed &= (1 << bits) - 1
    else:
        order = np.empty((1, len(found)), np.int32)
        _order(order, row[None].astype(np.int32), keys[None])
        packed = place.take(order[0])
    out[...] = packed.take(row.searchsorted(np.arange(rows))[:, None] + np.arange(k))


def _not_below_bound(x, k: int) -> np.ndarray | None:
    """Places in the matrix, among them the k largest of each row: what is no less than k maxima of its parts."""
    n = x.shape[1]
    parts = min(n // max(128, 4 * k), 64)
    if parts < 2:
        return None
    # which NumPy compares slowly
    if x.dtype.kind not in "biuf" or x.dtype == np.float16:
        x = _keys(x, False, False)
    size = n // parts
    is_float = x.dtype.kind == "f"
    maxima = (np.fmax if is_float else np.maximum).reduce(
        x[:, : parts * size].reshape(len(x), parts, size), 1
    )
    # of either sign, so no bound
    if is_float and (nans := np.isnan(maxima)).any():
        maxima[nans] = -np.inf
    # which NumPy parts by vectors
    quick = maxima.astype(np.int32) if x.itemsize < 4 else maxima
    quick.partition(size - k, -1)
    below = x < quick[:, size - k, None].astype(x.dtype)
    return np.flatnonzero(np.logical_not(below, out=below))  # NaN is among them


def _largest_by_partition(out, x, threads: int) -> None:
    """By the k-th of each row and what is no smaller; where too much equals it, with places below the keys."""
    keys = ~_keys(x, False, False)
    # which NumPy parts by vectors
    keys = keys.astype(np.int32) if keys.itemsize < 4 else keys
    (rows, n), k = keys.shape, out.shape[1]
    found = np.flatnonzero(keys <= np.partition(keys, k - 1, -1)[:, k - 1 : k])
    if len(found) == rows * k:
        found = found.reshape(rows, k)
        _order(out, keys.reshape(-1).take(found))
        out[...] = _taken(found, out) - np.arange(0, rows * n, n)[:, None]
    elif keys.itemsize < 8:
        numbers, bits = _with_places(keys)
        least = np.partition(numbers, k - 1, -1)[:, :k]
        least.sort(-1)
        out[...] = _places_of(least, bits)
    else:
        places = np.empty(keys.shape, np.int32)
        _order(places, keys, threads=threads)
        out[...] = places[:, :k]


def _at_ranks(ranks, out, x, threads: int = 1) -> None:
    """NumPy finds one rank by vectors, but not several together: so one after the other, each in what lies above."""
    # which NumPy parts slowly, or knows as no numbers
    is_short = x.itemsize < 4
    left = _keys(x, zeros=False).astype(np.int32) if is_short else x.copy()
    found = np.empty(out.shape, left.dtype) if is_short else out
    # the last rank that parts the row, and the last one found
    parted = last = -1
    for i in np.argsort(ranks, kind="stable"):
        rank = int(ranks[i])
        if rank == parted + 1 > 0:
            # NaN only where there is nothing else
            number = np.fmin.reduce(left[:, rank:], -1)
        elif rank != last:
            start = max(parted, 0)
            left[:, start:].partition(rank - start, -1)
            parted, number = rank, left[:, rank].copy()
        found[:, i], last = number, rank
    form = _format(x.dtype)
    if is_short and form:
        out.view(form.dtype)[...] = _flipped(found.astype(form.dtype))
    elif is_short:
        out[...] = found


def _at_own_ranks(out, x, ranks, threads: int = 1) -> None:
    for i in range(len(x)):
        _at_ranks(ranks[i], out[i : i + 1], x[i : i + 1])


def _correlate(kernel, parts) -> None:
    for x, out in parts:
        out[...] = np.correlate(x, kernel, "valid")


# -- threads ---------------------------------------------------------------------------------------


def _by_rows(work, *arrays, block: int = _BLOCK) -> None:
    """`work(result, operand, ...)`, in several threads: of parts of the rows, or, as far as it can, of one long row."""
    rows, size = len(arrays[0]), arrays[1].size
    threads = min(cores(), size // _SHARED) if size >= 2 * _SHARED else 1
    if rows == 1:
        return work(*arrays, threads=threads)
    step = max(1, rows * block // size)

    def some(first, last):
        for start in range(first, last, step):
            work(*[a[start : min(start + step, last)] for a in arrays])

    parts = max(1, min(rows, threads))
    ends = [rows * i // parts for i in range(parts + 1)]
    _share(some, list(zip(ends, ends[1:])))


def _share(work, pieces: list) -> None:
    """`work(*piece)` of all pieces, each once, here and in other threads where some can start; waits for all.

    The work itself must not share any more.
    """
    left, errors, done = deque(pieces), [], Semaphore(0)

    def take():
        while left:
            try:
                piece = left.popleft()
            except IndexError:  # another thread was quicker
                return
            try:
                work(*piece)
            except BaseException as error:
                errors.append(error)
            done.release()

    try:
        for _ in pieces[1:]:
            _pool(os.getpid()).submit(take)
    except RuntimeError:  # the interpreter ends, or the system has no more threads
        pass
    take()
    # also if one fails: their memory is the program's
    for _ in pieces:
        done.acquire()
    if errors:
        raise errors[0]


@functools.lru_cache(1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads of this process; a fork has none of its parent's."""
    return ThreadPoolExecutor(max(1, cores() - 1), "gradix-rows")
