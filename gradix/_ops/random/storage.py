"""Storage of keys: one word is a uint32, two are a uint64, four are a complex128.

The first word of a uint64 is the low one. complex128 is the only type of 16 bytes in XLA; its
halves are moved and reinterpreted, but never used as numbers.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval

U32, U64 = np.dtype("uint32"), np.dtype("uint64")
_F64 = np.dtype("float64")
WIDE = np.dtype("complex128")


def is_wide(dtype) -> bool:
    """Whether keys, of this key dtype or stored in this NumPy dtype, have four words."""
    return dtype.itemsize == WIDE.itemsize


# -- NumPy -----------------------------------------------------------------------------------------


def words_of(keys: np.ndarray) -> np.ndarray:
    """The words of keys, along a last axis."""
    return np.ascontiguousarray(keys).reshape((*keys.shape, 1)).view(U32)


def keys_of(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Keys stored as `dtype` from an array whose last axis holds their words."""
    return np.ascontiguousarray(words).view(dtype).reshape(words.shape[:-1])


def halves(keys: np.ndarray) -> np.ndarray:
    """The two uint64 of each key of four words, along a last axis."""
    return np.ascontiguousarray(keys).reshape((*keys.shape, 1)).view(U64)


def joined(pairs: np.ndarray) -> np.ndarray:
    """Keys of four words from an array of uint64 whose last axis has size 2."""
    return keys_of(pairs, WIDE)


def packed(first, second) -> np.ndarray:
    """Two uint32 as one uint64, the first one low."""
    return np.asarray(first, U64) | np.asarray(second, U64) << U64.type(32)


def seed_words(seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The high and the low word of seeds; the high one is zero for seeds of 32 bits and fewer."""
    if seeds.dtype.itemsize < 8:
        return np.zeros(seeds.shape, U32), seeds.astype(U32)
    wide = seeds.astype(U64)
    return (wide >> U64.type(32)).astype(U32), wide.astype(U32)


# -- StableHLO -------------------------------------------------------------------------------------


def emit_words(em, keys) -> list:
    """The words of keys, as values of the keys' shape."""
    if keys.aval.dtype.itemsize == 4:
        return [keys]
    return [
        word for half in (emit_halves(em, keys) if is_wide(keys.aval.dtype) else [keys]) for word in emit_pair(em, half)
    ]


def emit_pair(em, half):
    """The low and the high word of uint64 values, or of keys stored so."""
    words, wide = make_aval(half.aval.shape, U32), make_aval(half.aval.shape, U64)
    high = em.op("shift_right_logical", wide, half, em.constant(32, wide))
    return em.op("convert", words, half), em.op("convert", words, high)


def emit_keys(em, words, out):
    """Keys of type `out` from their words, values of its shape."""
    if len(words) == 1:
        return em.reshape(words[0], out.shape)
    pairs = [emit_joined(em, *words[i : i + 2], out.dtype if len(words) == 2 else U64) for i in range(0, len(words), 2)]
    return pairs[0] if len(pairs) == 1 else emit_wide(em, *pairs, out)


def emit_joined(em, low, high, dtype):
    """Two words as one of 64 bits."""
    wide = make_aval(low.aval.shape, dtype)
    low, high = em.op("convert", wide, low), em.op("convert", wide, high)
    return em.op("or", wide, low, em.op("shift_left", wide, high, em.constant(32, wide)))


def emit_halves(em, keys):
    """The two halves of keys of four words, as uint64 values of the keys' shape."""
    part, half = make_aval(keys.aval.shape, _F64), make_aval(keys.aval.shape, U64)
    return [em.bitcast(em.op(name, part, keys), half) for name in ("real", "imag")]


def emit_wide(em, first, second, out):
    """Keys of two uint64 values of their shape."""
    part = make_aval(out.shape, _F64)
    return em.op("complex", out, em.bitcast(first, part), em.bitcast(second, part))


def emit_wrap(em, words, out):
    """Keys of uint32 words along a last axis."""
    if not is_wide(out.dtype):
        if out.dtype.words == 1:
            return em.reshape_to(words, out)
        return em.bitcast(words, out) if type(out.size) is int else _emit_joined_words(em, words, out)
    return emit_wide(em, *emit_two_halves(em, words, out.shape), out)


def emit_unwrap(em, keys, out):
    """The words of keys, uint32 along a last axis."""
    if not is_wide(keys.aval.dtype):
        if out.shape[-1] == 1:
            return em.reshape_to(keys, out)
        return em.bitcast(keys, out) if type(out.size) is int else _emit_words(em, keys, out)
    part = make_aval((*keys.aval.shape, 2), U32)
    words = [em.bitcast(h, part) if type(out.size) is int else _emit_words(em, h, part) for h in emit_halves(em, keys)]
    return em.concatenate(words, out.ndim - 1, out)


def emit_two_halves(em, words, shape):
    """Four uint32 words along a last axis as two uint64 values of this shape."""
    half = make_aval(shape, U64)
    if type(half.size) is not int:
        first, second = [emit_slice(em, em.reshape(words, (*shape, 4)), i, i + 2) for i in (0, 2)]
        return [_emit_joined_words(em, pair, half) for pair in (first, second)]
    pairs = em.bitcast(em.reshape(words, (*shape, 2, 2)), make_aval((*shape, 2), U64))
    return [em.reshape(emit_slice(em, pairs, i, i + 1), shape) for i in (0, 1)]


def _emit_words(em, keys, out):
    """The words of keys of symbolic shape, by shifts: XLA cannot infer the shape of a bitcast."""
    wide, half = make_aval(keys.aval.shape, U64), make_aval(keys.aval.shape, U32)
    high = em.op("shift_right_logical", wide, keys, em.constant(32, wide))
    words = [em.reshape(em.op("convert", half, word), (*half.shape, 1)) for word in (keys, high)]
    return em.concatenate(words, out.ndim - 1, out)


def _emit_joined_words(em, words, out):
    """Keys of two words in an array of symbolic shape."""
    wide = make_aval(out.shape, U64)
    low, high = [em.op("convert", wide, em.reshape(emit_slice(em, words, i, i + 1), out.shape)) for i in (0, 1)]
    return em.op("or", out, low, em.op("shift_left", wide, high, em.constant(32, wide)))


def emit_slice(em, x, start: int, stop: int, stride: int = 1, axis: int = -1):
    """Part of a value along one axis."""
    axis %= x.aval.ndim
    starts, stops, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    starts[axis], stops[axis], strides[axis] = start, stop, stride
    return em.slice(x, starts, stops, strides)


def emit_seed_words(em, seeds):
    """The high and the low word of seeds, as values of their shape."""
    if seeds.aval.dtype.itemsize < 8:
        return em.constant(0, make_aval(seeds.aval.shape, U32)), em.convert(seeds, U32)
    return emit_pair(em, em.convert(seeds, U64))[::-1]
