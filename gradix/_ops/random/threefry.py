"""Threefry 2x32 with 20 rounds, in NumPy and StableHLO (Salmon et al., "Parallel random numbers", 2011).

A key is one uint64, its first word the low one. A block's two counter words give two words of
random bits.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.random.storage import U32, U64, emit_joined, emit_pair, emit_seed_words, keys_of, seed_words, words_of

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF
_PACKED = 384  # for so few blocks one large Python integer is quicker than NumPy
_CHUNK = 8192  # blocks at a time, so that the words stay in the cache


# -- NumPy -----------------------------------------------------------------------------------------


def block(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """One block, in Python integers."""
    keys = k0, k1, k0 ^ k1 ^ _PARITY
    x0, x1 = (x0 + k0) & _MASK, (x1 + k1) & _MASK
    for i in (0, 1, 2, 3, 4):
        for r in _ROTATIONS[i & 1]:
            x0 = (x0 + x1) & _MASK
            x1 = ((x1 << r | x1 >> (32 - r)) & _MASK) ^ x0
        x0 = (x0 + keys[(i + 1) % 3]) & _MASK
        x1 = (x1 + keys[(i + 2) % 3] + i + 1) & _MASK
    return x0, x1


def _packed_blocks(k0: int, k1: int, x0: int, x1: int, n: int) -> tuple[int, int]:
    """`n` blocks at once: words of 32 bits, each in a lane of 64 bits of one Python integer.

    The bits that a rotation shifts out of a word stay in its lane, and those shifted in from the
    next lane are above bit 32, so the mask removes them.
    """
    ones, mask, _ = _lanes(n)
    keys = k0, k1, k0 ^ k1 ^ _PARITY * ones
    x0, x1 = (x0 + k0) & mask, (x1 + k1) & mask
    for i in (0, 1, 2, 3, 4):
        for r in _ROTATIONS[i & 1]:
            x0 = (x0 + x1) & mask
            x1 = ((x1 << r | x1 >> (32 - r)) & mask) ^ x0
        x0 = (x0 + keys[(i + 1) % 3]) & mask
        x1 = (x1 + keys[(i + 2) % 3] + (i + 1) * ones) & mask
    return x0, x1


@lru_cache(256)
def _lanes(n: int) -> tuple[int, int, int]:
    """A one in each of `n` lanes, 32 ones in each, and the lanes' numbers."""
    ones = _pack(np.ones(n, U64))
    return ones, ones * _MASK, _pack(np.arange(n, dtype=U64))


def _pack(words: np.ndarray) -> int:
    return int.from_bytes(words.astype(U64, copy=False).tobytes(), "little")


def _unpack(lanes: int, n: int) -> np.ndarray:
    return np.frombuffer(lanes.to_bytes(8 * n, "little"), U32)[::2]


def blocks(k0, k1, x0, x1) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of uint32 arrays that broadcast against each other."""
    shape = np.broadcast_shapes(np.shape(k0), np.shape(k1), np.shape(x0), np.shape(x1))
    size = prod(shape)
    if size <= _PACKED:
        a, b, c, d = [_pack(np.broadcast_to(words, shape)) for words in (k0, k1, x0, x1)]
        y0, y1 = _packed_blocks(a, b, c, d, size)
        return _unpack(y0, size).reshape(shape), _unpack(y1, size).reshape(shape)
    keys = k0, k1, np.bitwise_xor(np.bitwise_xor(k0, k1), U32.type(_PARITY))
    y0, y1 = np.empty(shape, U32), np.empty(shape, U32)
    np.add(x0, k0, out=y0)
    np.add(x1, k1, out=y1)
    _rounds(keys, y0, y1, np.empty(shape, U32))
    return y0, y1


def _rounds(keys, x0, x1, spare) -> None:
    """The 20 rounds, in place."""
    for i in range(5):
        for r in _ROTATIONS[i & 1]:
            np.add(x0, x1, out=x0)
            np.left_shift(x1, U32.type(r), out=spare)
            np.right_shift(x1, U32.type(32 - r), out=x1)
            np.bitwise_or(x1, spare, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        np.add(x0, keys[(i + 1) % 3], out=x0)
        np.add(x1, np.add(keys[(i + 2) % 3], U32.type(i + 1)), out=x1)


def key_words(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and second words of uint64 keys."""
    words = words_of(keys)
    return words[..., 0], words[..., 1]


