"""Random keys and bits: random_seed, random_wrap, random_unwrap, random_split, random_fold_in, random_bits."""
from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import move_axis
from gradix._ops.families import NonDifferentiable, align, broadcast_shapes_of
from gradix._ops.kernel_loops import apart
from gradix._ops.operands import as_operand, operands
from gradix._ops.random.threefry import (
    U32,
    U64,
    block,
    blocks,
    counted,
    emit_blocks,
    emit_counted,
    emit_joined,
    emit_key_words,
    key_words,
)
from gradix._ops.random.wide_keys import (
    emit_bits,
    emit_fold_in,
    emit_split,
    emit_unwrap,
    emit_wide,
    emit_wrap,
    host_bits,
    host_fold_in,
    host_split,
    is_wide,
    joined,
)

_SHORT_ROW, _LARGE = 32, 1 << 12        # elements
_BITS: dict[int, np.dtype] = {8: np.dtype("uint8"), 16: np.dtype("uint16"), 32: U32, 64: U64}


def _check_key(name: str, aval, unsafe: bool | None = None) -> None:
    if not isinstance(aval.dtype, dtypes.KeyType):
        raise TypeError(f"{name} takes typed random keys, got an array of dtype {dtypes.dtype_name(aval.dtype)} and "
                        f"shape {aval.shape}. Make one with random.key(seed), or from raw uint32 words with "
                        "random.wrap_key_data(raw).")
    if unsafe is not None and unsafe != (aval.dtype is dtypes.UNSAFE_KEY):
        raise TypeError(f"{name} of {aval.dtype} has the parameter unsafe={not unsafe}; lax.{name} sets it.")


class _Keys(NonDifferentiable, Primitive):
    """Base of the primitives that make or use keys; results have no derivative.

    The parameter `unsafe` of those that derive keys tells host rules of `unsafe_rbg`, whose keys are stored as those of `rbg`.
    """

    def show(self, params):
        return {k: v for k, v in params.items() if k != "unsafe"}


class RandomSeed(_Keys):
    """Keys from integer seeds: the seed's high word first, zero for seeds of 32 bits and fewer."""

    def abstract(self, seeds, *, impl):
        if seeds.dtype not in dtypes.INTEGER:
            raise TypeError(f"PRNG key seed must be an integer; got dtype {dtypes.dtype_name(seeds.dtype)}.")
        return make_aval(seeds.shape, dtypes.KeyType(impl))

    def host(self, seeds, *, impl):
        if seeds.dtype.itemsize == 8:
            wide = seeds.astype(U64)
            words = (wide >> U64.type(32)) | (wide << U64.type(32))
        else:
            words = seeds.astype(U32).astype(U64) << U64.type(32)
        return joined(np.stack([words, words], -1)) if is_wide(dtypes.KeyType(impl)) else words

    def batch(self, size, args, axes, *, impl):
        return bind(self, args, {"impl": impl}), axes[0]

    def lower(self, em, out, seeds, *, impl):
        wide = make_aval(out.shape, U64)
        thirty_two = em.constant(32, wide)
        if seeds.aval.dtype.itemsize < 8:
            seeds = em.convert(seeds, U32)
        seeds = em.convert(seeds, U64)
        low = em.op("shift_left", wide, seeds, thirty_two)
        high = em.op("shift_right_logical", wide, seeds, thirty_two)
        if is_wide(out.dtype):
            words = em.op("or", wide, low, high)
            return emit_wide(em, words, words, out)
        return em.op("or", out, low, high)


class RandomWrap(_Keys):
    """Typed keys around raw words: uint32[..., 2] becomes key<fry>[...], uint32[..., 4] key<rbg>[...]."""

    def abstract(self, words, *, impl):
        if words.dtype != U32:
            raise TypeError("JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; "
                            f"got dtype={dtypes.dtype_name(words.dtype)}")
        made = dtypes.KeyType(impl)
        if words.shape[-1:] != (made.words,):
            raise TypeError(f"JAX encountered invalid PRNG key data: expected key_data.shape to end with ({made.words},); "
                            f"got shape={words.shape}")
        return make_aval(words.shape[:-1], made)

    def host(self, words, *, impl):
        return np.array(words, order="C").view(dtypes.KeyType(impl).physical).reshape(words.shape[:-1])     # a copy: these are new keys

    def batch(self, size, args, axes, *, impl):
        return bind(self, (move_axis(args[0], axes[0], 0),), {"impl": impl}), 0

    def lower(self, em, out, words, *, impl):
        return emit_wrap(em, words, out) if is_wide(out.dtype) else em.bitcast(words, out)


class RandomUnwrap(_Keys):
    """The raw words of typed keys: key<fry>[...] becomes uint32[..., 2], key<rbg>[...] uint32[..., 4]."""

    def abstract(self, keys):
        _check_key("random_unwrap", keys)
        return make_aval((*keys.shape, keys.dtype.words), U32)

    def host(self, keys):
        return np.ascontiguousarray(keys).reshape((*keys.shape, 1)).view(U32)

    def batch(self, size, args, axes):
        return bind(self, args, {}), axes[0]

    def lower(self, em, out, keys):
        return emit_unwrap(em, keys, out) if is_wide(keys.aval.dtype) else em.bitcast(keys, out)


