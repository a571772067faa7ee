"""Keys of four words, for XLA's own generator: `rbg` splits them by Threefry, `unsafe_rbg` by the generator itself.

One key is the state of a Philox generator, two uint64. It is stored as one complex128, of XLA's types the only one of 16 bytes:
its two halves are moved and reinterpreted, never computed with as numbers.
XLA has no generator of many states: of an array of keys the first draws for all, in the order of their places, as in JAX.
"""
from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.dimensions import i64_array
from gradix._ops.random.philox import emit_philox, philox_blocks, philox_words
from gradix._ops.random.threefry import (
    U32,
    U64,
    blocks,
    counted,
    emit_blocks,
    emit_counted,
    emit_joined,
    emit_key_words,
    key_words,
)

_F64 = np.dtype("float64")
WIDE = np.dtype("complex128")
_SKIP = 10              # blocks an unsafe split spends on one key


def is_wide(dtype) -> bool:
    """Whether keys, of this key dtype or stored in this NumPy dtype, have four words."""
    return dtype.itemsize == WIDE.itemsize


# -- NumPy --------------------------------------------------------------------------------------------------------

def halves(keys: np.ndarray) -> np.ndarray:
    """The two uint64 of each key, along a last axis."""
    return np.ascontiguousarray(keys).reshape((*keys.shape, 1)).view(U64)


def joined(pairs: np.ndarray) -> np.ndarray:
    """Keys from an array of uint64 whose last axis has size 2."""
    return np.ascontiguousarray(pairs).view(WIDE).reshape(pairs.shape[:-1])


def _packed(first, second) -> np.ndarray:
    """Two uint32 as one uint64, the first one low."""
    return np.asarray(first, U64) | np.asarray(second, U64) << U64.type(32)


def _first(keys: np.ndarray) -> tuple[int, int]:
    key, counter = halves(keys).reshape(-1, 2)[0].tolist()
    return key, counter


def host_split(keys: np.ndarray, shape, unsafe: bool) -> np.ndarray:
    if not unsafe:
        pairs = _packed(*counted(halves(keys), prod(shape)))
        return joined(np.moveaxis(pairs, -2, -1)).reshape((*keys.shape, *shape))
    count = keys.size * prod(shape)
    if not count:
        return np.empty((*keys.shape, *shape), WIDE)
    words = philox_blocks(*_first(keys), np.arange(count, dtype=U64) * U64.type(_SKIP))
    return words.view(WIDE).reshape((*keys.shape, *shape))


def host_fold_in(keys: np.ndarray, data: np.ndarray, unsafe: bool) -> np.ndarray:
    pairs = halves(keys)
    if not unsafe:
        return joined(_packed(*blocks(*key_words(pairs), U32.type(0), data[..., None])))
    seed = int(data.flat[0]) << 32 if data.size else 0
    words = philox_blocks(seed, seed, np.arange(data.size, dtype=U64) * U64.type(_SKIP) + U64.type(_SKIP - 1))
    return joined(pairs ^ words.view(U64).reshape((*data.shape, 2)))


def host_bits(keys: np.ndarray, shape, dtype: np.dtype) -> np.ndarray:
    if not keys.size:
        return np.empty((*keys.shape, *shape), dtype)
    return philox_words(*_first(keys), keys.size * prod(shape), dtype).reshape((*keys.shape, *shape))


# -- StableHLO ----------------------------------------------------------------------------------------------------

def emit_halves(em, keys):
    """The two halves of keys, as uint64 values of the keys' shape."""
    part, half = make_aval(keys.aval.shape, _F64), make_aval(keys.aval.shape, U64)
    return [em.bitcast(em.op(name, part, keys), half) for name in ("real", "imag")]


def emit_wide(em, first, second, out):
    """Keys of two uint64 values of their shape."""
    part = make_aval(out.shape, _F64)
    return em.op("complex", out, em.bitcast(first, part), em.bitcast(second, part))


def emit_wrap(em, words, out):
    """Keys of uint32 words of shape (..., 4)."""
    pairs = em.bitcast(em.reshape(words, (*out.shape, 2, 2)), make_aval((*out.shape, 2), U64))
    return emit_wide(em, *[em.reshape(_slice(em, pairs, i, i + 1), out.shape) for i in (0, 1)], out)


def _slice(em, x, start: int, stop: int, stride: int = 1, axis: int = -1):
    """Part of a value along one axis."""
    axis %= x.aval.ndim
    starts, stops, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    starts[axis], stops[axis], strides[axis] = start, stop, stride
    shape = [-(-(b - a) // s) for a, b, s in zip(starts, stops, strides)]
    return em.op("slice", make_aval(tuple(shape), x.aval.dtype), x, attrs=(
        f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(stops)}, strides = {i64_array(strides)}"))


def emit_unwrap(em, keys, out):
    """The words of keys, uint32 of shape (..., 4)."""
    words = [em.bitcast(h, make_aval((*keys.aval.shape, 2), U32)) for h in emit_halves(em, keys)]
    return em.op("concatenate", out, *words, attrs=f"dimension = {out.ndim - 1} : i64")


def _state(em, key, counter):
    """A generator's state of two scalars."""
    one = [em.reshape(half, (1,)) for half in (key, counter)]
    return em.op("concatenate", make_aval((2,), U64), *one, attrs="dimension = 0 : i64")


def _first_state(em, keys):
    return _state(em, *emit_halves(em, em.reshape(em.head(em.reshape(keys, (keys.aval.size,)), (1,)), ())))


def emit_split(em, out, keys, shape, unsafe: bool):
    if not unsafe:
        new = [emit_joined(em, *emit_counted(em, half, prod(shape)), U64) for half in emit_halves(em, keys)]
        return emit_wide(em, *[em.reshape(half, out.shape) for half in new], out)
    if not out.size:
        return em.constant(0, out)
    return emit_wrap(em, _spaced(em, _first_state(em, keys), out.size, 0), out)


def _spaced(em, state, count: int, start: int):
    """Every tenth block from `start` on, of shape (count, 4)."""
    words = emit_philox(em, state, (count * _SKIP, 4), U32)
    return _slice(em, words, start, count * _SKIP, _SKIP, axis=0)


def emit_fold_in(em, out, keys, data, unsafe: bool):
    pairs = [em.spread(half, out.shape) for half in emit_halves(em, keys)]
    if not out.size:
        return em.constant(0, out)
    if not unsafe:
        counters, zero = em.spread(data, out.shape), em.constant(0, make_aval(out.shape, U32))
        dims = tuple(range(out.ndim))
        return emit_wide(em, *[emit_joined(em, *emit_blocks(em, *emit_key_words(em, half), zero, counters, dims), U64)
                               for half in pairs], out)
    first = em.convert(em.reshape(em.head(em.reshape(data, (data.aval.size,)), (1,)), ()), U64)
    seed = em.op("shift_left", first.aval, first, em.constant(32, first.aval))
    words = _spaced(em, _state(em, seed, seed), data.aval.size, _SKIP - 1)
    drawn = em.bitcast(em.reshape(words, (*data.aval.shape, 2, 2)), make_aval((*data.aval.shape, 2), U64))
    masks = [em.spread(em.reshape(_slice(em, drawn, i, i + 1), data.aval.shape), out.shape) for i in (0, 1)]
    return emit_wide(em, *[em.op("xor", half.aval, half, mask) for half, mask in zip(pairs, masks)], out)


def emit_bits(em, out, keys):
    return emit_philox(em, _first_state(em, keys), out.shape, out.dtype) if out.size else em.constant(0, out)
