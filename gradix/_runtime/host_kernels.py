"""Functions of NumPy that compiled programs call: sorts, partitions and correlations.

NumPy's versions use the vector instructions of the processor. Each function takes the operands of a
call and then its results, which are matrices over the program's memory; operands are only read. As
in XLA, all zeros and the numbers that XLA flushes to zero are equal, and all NaNs are equal and the
largest. NumPy releases the interpreter lock, so several threads share large matrices.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import NamedTuple

import numpy as np

from gradix._runtime.machine import cores

_SHARED = 1 << 15  # Each thread gets at least so many elements.
# So many elements of rows are processed together, whose copies stay in a processor's cache.
_BLOCK = 1 << 17
_PRODUCTS = 1 << 18  # Each thread of a correlation computes at least so many products.
_LONG = 1 << 12  # In rows of so many elements, bisection is faster than comparing all of them.


def sort(x, out) -> None:
    """Sort each row; equal numbers keep their order and their bits."""
    _by_rows(_sort, out, x)


def sort_numbers(x, out) -> None:
    """Sort the rows of `x`, for numbers without zeros of both signs and without NaNs."""
    if not np.may_share_memory(x, out):  # A program over several devices has two buffers.
        out[...] = x
    _by_rows(_put_in_order, out, out)


def order(*keys_and_out) -> None:
    """The permutation that sorts each row by the first key, and equal ones by the next key."""
    *keys, out = keys_and_out
    _by_rows(_order, out, *keys)


def largest(x, values, places) -> None:
    """The largest numbers of each row in IEEE's total order, in decreasing order, and their places.

    Of equal numbers the first come first.
    """
    _by_rows(_largest, places, x, values, block=4 * _BLOCK)


def at_ranks(x, ranks, out) -> None:
    """The elements that would be at the places `ranks[i]` of row i if it were sorted."""
    if len(x) > 1 and not (ranks == ranks[0]).all():
        return _by_rows(_at_own_ranks, out, x, ranks)
    _by_rows(functools.partial(_at_ranks, ranks[0]), out, x)


def correlate(x, w, out) -> None:
    """The correlation of each row with the one row of `w`, at all places of full overlap."""
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


# -- what programs may pass ------------------------------------------------------------------------


def _is_ordered(*keys_and_out) -> bool:
    *keys, out = keys_and_out
    return bool(keys) and out.dtype == np.int32 and all(k.shape == out.shape for k in keys)


def _is_chosen(x, values, places) -> bool:
    fits = values.shape == places.shape and len(x) == len(values) and values.shape[1] <= x.shape[1]
    return fits and values.dtype == x.dtype and places.dtype == np.int32


def _is_ranked(x, ranks, out) -> bool:
    fits = ranks.shape == out.shape and len(x) == len(out) and out.dtype == x.dtype
    return fits and ranks.dtype.kind in "iu"


def _is_correlated(x, w, out) -> bool:
    shape = len(x), x.shape[1] - w.shape[1] + 1
    return len(w) == 1 and out.shape == shape and x.dtype == w.dtype == out.dtype


def _is_like(x, out) -> bool:
    return x.shape == out.shape and x.dtype == out.dtype


def _checked(kernel, fits):
    """The kernel, which refuses arrays of shapes and dtypes that this library does not pass."""

    def run(*arrays):
        if not all(a.ndim == 2 and a.size for a in arrays) or not fits(*arrays):
            types = ", ".join([f"{a.dtype}{list(a.shape)}" for a in arrays])
            raise ValueError(
                f"the function gradix_host_{kernel.__name__} cannot take operands and results of the types "
                f"{types}. Programs should not call it themselves; use jnp.sort, lax.top_k and the like."
            )
        kernel(*arrays)

    run.__name__ = kernel.__name__
    return run


_FITS = (
    (sort, _is_like),
    (sort_numbers, _is_like),
    (order, _is_ordered),
    (largest, _is_chosen),
    (at_ranks, _is_ranked),
    (correlate, _is_correlated),
)
KERNELS = {kernel.__name__: _checked(kernel, fits) for kernel, fits in _FITS}


# -- numbers as integers ---------------------------------------------------------------------------


class _Format(NamedTuple):
    """The bits of a float format as integers.

    Attributes:
        dtype: the signed integer dtype of the same width.
        magnitude: the mask of all bits except the sign.
        infinity, nan: the bits of infinity and of a NaN.
        least: the bits of the smallest positive number that XLA does not flush to zero.
        marks: three floats. In a sorted row, zeros are between the first two, and NaNs begin at the
            last.
    """

    dtype: np.dtype
    magnitude: int
    infinity: int
    nan: int
    least: int
    marks: np.ndarray


@functools.lru_cache(None)
def _format(dtype) -> _Format | None:
    """The format of a float dtype; None for integers and booleans."""
    if dtype.kind in "biu":
        return None
    signed = np.dtype(f"int{8 * dtype.itemsize}")
    magnitude = int(np.iinfo(signed).max)
    infinity, nan = [int(np.array(v, dtype).view(signed)) for v in (np.inf, np.nan)]
    # XLA compares float16 as float32, where denormals of float16 are not denormal.
    least = 1 if dtype == np.float16 else infinity & -infinity
    marks = np.array([least - magnitude - 1, least, nan & magnitude], signed).view(dtype)
    return _Format(signed, magnitude, infinity, nan & magnitude, least, marks)


def _flipped(bits) -> np.ndarray:
    """Bits of sign and magnitude converted to two's complement, or back."""
    out = bits >> (8 * bits.itemsize - 1)
    out &= np.iinfo(bits.dtype).max
    out ^= bits
    return out