class RandomSplit(_Keys):
    """New keys of the given shape from each key: the blocks 0, 1, … of its generator."""

    def abstract(self, keys, *, shape, unsafe=False):
        _check_key("random_split", keys, unsafe)
        return make_aval((*keys.shape, *shape), keys.dtype)

    def host(self, keys, *, shape, unsafe=False):
        if is_wide(keys.dtype):
            return host_split(keys, shape, unsafe)
        words = np.empty((*keys.shape, prod(shape), 2), U32)
        words[..., 0], words[..., 1] = counted(keys, prod(shape))
        return words.view(U64).reshape((*keys.shape, *shape))

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), axes[0]

    def lower(self, em, out, keys, *, shape, unsafe=False):
        if is_wide(out.dtype):
            return emit_split(em, out, keys, shape, unsafe)
        first, second = emit_counted(em, keys, prod(shape))
        return em.op("reshape", out, emit_joined(em, first, second, out.dtype))


class RandomFoldIn(_Keys):
    """A new key from a key and 32 bits of data; their shapes broadcast."""

    def abstract(self, keys, data, *, unsafe=False):
        _check_key("random_fold_in", keys, unsafe)
        if data.dtype != U32:
            raise TypeError(f"random_fold_in takes uint32 data, got {dtypes.dtype_name(data.dtype)}.")
        return make_aval(broadcast_shapes_of("random_fold_in", (keys, data)), keys.dtype)

    def host(self, keys, data, *, unsafe=False):
        if is_wide(keys.dtype):
            return host_fold_in(keys, data, unsafe)
        if not keys.ndim and not data.ndim:
            first, second = block(int(keys) & 0xFFFFFFFF, int(keys) >> 32, 0, int(data))
            return np.array(first | second << 32, U64)
        k0, k1 = key_words(keys)
        first, second = blocks(k0, k1, U32.type(0), data)
        words = np.empty((*first.shape, 2), U32)
        words[..., 0], words[..., 1] = first, second
        return words.view(U64).reshape(first.shape)

    def batch(self, size, args, axes, **params):
        args, axis = align(args, axes)
        return bind(self, args, params), axis

    def lower(self, em, out, keys, data, *, unsafe=False):
        if is_wide(out.dtype):
            return emit_fold_in(em, out, keys, data, unsafe)
        counters = make_aval(out.shape, U32)
        if keys.aval.shape not in ((), out.shape):
            keys = em.spread(keys, out.shape)
        if data.aval.shape != out.shape:
            data = em.spread(data, out.shape)
        first, second = emit_blocks(em, *emit_key_words(em, keys), em.constant(0, counters), data,
                                    tuple(range(keys.aval.ndim)))
        return emit_joined(em, first, second, out.dtype)


class RandomClone(_Keys):
    """The same keys, as ones not used before."""

    def abstract(self, keys):
        _check_key("random_clone", keys)
        return keys

    def host(self, keys):
        return keys.copy()

    def batch(self, size, args, axes):
        return bind(self, args, {}), axes[0]

    def lower(self, em, out, keys):
        return keys


class RandomBits(_Keys):
    """Uniform bits; Threefry's are words of both halves of a block, joined by exclusive or below 64 bits."""

    def abstract(self, keys, *, bit_width, shape):
        _check_key("random_bits", keys)
        if bit_width not in _BITS:
            raise TypeError(f"random_bits makes words of 8, 16, 32 or 64 bits, got bit_width={bit_width}.")
        return make_aval((*keys.shape, *shape), _BITS[bit_width])

    def host(self, keys, *, bit_width, shape):
        if is_wide(keys.dtype):
            return host_bits(keys, shape, _BITS[bit_width])
        first, second = counted(keys, prod(shape))
        if bit_width == 64:
            words = (first.astype(U64) << U64.type(32)) | second
        else:
            words = (first ^ second).astype(_BITS[bit_width], copy=False)
        return words.reshape((*keys.shape, *shape))

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), axes[0]

    def lower(self, em, out, keys, *, bit_width, shape):
        if is_wide(keys.aval.dtype):
            return emit_bits(em, out, keys)
        flat = make_aval((*keys.aval.shape, prod(shape)), out.dtype)
        write = partial(_emit_words, em, out=flat)
        if em.platform == "cpu" and _has_short_rows(out.shape):
            # What follows is then a loop over all elements; with the counters in it, a loop over each short row.
            return em.reshape(apart(em, "bits", flat, write, keys), out.shape)
        return em.reshape(write(keys), out.shape)


def _has_short_rows(shape) -> bool:
    """Whether an array is large, and its last axis too short for vectors to pay in loops over it."""
    return all(type(n) is int for n in shape) and len(shape) > 1 and shape[-1] < _SHORT_ROW and prod(shape) >= _LARGE


