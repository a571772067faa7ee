"""Random keys and bits: random_seed, random_wrap, random_split, random_fold_in, random_bits."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import entries
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_to, move_axis
from gradix._ops.families import NonDifferentiable, align, broadcast_shapes_of
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.joining import concatenate
from gradix._ops.operands import as_operand, operands
from gradix._ops.random.generators import BY_HALVES, GENERATORS, Composed, is_composed, parameter_of
from gradix._ops.random.storage import U32, U64, emit_slice, emit_unwrap, emit_wrap, keys_of, words_of
from gradix._ops.random.threefry import blocks, emit_blocks
from gradix._ops.shape import reshape

_BITS: dict[int, np.dtype] = {8: np.dtype("uint8"), 16: np.dtype("uint16"), 32: U32, 64: U64}


def _check_key(name: str, aval, impl: str | None = None) -> None:
    if not isinstance(aval.dtype, dtypes.KeyType):
        raise TypeError(
            f"{name} takes typed random keys, got an array of dtype {dtypes.dtype_name(aval.dtype)} and "
            f"shape {aval.shape}. Make one with random.key(seed), or from raw uint32 words with "
            "random.wrap_key_data(raw)."
        )
    if impl not in (None, aval.dtype._impl, BY_HALVES.get(aval.dtype._impl)):
        raise TypeError(
            f"{name} of {aval.dtype} has the parameter impl={impl!r}; lax.{name} sets it to {aval.dtype._impl!r}."
        )


class _Keys(NonDifferentiable, Primitive):
    """Base of the primitives that make or use keys; results have no derivative.

    Keys of all generators are stored alike: the parameter `impl` says to host rules which generator
    a key is of.
    """

    def show(self, params):
        return {k: v for k, v in params.items() if k != "impl"}

    def divide(self, mesh, avals, outs, params):
        row = entries(avals[0])[: outs[0].ndim]
        return [(*row, *[None] * (outs[0].ndim - len(row)))]


class RandomSeed(_Keys):
    """Keys from integer seeds: the seed's high word first, zero for seeds of 32 bits and fewer."""

    def abstract(self, seeds, *, impl):
        if seeds.dtype not in dtypes.INTEGER:
            raise TypeError(f"PRNG key seed must be an integer; got dtype {dtypes.dtype_name(seeds.dtype)}.")
        return make_aval(seeds.shape, dtypes.KeyType(impl))

    def show(self, params):
        return params

    def host(self, seeds, *, impl):
        return GENERATORS[impl].host_seed(seeds)

    def batch(self, size, args, axes, *, impl):
        return bind(self, args, {"impl": impl}), axes[0]

    def lower(self, em, out, seeds, *, impl):
        return GENERATORS[impl].emit_seed(em, out, seeds)