def counted(keys: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Blocks number 0 to `size - 1` of each key: words of shape `(*keys.shape, size)`."""
    if not keys.ndim and size <= _PACKED:
        key, (ones, _, numbers) = int(keys), _lanes(size)
        y0, y1 = _packed_blocks((key & _MASK) * ones, (key >> 32) * ones, 0, numbers, size)
        return _unpack(y0, size), _unpack(y1, size)
    k0, k1 = [w[..., None] for w in key_words(keys)]
    if size <= _CHUNK:
        return blocks(k0, k1, U32.type(0), np.arange(size, dtype=U32))
    out = np.empty((2, *keys.shape, size), U32)
    for start in range(0, size, _CHUNK):
        n = np.arange(start, min(start + _CHUNK, size), dtype=U64)
        part = out[..., start : start + _CHUNK]
        part[0], part[1] = blocks(k0, k1, (n >> U64.type(32)).astype(U32), n.astype(U32))
    return out[0], out[1]


# -- StableHLO -------------------------------------------------------------------------------------


def emit_blocks(em, k0, k1, x0, x1, dims):
    """Blocks for counters `x0`, `x1`; axis i of the keys is axis `dims[i]` of the counters.

    The rounds are one private function, unrolled: XLA fuses them into one loop over the counters.
    """
    out = x0.aval
    symbol = em.define("threefry2x32", [k0.aval, k1.aval, out, out], lambda *values: _emit_rounds(em, *values, dims))
    return em.call(symbol, [out, out], k0, k1, x0, x1)


def _emit_rounds(em, k0, k1, x0, x1, dims):
    key, out = k0.aval, x0.aval
    keys = [k0, k1, em.op("xor", key, em.op("xor", key, k0, k1), em.constant(_PARITY, key))]
    wide = [em.broadcast_in_dim(k, out, dims) for k in keys]
    x0, x1 = em.op("add", out, x0, wide[0]), em.op("add", out, x1, wide[1])
    for i in range(5):
        for r in _ROTATIONS[i & 1]:
            x0 = em.op("add", out, x0, x1)
            left = em.op("shift_left", out, x1, em.constant(r, out))
            right = em.op("shift_right_logical", out, x1, em.constant(32 - r, out))
            x1 = em.op("xor", out, x0, em.op("or", out, left, right))
        x0 = em.op("add", out, x0, wide[(i + 1) % 3])
        turn = em.op("add", key, keys[(i + 2) % 3], em.constant(i + 1, key))
        x1 = em.op("add", out, x1, em.broadcast_in_dim(turn, out, dims))
    return x0, x1


def emit_counters(em, shape):
    """The high and the low word of the numbers 0, 1, … along the last axis."""
    out, axis = make_aval(shape, U32), len(shape) - 1
    low = em.iota(out, axis)
    high = em.constant(0, out)
    if type(shape[-1]) is int and shape[-1] > 1 << 32:
        wide = make_aval(shape, U64)
        high = em.op("shift_right_logical", wide, em.iota(wide, axis), em.constant(32, wide))
        high, low = em.op("convert", out, high), em.op("convert", out, em.iota(wide, axis))
    return high, low


def emit_counted(em, keys, size: int):
    """Blocks number 0 to `size - 1` of each key, as two values of shape `(*keys.shape, size)`."""
    shape = (*keys.aval.shape, size)
    high, low = emit_counters(em, shape)
    k0, k1 = emit_pair(em, keys)
    return emit_blocks(em, k0, k1, high, low, tuple(range(len(shape) - 1)))


# -- keys ------------------------------------------------------------------------------------------


class Threefry2x32:
    """The default generator: the index of a drawn element is the counter of its block."""

    together = False

    def host_seed(self, seeds):
        high, low = seed_words(seeds)
        return keys_of(np.stack([high, low], -1), U64)

    def host_split(self, keys, shape):
        words = np.empty((*keys.shape, prod(shape), 2), U32)
        words[..., 0], words[..., 1] = counted(keys, prod(shape))
        return words.view(U64).reshape((*keys.shape, *shape))

    def host_fold_in(self, keys, data):
        if not keys.ndim and not data.ndim:
            first, second = block(int(keys) & _MASK, int(keys) >> 32, 0, int(data))
            return np.array(first | second << 32, U64)
        k0, k1 = key_words(keys)
        first, second = blocks(k0, k1, U32.type(0), data)
        words = np.empty((*first.shape, 2), U32)
        words[..., 0], words[..., 1] = first, second
        return words.view(U64).reshape(first.shape)

    def host_bits(self, keys, shape, dtype):
        first, second = counted(keys, prod(shape))
        if dtype == U64:
            words = (first.astype(U64) << U64.type(32)) | second
        else:
            words = (first ^ second).astype(dtype, copy=False)
        return words.reshape((*keys.shape, *shape))

    def emit_seed(self, em, out, seeds):
        return emit_joined(em, *emit_seed_words(em, seeds), out.dtype)

    def emit_split(self, em, out, keys, shape):
        first, second = emit_counted(em, keys, prod(shape))
        return em.reshape_to(emit_joined(em, first, second, out.dtype), out)

    def emit_fold_in(self, em, out, keys, data):
        counters = make_aval(out.shape, U32)
        if keys.aval.shape not in ((), out.shape):
            keys = em.spread(keys, out.shape)
        if data.aval.shape != out.shape:
            data = em.spread(data, out.shape)
        first, second = emit_blocks(
            em, *emit_pair(em, keys), em.constant(0, counters), data, tuple(range(keys.aval.ndim))
        )
        return emit_joined(em, first, second, out.dtype)

    def emit_bits(self, em, out, keys):
        """Bits along the last axis of `out`.

        Below 64 bits, the exclusive or of a block's two words.
        """
        first, second = emit_counted(em, keys, out.shape[-1])
        if out.dtype == U64:
            return emit_joined(em, second, first, U64)
        return em.convert(em.op("xor", first.aval, first, second), out.dtype)