def _emit_words(em, keys, out):
    """Bits along the last axis of `out`."""
    first, second = emit_counted(em, keys, out.shape[-1])
    if out.dtype == U64:
        return emit_joined(em, second, first, U64)
    return em.convert(em.op("xor", first.aval, first, second), out.dtype)


class Threefry(_Keys):
    """The blocks themselves: keys and counters in, two words out."""

    multiple_results = True

    def abstract(self, k0, k1, x0, x1):
        avals = k0, k1, x0, x1
        if any(a.dtype != U32 for a in avals):
            raise TypeError("Arguments to threefry2x32 must have uint32 type, got "
                            f"{[dtypes.dtype_name(a.dtype) for a in avals]}")
        out = make_aval(broadcast_shapes_of("threefry2x32", avals), U32)
        return [out, out]

    def host(self, *words):
        return list(blocks(*words))

    def batch(self, size, args, axes):
        args, axis = align(args, axes)
        return bind(self, args, {}), [axis, axis]

    def lower(self, em, outs, *words):
        shape = outs[0].shape
        k0, k1, x0, x1 = [w if w.aval.shape == shape else em.spread(w, shape) for w in words]
        return emit_blocks(em, k0, k1, x0, x1, tuple(range(len(shape))))


random_seed_p = RandomSeed("random_seed")
random_wrap_p = RandomWrap("random_wrap")
random_unwrap_p = RandomUnwrap("random_unwrap")
random_split_p = RandomSplit("random_split")
random_fold_in_p = RandomFoldIn("random_fold_in")
random_clone_p = RandomClone("random_clone")
random_bits_p = RandomBits("random_bits")
threefry2x32_p = Threefry("threefry2x32")


def random_seed(seeds, impl: str = "fry"):
    """Typed keys from integer seeds, one per element."""
    return bind(random_seed_p, (as_operand("random_seed", seeds),), {"impl": impl})


def random_wrap(words, impl: str = "fry"):
    """Typed keys around raw words of shape (..., 2)."""
    return bind(random_wrap_p, (as_operand("random_wrap", words),), {"impl": impl})


def random_unwrap(keys):
    """The raw words of typed keys."""
    return bind(random_unwrap_p, (as_operand("random_unwrap", keys),), {})


def random_split(keys, shape):
    """New keys of `shape` from each key."""
    keys = as_operand("random_split", keys)
    return bind(random_split_p, (keys,), {"shape": _shape(shape), **derivation(keys)})


def random_fold_in(keys, data):
    """New keys from keys and uint32 data, elementwise."""
    keys, data = operands("random_fold_in", keys, data)
    return bind(random_fold_in_p, (keys, data), derivation(keys))


def derivation(keys) -> dict:
    """The parameters that tell the primitives that derive keys which generator these are of."""
    return {"unsafe": True} if keys.aval.dtype is dtypes.UNSAFE_KEY else {}


def random_clone(keys):
    """The same keys, as ones not used before."""
    return bind(random_clone_p, (as_operand("random_clone", keys),), {})


def random_bits(keys, bit_width: int, shape):
    """Uniform unsigned integers of `bit_width` bits, of `shape` for each key."""
    return bind(random_bits_p, (as_operand("random_bits", keys),), {"bit_width": bit_width, "shape": _shape(shape)})


def threefry_2x32(keypair, count):
    """The Threefry 2x32 hash of a uint32 array under a raw key of two words; halves of `count` are the two counters.

    Raises:
        TypeError: the key or the counts are not uint32.
    """
    x = as_operand("threefry_2x32", count)
    k0, k1 = _words_of(keypair)
    if x.aval.dtype != U32 or k0.aval.dtype != U32:
        raise TypeError("threefry_2x32 requires uint32 arguments, got "
                        f"{dtypes.dtype_name(k0.aval.dtype)} and {dtypes.dtype_name(x.aval.dtype)}")
    n = x.aval.size
    half = n + n % 2
    flat = reshape(x, (n,))
    flat = pad(flat, np.uint32(0), [(0, n % 2, 0)]) if n % 2 else flat
    parts = [slice_in_dim(flat, i * half // 2, (i + 1) * half // 2) for i in (0, 1)]
    both = concatenate(bind(threefry2x32_p, (k0, k1, *parts), {}), 0)
    return reshape(slice_in_dim(both, 0, n) if n % 2 else both, x.aval.shape)


def _words_of(keypair):
    if isinstance(keypair, (tuple, list)):
        return [as_operand("threefry_2x32", k) for k in keypair]
    pair = as_operand("threefry_2x32", keypair)
    return [reshape(slice_in_dim(pair, i, i + 1), ()) for i in (0, 1)]


def _shape(shape) -> tuple:
    return tuple([n.__index__() if hasattr(n, "__index__") else n for n in shape])


from gradix._ops.indexing.slicing import pad, slice_in_dim  # noqa: E402
from gradix._ops.joining import concatenate  # noqa: E402
from gradix._ops.shape import reshape  # noqa: E402
