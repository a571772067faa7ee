"""Keys of XLA's own generator: `rbg` splits them by Threefry, `unsafe_rbg` by the generator itself.

One key is the state of a Philox generator, two uint64. XLA cannot draw from many states at once. So
the first key of an array draws the bits of all keys, one after the other, as in JAX.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.random.philox import emit_philox, philox_blocks, philox_words
from gradix._ops.random.storage import (
    U32,
    U64,
    WIDE,
    emit_halves,
    emit_joined,
    emit_pair,
    emit_seed_words,
    emit_slice,
    emit_two_halves,
    emit_wide,
    emit_wrap,
    halves,
    joined,
    packed,
    seed_words,
)
from gradix._ops.random.threefry import blocks, counted, emit_blocks, emit_counted, key_words

_SKIP = 10  # the blocks that an unsafe split uses for each key


def _first(keys: np.ndarray) -> tuple[int, int]:
    key, counter = halves(keys).reshape(-1, 2)[0].tolist()
    return key, counter


def _state(em, key, counter):
    """A generator's state of two scalars."""
    one = [em.reshape(half, (1,)) for half in (key, counter)]
    return em.concatenate(one, 0, make_aval((2,), U64))


def _first_state(em, keys):
    return _state(em, *emit_halves(em, em.reshape(em.head(em.reshape(keys, (keys.aval.size,)), (1,)), ())))


def _spaced(em, state, count: int, start: int):
    """Every tenth block from `start` on, of shape (count, 4)."""
    words = emit_philox(em, state, (count * _SKIP, 4), U32)
    return emit_slice(em, words, start, count * _SKIP, _SKIP, axis=0)


class Rbg:
    """Bits from XLA's generator, keys from Threefry of both halves of a key."""

    together = True  # one draw for an array of keys

    def host_seed(self, seeds):
        words = packed(*seed_words(seeds))
        return joined(np.stack([words, words], -1))

    def host_split(self, keys, shape):
        pairs = packed(*counted(halves(keys), prod(shape)))
        return joined(np.moveaxis(pairs, -2, -1)).reshape((*keys.shape, *shape))

    def host_fold_in(self, keys, data):
        return joined(packed(*blocks(*key_words(halves(keys)), U32.type(0), data[..., None])))

    def host_bits(self, keys, shape, dtype):
        if not keys.size:
            return np.empty((*keys.shape, *shape), dtype)
        return philox_words(*_first(keys), keys.size * prod(shape), dtype).reshape((*keys.shape, *shape))

    def emit_seed(self, em, out, seeds):
        words = emit_joined(em, *emit_seed_words(em, seeds), U64)
        return emit_wide(em, words, words, out)

    def emit_split(self, em, out, keys, shape):
        new = [emit_joined(em, *emit_counted(em, half, prod(shape)), U64) for half in emit_halves(em, keys)]
        return emit_wide(em, *[em.reshape(half, out.shape) for half in new], out)

    def emit_fold_in(self, em, out, keys, data):
        if not out.size:
            return em.constant(0, out)
        counters, zero = em.spread(data, out.shape), em.constant(0, make_aval(out.shape, U32))
        dims = tuple(range(out.ndim))
        return emit_wide(
            em,
            *[
                emit_joined(em, *emit_blocks(em, *emit_pair(em, em.spread(half, out.shape)), zero, counters, dims), U64)
                for half in emit_halves(em, keys)
            ],
            out,
        )

    def emit_bits(self, em, out, keys):
        return emit_philox(em, _first_state(em, keys), out.shape, out.dtype) if out.size else em.constant(0, out)


class UnsafeRbg(Rbg):
    """Bits and keys from XLA's generator."""

    def host_split(self, keys, shape):
        count = keys.size * prod(shape)
        if not count:
            return np.empty((*keys.shape, *shape), WIDE)
        words = philox_blocks(*_first(keys), np.arange(count, dtype=U64) * U64.type(_SKIP))
        return words.view(WIDE).reshape((*keys.shape, *shape))

    def host_fold_in(self, keys, data):
        seed = int(data.flat[0]) << 32 if data.size else 0
        words = philox_blocks(seed, seed, np.arange(data.size, dtype=U64) * U64.type(_SKIP) + U64.type(_SKIP - 1))
        return joined(halves(keys) ^ words.view(U64).reshape((*data.shape, 2)))

    def emit_split(self, em, out, keys, shape):
        if not out.size:
            return em.constant(0, out)
        return emit_wrap(em, _spaced(em, _first_state(em, keys), out.size, 0), out)

    def emit_fold_in(self, em, out, keys, data):
        if not out.size:
            return em.constant(0, out)
        first = em.convert(em.reshape(em.head(em.reshape(data, (data.aval.size,)), (1,)), ()), U64)
        seed = em.op("shift_left", first.aval, first, em.constant(32, first.aval))
        words = _spaced(em, _state(em, seed, seed), data.aval.size, _SKIP - 1)
        masks = [em.spread(half, out.shape) for half in emit_two_halves(em, words, data.aval.shape)]
        pairs = [em.spread(half, out.shape) for half in emit_halves(em, keys)]
        return emit_wide(em, *[em.op("xor", half.aval, half, mask) for half, mask in zip(pairs, masks)], out)