def _keys(x, zeros: bool = True, nans: bool = True) -> np.ndarray:
    """Integers in the order of the numbers.

    All zeros have one key with `zeros`, and all NaNs have one with `nans`; otherwise their order is
    that of IEEE's total order.
    """
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
    """Numbers that sort rows by their keys, and equal keys by place; and the number of place bits.

    The place is in the last bits. Numbers of 33 to 61 bits are given as positive, normal float64,
    because AVX2 compares floats of 64 bits but not integers.
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
    """The places that `_with_places` put into the last bits, computed in place."""
    places = numbers.view(f"i{numbers.itemsize}")
    places &= (1 << bits) - 1
    return places


def _halves(key) -> list:
    """A key of 64 bits as two of 32, the leading one first; shorter keys are unchanged."""
    if key.itemsize < 8:
        return [key]
    return [(key >> 32).astype(f"{key.dtype.kind}4"), key.astype(np.uint32)]


# -- rows ------------------------------------------------------------------------------------------


def _put_in_order(rows, _=None, threads: int = 1) -> None:
    """Sort rows in place; a single long row is partitioned, and several threads sort its pieces."""
    if rows.itemsize <= 2:
        return rows.sort(-1, "stable")  # NumPy sorts so short numbers by counting.
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
        if len(out) == 1 or out.shape[1] >= _LONG:
            for own, row in zip(x, out):
                n = _end_of_numbers(row)
                _put_in_order(row[None, :n], threads)
                _keep_equal_ones_of_row(form, own[:n], row[:n])
            return
        _put_in_order(out, threads)
    bits, found = x.view(form.dtype), out.view(form.dtype)
    if x.itemsize <= 2:
        found[...] = _keys(x)
        _put_in_order(found, threads)
        found[...] = _flipped(found)
    _keep_equal_ones(form, bits, found)


def _end_of_numbers(row) -> int:
    """How many elements come before the NaNs at the end of a row, which are in order there."""
    if not len(row) or row[-1] == row[-1]:
        return len(row)
    is_number = (row == row)[::-1]
    after = int(is_number.argmax())
    return len(row) - after if is_number[after] else 0


def _keep_equal_ones(form: _Format, bits, found) -> None:
    """Restore the order of the zeros and of the NaNs in sorted rows.

    A row has as many of them as before sorting, and the rows are in the same order, so one
    assignment restores all rows.
    """
    magnitude = found & form.magnitude
    zeros = magnitude < form.least
    if zeros.any():
        own = bits[(bits & form.magnitude) < form.least]
        if own.any():
            found[zeros] = own
    if magnitude[:, -1].max() > form.infinity:
        found[magnitude > form.infinity] = bits[(bits & form.magnitude) > form.infinity]


def _keep_equal_ones_of_row(form: _Format, x, out) -> None:
    """As `_keep_equal_ones`, for one row and by bisection."""
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
    for key in reversed([half for k in keys for part in _parts(k) for half in _halves(_keys(part))]):
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
    if x.dtype.kind != "c":
        return [x]
    nan = np.isnan(x.imag)  # comes after all numbers, before NaN in the real part
    if not nan.any():
        return [x.real, x.imag]
    return [nan.astype(x.real.dtype) + 2 * np.isnan(x.real), x.real, x.imag]


def _largest(places, x, values, threads: int = 1) -> None:
    _largest_places(places, x, threads)
    values[...] = _taken(x, places)


def _largest_places(out, x, threads: int) -> None:
    """The places of the largest numbers: candidates above a lower bound are sorted.

    If there are too many candidates, the rows are partitioned instead.
    """
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
    """Places in the matrix that include the k largest of each row; None if rows are too short.

    A row is divided into parts, and the k-th largest of the parts' maxima is a lower bound.
    """
    n = x.shape[1]
    parts = min(n // max(128, 4 * k), 64)
    if parts < 2:
        return None
    if x.dtype.kind not in "biuf" or x.dtype == np.float16:  # NumPy compares these slowly.
        x = _keys(x, False, False)
    size = n // parts
    is_float = x.dtype.kind == "f"
    maxima = (np.fmax if is_float else np.maximum).reduce(x[:, : parts * size].reshape(len(x), parts, size), 1)
    # A NaN may have either sign, so it is not a lower bound.
    if is_float and (nans := np.isnan(maxima)).any():
        maxima[nans] = -np.inf
    # NumPy partitions numbers of 32 bits by vector instructions, but not shorter ones.
    quick = maxima.astype(np.int32) if x.itemsize < 4 else maxima
    quick.partition(size - k, -1)
    below = x < quick[:, size - k, None].astype(x.dtype)
    return np.flatnonzero(np.logical_not(below, out=below))  # NaNs are included.


def _largest_by_partition(out, x, threads: int) -> None:
    """The places of the largest numbers, found by the k-th largest of each row.

    If more numbers equal it than are wanted, the keys are partitioned together with their places.
    """
    keys = ~_keys(x, False, False)
    # NumPy partitions numbers of 32 bits by vector instructions, but not shorter ones.
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
    """Find the ranks one by one, each among the elements above the previous one.

    NumPy partitions by vector instructions for a single rank only.
    """
    is_short = x.itemsize < 4
    left = _keys(x, zeros=False).astype(np.int32) if is_short else x.copy()
    found = np.empty(out.shape, left.dtype) if is_short else out
    # The last rank by which rows were partitioned, and the last one found.
    parted = last = -1
    for i in np.argsort(ranks, kind="stable"):
        rank = int(ranks[i])
        if rank == parted + 1 > 0:
            # The minimum ignores NaNs unless all elements are NaN.
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
    """Call `work(result, operand, ...)` on groups of rows, which several threads share.

    For a single row it is called once, with the number of threads that it may use.
    """
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
    """Call `work(*piece)` for each piece, in this thread and others, and wait for all of them.

    The work itself must not call this function.
    """
    left, errors, done = deque(pieces), [], Semaphore(0)

    def take():
        while left:
            try:
                piece = left.popleft()
            except IndexError:  # Another thread took the last piece.
                return
            try:
                work(*piece)
            except BaseException as error:
                errors.append(error)
            done.release()

    try:
        for _ in pieces[1:]:
            _pool(os.getpid()).submit(take)
    except RuntimeError:  # The interpreter is ending, or the system has no more threads.
        pass
    take()
    # Even after an error all pieces are awaited, because they use the program's memory.
    for _ in pieces:
        done.acquire()
    if errors:
        raise errors[0]


@functools.lru_cache(1)
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked process does not have those of its parent."""
    return ThreadPoolExecutor(max(1, cores() - 1), "gradix-rows")
