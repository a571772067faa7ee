"""Threefry 2x32 with its first order of counters: the option `jax_threefry_partitionable=False`.

The counters 0 to m - 1 are split into halves. An element of each half gives one of the two counter
words of a block. The results are the first words of all blocks, then the second words. So every
word depends on how many are drawn.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_dim
from gradix._ops.random.rbg import Rbg
from gradix._ops.random.storage import U32, U64, emit_halves, emit_joined, emit_pair, emit_wide, halves, joined
from gradix._ops.random.threefry import Threefry2x32, blocks, emit_blocks, key_words


def _host_words(keys: np.ndarray, m: int) -> np.ndarray:
    """`m` words of each key, along a last axis."""
    half = (m + 1) // 2
    first = np.arange(half, dtype=U32)
    second = first + U32.type(half)
    second[m - half :] = 0
    k0, k1 = [k[..., None] for k in key_words(keys)]
    return np.concatenate(blocks(k0, k1, first, second), -1)[..., :m]


def _emit_words(em, keys, m: int):
    """`m` words of each key, along a last axis."""
    half, lead = (m + 1) // 2, keys.aval.shape
    counters = make_aval((*lead, half), U32)
    first = em.iota(counters, len(lead))
    is_odd = is_symbolic_dim(m) or m % 2  # an open number of words may be odd
    second = em.op("add", counters, first, _filled(em, half, counters))
    if is_odd:
        is_padding = em.compare(second, _filled(em, m, counters), "EQ")
        second = em.select(is_padding, em.constant(0, counters), second)
    k0, k1 = emit_pair(em, keys)
    pair = emit_blocks(em, k0, k1, first, second, tuple(range(len(lead))))
    words = em.concatenate(pair, len(lead), make_aval((*lead, 2 * half), U32))
    return _part(em, words, 0, m) if is_odd else words


def _filled(em, n, aval):
    return em.broadcast(em.number(n, aval.dtype), aval.shape) if is_symbolic_dim(n) else em.constant(n, aval)


def _part(em, words, start: int, stop: int):
    lead = words.aval.shape[:-1]
    return em.slice(words, [*[0] * len(lead), start], [*lead, stop])


def _emit_narrow(em, words, size: int, dtype):
    """Words cut into numbers of 8 or 16 bits, the low ones first; the first `size` of them."""
    lead, n, parts = words.aval.shape[:-1], words.aval.shape[-1], 4 // dtype.itemsize
    wide = make_aval((*lead, n, parts), U32)
    bits = em.op("multiply", wide, em.iota(wide, len(lead) + 1), em.constant(8 * dtype.itemsize, wide))
    spread = em.broadcast_in_dim(words, wide, tuple(range(len(lead) + 1)))
    cut = em.convert(em.op("shift_right_logical", wide, spread, bits), dtype)
    return _part(em, em.reshape(cut, (*lead, n * parts)), 0, size)


def _emit_pairs(em, keys, n: int, dtype):
    """`n` pairs of words of each key, each pair as one number of 64 bits."""
    lead = keys.aval.shape
    pairs = em.reshape(_emit_words(em, keys, 2 * n), (*lead, n, 2))
    first, second = [em.slice(pairs, [*[0] * (len(lead) + 1), i], [*lead, n, i + 1]) for i in (0, 1)]
    return emit_joined(em, first, second, dtype)


class ThreefryByHalves(Threefry2x32):
    """The default generator with new keys and bits drawn by halves."""

    def host_split(self, keys, shape):
        n = prod(shape)
        return _host_words(keys, 2 * n).view(U64).reshape((*keys.shape, *shape))

    def host_bits(self, keys, shape, dtype):
        n, width = prod(shape), dtype.itemsize
        words = np.ascontiguousarray(_host_words(keys, -(-n * width // 4)))
        if width == 8:
            high, low = words[..., :n].astype(U64), words[..., n:]
            words = high << U64.type(32) | low
        elif width < 4:
            words = words.view(dtype)[..., :n]
        return words.reshape((*keys.shape, *shape))

    def emit_split(self, em, out, keys, shape):
        return em.reshape_to(_emit_pairs(em, keys, prod(shape), out.dtype), out)

    def emit_bits(self, em, out, keys):
        """Bits along the last axis of `out`."""
        n, width = out.shape[-1], out.dtype.itemsize
        words = _emit_words(em, keys, -(-n * width // 4))
        if width == 8:
            return emit_joined(em, _part(em, words, n, 2 * n), _part(em, words, 0, n), U64)
        return words if width == 4 else _emit_narrow(em, words, n, out.dtype)


class RbgByHalves(Rbg):
    """Bits from XLA's generator; new keys from both halves of a key are drawn by halves."""

    def host_split(self, keys, shape):
        pairs = _host_words(halves(keys), 2 * prod(shape)).view(U64)
        return joined(np.moveaxis(pairs, -2, -1)).reshape((*keys.shape, *shape))

    def emit_split(self, em, out, keys, shape):
        new = [_emit_pairs(em, half, prod(shape), U64) for half in emit_halves(em, keys)]
        return emit_wide(em, *[em.reshape(half, out.shape) for half in new], out)