class RandomWrap(_Keys):
    """Typed keys of words: uint32[..., 2] becomes key<fry>[...], uint32[..., 4] key<rbg>[...]."""

    def show(self, params):
        return params

    def abstract(self, words, *, impl):
        if words.dtype != U32:
            raise TypeError(
                "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; "
                f"got dtype={dtypes.dtype_name(words.dtype)}"
            )
        made = dtypes.KeyType(impl)
        n = len(made.key_shape)
        if words.shape[-n:] != made.key_shape:
            raise TypeError(
                "JAX encountered invalid PRNG key data: expected key_data.shape to end with "
                f"{made.key_shape}; got shape={words.shape}"
            )
        return make_aval(words.shape[:-n], made)

    def host(self, words, *, impl):
        made = dtypes.KeyType(impl)
        flat = np.array(words, order="C").reshape((*words.shape[: words.ndim - len(made.key_shape)], made.words))
        unused = made.itemsize // 4 - made.words
        if unused:
            flat = np.concatenate([flat, np.zeros((*flat.shape[:-1], unused), U32)], -1)
        return keys_of(flat, made.physical)  # a copy, as these are new keys

    def batch(self, size, args, axes, *, impl):
        return bind(self, (move_axis(args[0], axes[0], 0),), {"impl": impl}), 0

    def lower(self, em, out, words, *, impl):
        made = out.dtype
        if len(made.key_shape) > 1:
            words = em.reshape(words, (*out.shape, made.words))
        if made.itemsize // 4 != made.words:
            zeros = em.constant(0, make_aval((*out.shape, made.itemsize // 4 - made.words), U32))
            whole = make_aval((*out.shape, made.itemsize // 4), U32)
            words = em.concatenate([words, zeros], out.ndim, whole)
        return emit_wrap(em, words, out)


class RandomUnwrap(_Keys):
    """The words of keys: key<fry>[...] becomes uint32[..., 2], key<rbg>[...] uint32[..., 4]."""

    def abstract(self, keys, *, impl="fry"):
        _check_key("random_unwrap", keys)
        return make_aval((*keys.shape, *keys.dtype.key_shape), U32)

    def host(self, keys, *, impl="fry"):
        if impl == "fry":
            return words_of(keys)
        made = dtypes.KeyType(impl)
        return words_of(keys)[..., : made.words].reshape((*keys.shape, *made.key_shape))

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), axes[0]

    def lower(self, em, out, keys, *, impl="fry"):
        if impl == "fry":
            return emit_unwrap(em, keys, out)
        made = dtypes.KeyType(impl)
        stored = make_aval((*keys.aval.shape, made.itemsize // 4), U32)
        words = emit_unwrap(em, keys, stored)
        if stored.shape[-1] != made.words:
            words = emit_slice(em, words, 0, made.words)
        return words if words.aval.shape == out.shape else em.reshape(words, out.shape)


class RandomSplit(_Keys):
    """New keys of the given shape from each key: the blocks 0, 1, … of its generator."""

    consumes_keys = True

    def abstract(self, keys, *, shape, impl="fry"):
        _check_key("random_split", keys, impl)
        return make_aval((*keys.shape, *shape), keys.dtype)

    def host(self, keys, *, shape, impl="fry"):
        return GENERATORS[impl].host_split(keys, shape)

    def batch(self, size, args, axes, **params):
        # rbg draws for arrays of keys in their order
        return move_axis(bind(self, args, params), axes[0], 0), 0

    def lower(self, em, out, keys, *, shape, impl="fry"):
        return GENERATORS[impl].emit_split(em, out, keys, shape)


class RandomFoldIn(_Keys):
    """A new key from a key and 32 bits of data; their shapes broadcast."""

    def abstract(self, keys, data, *, impl="fry"):
        _check_key("random_fold_in", keys, impl)
        if data.dtype != U32:
            raise TypeError(f"random_fold_in takes uint32 data, got {dtypes.dtype_name(data.dtype)}.")
        return make_aval(broadcast_shapes_of("random_fold_in", (keys, data)), keys.dtype)

    def host(self, keys, data, *, impl="fry"):
        return GENERATORS[impl].host_fold_in(keys, data)

    def batch(self, size, args, axes, **params):
        args, axis = align(args, axes)
        return bind(self, args, params), axis

    def lower(self, em, out, keys, data, *, impl="fry"):
        return GENERATORS[impl].emit_fold_in(em, out, keys, data)


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
    """Uniform bits, as the generator draws them."""

    consumes_keys = True

    def abstract(self, keys, *, bit_width, shape, impl="fry"):
        _check_key("random_bits", keys, impl)
        if bit_width not in _BITS:
            raise TypeError(f"random_bits makes words of 8, 16, 32 or 64 bits, got bit_width={bit_width}.")
        return make_aval((*keys.shape, *shape), _BITS[bit_width])

    def host(self, keys, *, bit_width, shape, impl="fry"):
        return GENERATORS[impl].host_bits(keys, shape, _BITS[bit_width])

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), axes[0]

    def lower(self, em, out, keys, *, bit_width, shape, impl="fry"):
        generator = GENERATORS[impl]
        if generator.together:
            return generator.emit_bits(em, out, keys)
        flat = make_aval((*keys.aval.shape, prod(shape)), out.dtype)
        return em.reshape(generator.emit_bits(em, flat, keys), out.shape)


class Threefry(_Keys):
    """The block function: it maps keys and counters to two words."""

    multiple_results = True

    def abstract(self, k0, k1, x0, x1):
        avals = k0, k1, x0, x1
        if any(a.dtype != U32 for a in avals):
            raise TypeError(
                f"Arguments to threefry2x32 must have uint32 type, got {[dtypes.dtype_name(a.dtype) for a in avals]}"
            )
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


class _ByFunctions:
    """Mixin: the primitive calls the functions of a user's generator, in the current trace."""

    host: Any = None
    lower: Any = None
    run: Any = lambda self, args, params: self.expand(*args, **params)


class ComposedSeed(_ByFunctions, RandomSeed):
    """Keys from seeds by a user's function."""

    def expand(self, seeds, *, impl):
        return random_wrap(GENERATORS[impl].seed(seeds), impl)


class ComposedSplit(_ByFunctions, RandomSplit):
    """New keys by a user's function."""

    def expand(self, keys, *, shape, impl):
        return random_wrap(GENERATORS[impl].split(random_unwrap(keys), shape), impl)


class ComposedFoldIn(_ByFunctions, RandomFoldIn):
    """Keys and data by a user's function."""

    def expand(self, keys, data, *, impl):
        shape = broadcast_shapes_of("random_fold_in", (keys.aval, data.aval))
        keys, data = [broadcast_to(x, shape) for x in (keys, data)]
        return random_wrap(GENERATORS[impl].fold_in(random_unwrap(keys), data), impl)


class ComposedBits(_ByFunctions, RandomBits):
    """Bits by a user's function."""

    def expand(self, keys, *, bit_width, shape, impl):
        return GENERATORS[impl].random_bits(random_unwrap(keys), bit_width, shape)


random_seed_p = RandomSeed("random_seed")
composed_seed_p, composed_split_p = ComposedSeed("random_seed"), ComposedSplit("random_split")
composed_fold_in_p, composed_bits_p = ComposedFoldIn("random_fold_in"), ComposedBits("random_bits")
random_wrap_p = RandomWrap("random_wrap")
random_unwrap_p = RandomUnwrap("random_unwrap")
random_split_p = RandomSplit("random_split")
random_fold_in_p = RandomFoldIn("random_fold_in")
random_clone_p = RandomClone("random_clone")
random_bits_p = RandomBits("random_bits")
threefry2x32_p = Threefry("threefry2x32")


def random_seed(seeds, impl: str = "fry"):
    """Typed keys from integer seeds, one per element."""
    prim = composed_seed_p if isinstance(GENERATORS.get(impl), Composed) else random_seed_p
    return bind(prim, (as_operand("random_seed", seeds),), {"impl": impl})


def random_wrap(words, impl: str = "fry"):
    """Typed keys around raw words along a last axis."""
    return bind(random_wrap_p, (as_operand("random_wrap", words),), {"impl": impl})


def random_unwrap(keys):
    """The raw words of typed keys."""
    keys = as_operand("random_unwrap", keys)
    impl = getattr(keys.aval.dtype, "_impl", "fry")
    return bind(random_unwrap_p, (keys,), {"impl": impl} if _is_of_user(keys) else {})


def random_split(keys, shape):
    """New keys of `shape` from each key."""
    keys = as_operand("random_split", keys)
    return bind(_of(keys, random_split_p, composed_split_p), (keys,), {"shape": _shape(shape), **generator_of(keys)})


def random_fold_in(keys, data):
    """New keys from keys and uint32 data, elementwise."""
    keys, data = operands("random_fold_in", keys, data)
    return bind(_of(keys, random_fold_in_p, composed_fold_in_p), (keys, data), generator_of(keys))


def _is_of_user(keys) -> bool:
    return isinstance(keys.aval.dtype, dtypes.KeyType) and is_composed(keys.aval.dtype)


def _of(keys, usual, composed):
    """The primitive for these keys: `composed` for a generator of a user, else `usual`."""
    return composed if _is_of_user(keys) else usual


def generator_of(keys) -> dict:
    """The parameter `impl`, which names the generator of these keys for primitives."""
    impl = parameter_of(keys.aval.dtype)
    return {} if impl == "fry" else {"impl": impl}


def random_clone(keys):
    """The same keys, as ones not used before."""
    return bind(random_clone_p, (as_operand("random_clone", keys),), {})


def random_bits(keys, bit_width: int, shape):
    """Uniform unsigned integers of `bit_width` bits, of `shape` for each key."""
    keys = as_operand("random_bits", keys)
    return bind(
        _of(keys, random_bits_p, composed_bits_p),
        (keys,),
        {"bit_width": bit_width, "shape": _shape(shape), **generator_of(keys)},
    )


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The Threefry 2x32 hash of a uint32 array, whose halves are the counters, by a raw key.

    Raises:
        TypeError: the key or the counts are not uint32.

    Example:
        >>> import numpy as np
        >>> from gradix.extend import random
        >>> random.threefry_2x32(np.array([0, 42], "uint32"), np.arange(2, dtype="uint32")).dtype
        dtype('uint32')
    """
    x = as_operand("threefry_2x32", count)
    k0, k1 = _words_of(keypair)
    if x.aval.dtype != U32 or k0.aval.dtype != U32:
        raise TypeError(
            "threefry_2x32 requires uint32 arguments, got "
            f"{dtypes.dtype_name(k0.aval.dtype)} and {dtypes.dtype_name(x.aval.dtype)}"
        )
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
