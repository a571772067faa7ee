"""Philox 2x32, Philox 4x32 and Threefry 4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

A block is a function of a key and a counter of two or four words. A draw from a key takes the words
of the blocks 0, 1, …, so that no word depends on how many are drawn. The algorithms are written
once, for NumPy and for StableHLO.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._ops.random.storage import (
    U32,
    U64,
    emit_joined,
    emit_keys,
    emit_seed_words,
    emit_words,
    keys_of,
    packed,
    seed_words,
    words_of,
)
from gradix._ops.random.threefry import emit_counters

# The increments of Philox's keys: the golden ratio and √3 - 1, in 32 bits.
_WEYL = 0x9E3779B9, 0xBB67AE85
_PARITY = 0x1BD11BDA
_ROTATIONS = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)
# Compute so many blocks at a time, so that the words stay in the cache.
_CHUNK = 8192


# -- arithmetic ------------------------------------------------------------------------------------


class _Numpy:
    """The operations on words as uint32 arrays of NumPy, which wrap around."""

    def add(self, x, y):
        return np.add(x, U32.type(y) if isinstance(y, int) else y)

    def xor(self, x, y):
        return np.bitwise_xor(x, y)

    def rotate(self, x, by: int):
        return np.bitwise_or(np.left_shift(x, U32.type(by)), np.right_shift(x, U32.type(32 - by)))

    def product(self, x, factor: int):
        """The high and the low word of a product."""
        wide = np.multiply(x, U64.type(factor), dtype=U64)
        return np.right_shift(wide, U64.type(32)).astype(U32), wide.astype(U32)

    def wide(self, x):
        return x


class _Emitted:
    """The operations on words as values of type `out`.

    Axis i of key words is axis `dims[i]` of it.
    """

    def __init__(self, em, out, dims):
        self.em, self.out, self.dims = em, out, dims

    def _op(self, name: str, x, y):
        y = self.em.constant(y, x.aval) if isinstance(y, int) else y
        return self.em.op(name, x.aval, x, y)

    def add(self, x, y):
        return self._op("add", x, y)

    def xor(self, x, y):
        return self._op("xor", x, y)

    def rotate(self, x, by: int):
        return self._op("or", self._op("shift_left", x, by), self._op("shift_right_logical", x, 32 - by))

    def product(self, x, factor: int):
        wide = self._op("multiply", self.em.convert(x, U64), factor)
        return self.em.convert(self._op("shift_right_logical", wide, 32), U32), self._op("multiply", x, factor)

    def wide(self, x):
        """A key word broadcast to all blocks."""
        return self.em.broadcast_in_dim(x, self.out, self.dims)


# -- the blocks ------------------------------------------------------------------------------------


def philox2x32(on, key, counter):
    (k,), (x0, x1) = key, counter
    for _ in range(10):
        high, low = on.product(x0, 0xD256D193)
        x0, x1 = on.xor(on.xor(high, on.wide(k)), x1), low
        k = on.add(k, _WEYL[0])
    return x0, x1


def philox4x32(on, key, counter):
    (k0, k1), (x0, x1, x2, x3) = key, counter
    for _ in range(10):
        (a_high, a_low), (b_high, b_low) = on.product(x0, 0xD2511F53), on.product(x2, 0xCD9E8D57)
        x0, x1 = on.xor(on.xor(b_high, on.wide(k0)), x1), b_low
        x2, x3 = on.xor(on.xor(a_high, on.wide(k1)), x3), a_low
        k0, k1 = on.add(k0, _WEYL[0]), on.add(k1, _WEYL[1])
    return x0, x1, x2, x3


def threefry4x32(on, key, counter):
    last = on.xor(on.xor(key[0], key[1]), on.xor(key[2], key[3]))
    keys = *key, on.xor(last, _PARITY)
    x = [on.add(c, on.wide(k)) for c, k in zip(counter, key)]
    for i in range(20):
        a, b = (1, 3) if i % 2 == 0 else (3, 1)
        first, second = _ROTATIONS[i % 8]
        x[0] = on.add(x[0], x[a])
        x[a] = on.xor(on.rotate(x[a], first), x[0])
        x[2] = on.add(x[2], x[b])
        x[b] = on.xor(on.rotate(x[b], second), x[2])
        if i % 4 == 3:
            turn = i // 4 + 1
            added = [keys[(turn + j) % 5] for j in range(4)]
            added[3] = on.add(added[3], turn)
            x = [on.add(v, on.wide(k)) for v, k in zip(x, added)]
    return tuple(x)


# -- keys ------------------------------------------------------------------------------------------


class CounterBased:
    """A generator of keys of `words` words, whose blocks have as many words as their counters.

    To draw bits, or to make a key from a seed, the words of the number are the first ones of the
    counter. To derive keys they are the last ones.
    """

    together = False

    def __init__(self, block, words: int, counter_words: int, storage: np.dtype, seed_is_key: bool = False):
        self.block, self.words, self.blank = block, words, counter_words - 2
        self.storage, self.seed_is_key = storage, seed_is_key

    def _counter(self, high, low, zero, derives: bool):
        blank = [zero] * self.blank
        return (*blank, high, low) if derives else (high, low, *blank)

    def _joined(self, on, words):
        """The high and the low word of 64 bits; Threefry uses all words of a block for them."""
        return [on.xor(words[i], words[i + 2]) for i in (0, 1)] if self.seed_is_key else words[:2]

    def _mixed(self, on, words):
        first = words[0]
        for word in words[1:]:
            first = on.xor(first, word)
        return first

    # In NumPy

    def host_seed(self, seeds):
        high, low = seed_words(seeds)
        zeros = [np.zeros(seeds.shape, U32)] * 4
        seed = (high, low, zeros[0], zeros[0])[: self.blank + 2]
        key, counter = (seed, zeros) if self.seed_is_key else (zeros[: self.words], seed)
        return self._keys(self.block(_Numpy(), key, counter))

    def _keys(self, words):
        return keys_of(np.stack(words[: self.words], -1), self.storage)

    def _host_blocks(self, keys, size: int, derives: bool):
        """Blocks number 0 to `size - 1` of each key: words of shape `(*keys.shape, size)`."""
        key = [np.ascontiguousarray(word)[..., None] for word in np.moveaxis(words_of(keys), -1, 0)]
        out = np.empty((self.blank + 2, *keys.shape, size), U32)
        for start in range(0, size, _CHUNK):
            n = np.arange(start, min(start + _CHUNK, size), dtype=U64)
            counter = self._counter((n >> U64.type(32)).astype(U32), n.astype(U32), np.zeros(n.shape, U32), derives)
            for i, word in enumerate(self.block(_Numpy(), key, counter)):
                out[i, ..., start : start + _CHUNK] = word
        return out

    def host_split(self, keys, shape):
        return self._keys(self._host_blocks(keys, prod(shape), True)).reshape((*keys.shape, *shape))

    def host_fold_in(self, keys, data):
        key = np.moveaxis(words_of(keys), -1, 0)
        zero = np.zeros(data.shape, U32)
        return self._keys(np.broadcast_arrays(*self.block(_Numpy(), key, self._counter(zero, data, zero, True))))

    def host_bits(self, keys, shape, dtype):
        words, on = self._host_blocks(keys, prod(shape), False), _Numpy()
        drawn = (
            packed(*self._joined(on, words)[::-1]) if dtype == U64 else self._mixed(on, words).astype(dtype, copy=False)
        )
        return drawn.reshape((*keys.shape, *shape))

    # In StableHLO

    def _emit(self, em, key, counter, dims):
        """A block, as a private function: XLA fuses it into one loop over the counters."""
        out, n = counter[0].aval, len(key)
        symbol = em.define(
            self.block.__name__,
            [v.aval for v in (*key, *counter)],
            lambda *values: self.block(_Emitted(em, out, dims), values[:n], values[n:]),
        )
        return em.call(symbol, [out] * len(counter), *key, *counter)

    def emit_seed(self, em, out, seeds):
        high, low = emit_seed_words(em, seeds)
        zeros = [em.constant(0, low.aval)] * 4
        seed = (high, low, *zeros[: self.blank])
        key, counter = (seed, zeros) if self.seed_is_key else (zeros[: self.words], seed)
        return emit_keys(em, self._emit(em, key, counter, tuple(range(out.ndim)))[: self.words], out)

    def _emit_counted(self, em, keys, size, derives: bool):
        shape = (*keys.aval.shape, size)
        high, low = emit_counters(em, shape)
        counter = self._counter(high, low, em.constant(0, low.aval), derives)
        return self._emit(em, emit_words(em, keys), counter, tuple(range(len(shape) - 1)))

    def emit_split(self, em, out, keys, shape):
        words = self._emit_counted(em, keys, prod(shape), True)[: self.words]
        return emit_keys(em, [em.reshape(word, out.shape) for word in words], out)

    def emit_fold_in(self, em, out, keys, data):
        keys = keys if keys.aval.shape in ((), out.shape) else em.spread(keys, out.shape)
        low = em.spread(data, out.shape)
        zero = em.constant(0, low.aval)
        words = self._emit(em, emit_words(em, keys), self._counter(zero, low, zero, True), tuple(range(keys.aval.ndim)))
        return emit_keys(em, words[: self.words], out)

    def emit_bits(self, em, out, keys):
        """Bits along the last axis of `out`."""
        words = self._emit_counted(em, keys, out.shape[-1], False)
        on = _Emitted(em, words[0].aval, None)
        if out.dtype == U64:
            high, low = self._joined(on, words)
            return emit_joined(em, low, high, U64)
        return em.convert(self._mixed(on, words), out.dtype)
