"""Random keys, which are made from seeds, split, and derived from others."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._api.jit.jit import jit
from gradix._base import config
from gradix._base.bounded import BoundedCache
from gradix._base.errors import class_of
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, scalar_array
from gradix._core.aval import make_aval
from gradix._core.key_flow import accounted, is_accounted
from gradix._core.key_use import consume
from gradix._core.operators import Array
from gradix._core.trace import Tracer, state
from gradix._ops.arithmetic import add
from gradix._ops.canonicalization import canonical_shape
from gradix._ops.convert import convert
from gradix._ops.random import random as _random
from gradix._ops.random.storage import U32, U64
from gradix.random.draws import is_frequent, size_of

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, KeyLike

KEY = dtypes.KEY
_SCALAR_KEY, _WORDS = make_aval((), KEY), make_aval((2,), U32)
_IMPLS = {made: name for name, made in dtypes.KEYS.items()}
_MANY = 1 << 9  # So many keys or more are made by a compiled program, if often.
_options = config.state


# -- keys as arguments -----------------------------------------------------------------------------


def take_key(name: str, key) -> Array:
    """The single key that a sampler was given, as a typed one; the sampler consumes it.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` is an array of keys.
    """
    if type(key) is not ArrayImpl or key.aval is not _SCALAR_KEY:
        key = single_key(name, key)[0]
    if _options.jax_debug_key_reuse:
        consume_eagerly(name, key)
    return key


def consume_eagerly(name: str, key: Array) -> None:
    """Mark a concrete key as used; uses in a program are found in its jaxpr."""
    while hasattr(key, "val"):  # These are the keys that vmap maps.
        key = key.val
    if type(key) is ArrayImpl and state.stage is None and not is_accounted():
        consume(name, key.host)


def single_key(name: str, key) -> tuple[Array, bool]:
    """A single key as a typed one, and whether it was given as raw words."""
    keys, raw = typed_keys(name, key)
    if keys.aval.shape:
        shape = (*keys.aval.shape, *keys.aval.dtype.key_shape) if raw else keys.aval.shape
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {shape} != (). Use "
            f"gradix.vmap for batching: vmap(lambda k: {name}(k, ...))(keys). Or take one of them, "
            "keys[0]."
        )
    return keys, raw


def typed_keys(name: str, keys) -> tuple[Array, bool]:
    """Keys as a typed array, and whether they were given as raw words."""
    if (
        type(keys) is ArrayImpl
        and keys.aval is _WORDS
        and state.stage is None
        and _options.jax_legacy_prng_key == "allow"
        and _options.jax_default_prng_impl == "threefry2x32"
    ):
        return ArrayImpl(keys.host.copy().view(U64).reshape(()), _SCALAR_KEY), True
    if isinstance(keys, Array) and isinstance(keys.aval.dtype, dtypes.KeyType):
        return keys, False
    if not isinstance(keys, (Array, np.ndarray)) and not hasattr(keys, "__jax_array__"):
        raise TypeError(_no_key(name, keys))
    words = as_array(keys)
    if isinstance(words.aval.dtype, dtypes.KeyType):
        return words, False
    made = resolve_impl(None)
    if words.aval.dtype != U32 or words.aval.shape[-len(made.key_shape) :] != made.key_shape:
        raise TypeError(_not_words(name, words.aval, made))
    if _options.jax_legacy_prng_key != "allow":
        _refuse_raw(name)
    return _random.random_wrap(words, made._impl), True


def _no_key(name: str, key) -> str:
    seed = key if isinstance(key, (int, np.integer)) else "seed"
    what = f"the Python number {key!r}" if isinstance(key, (int, float)) else f"{key!r} of type {class_of(key)}"
    return (
        f"{name} takes a random key, got {what}: unexpected PRNG key type {class_of(key)}. Make a key "
        f"from a seed: key = gradix.random.key({seed}), then {name}(key, ...)."
    )


def _not_words(name: str, aval, made: dtypes.KeyType) -> str:
    dtype = dtypes.dtype_name(aval.dtype)
    wrong = (
        f"expected key_data.dtype = uint32; got dtype={dtype}"
        if aval.dtype != U32
        else f"expected key_data.shape to end with {made.key_shape}; got shape={aval.shape} for impl={_impl_of(made)!r}"
    )
    other = (
        ""
        if aval.dtype != U32 or aval.shape[-1:] not in ((1,), (2,), (4,))
        else (
            " Raw keys are taken for those of the generator that the option jax_default_prng_impl "
            "names; random.wrap_key_data(words, impl=...) names another one."
        )
    )
    return (
        f"{name} encountered invalid PRNG key data: {wrong}. A random key is "
        f"gradix.random.key(seed), of dtype {made}, or gradix.random.PRNGKey(seed), of dtype "
        f"uint32 and shape ({made.words},).{other}"
    )


def _refuse_raw(name: str) -> None:
    text = (
        f"{name} was given a raw uint32 key, and jax_legacy_prng_key is "
        f"{_options.jax_legacy_prng_key!r}. Make typed keys with gradix.random.key(seed), or wrap "
        "raw words with gradix.random.wrap_key_data."
    )
    if _options.jax_legacy_prng_key == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=5)


def _as_given(keys: Array, raw: bool) -> Array:
    return _random.random_unwrap(keys) if raw else keys


# -- making keys -----------------------------------------------------------------------------------


def key(seed: ArrayLike, *, impl: Hashable = None, dtype: Any = None) -> Array:
    """A typed random key from an integer seed; a scalar of dtype `key<fry>`, or by generator.

    Args:
        seed: an integer; only its low 32 bits count unless 64-bit integers are enabled. The option
            `jax_random_seed_offset` is added to it.
        impl: the name of the generator. "threefry2x32" (the default), "threefry4x32", "philox2x32"
            and "philox4x32" draw with each key on its own (Salmon et al. 2011). "rbg" is XLA's own
            generator, which draws large arrays faster; "unsafe_rbg" also splits keys with it.
        dtype: the dtype of the key, instead of `impl`.

    Raises:
        TypeError: the seed is not an integer, or is an array with axes.
        ValueError: the generator is unknown, or `impl` and `dtype` are both given.
        OverflowError: the seed has more than 64 bits.

    Example:
        >>> from gradix import random
        >>> random.uniform(random.key(42))
        Array(0.48870957, dtype=float32)
        >>> random.key(42, impl="philox4x32").dtype
        key<phx4>
    """
    if dtype is not None:
        if impl is not None:
            raise ValueError(f"key: impl and dtype exclude each other, got {impl!r} and {dtype}. Give one.")
        impl = dtype
    return _random.random_seed(_seed("key", seed), resolve_impl(impl)._impl)


def PRNGKey(seed: ArrayLike, *, impl: Hashable = None) -> Array:
    """A raw random key from an integer seed, a uint32 vector; typed keys of `key` are safer.

    It has two elements, but one with `impl` "philox2x32", and four with "threefry4x32", "rbg" and
    "unsafe_rbg". Draws take raw keys for those of the default generator.

    Raises:
        TypeError: the seed is not an integer, or is an array with axes.
        ValueError: the generator is unknown.

    Example:
        >>> from gradix import random
        >>> random.PRNGKey(42)
        Array([ 0, 42], dtype=uint32)
        >>> random.normal(random.PRNGKey(42)) == random.normal(random.key(42))
        Array(True, dtype=bool)

    See also:
        `random.key`, `random.split`, `random.wrap_key_data`.
    """
    made = _random.random_seed(_seed("PRNGKey", seed), resolve_impl(impl)._impl)
    return made if _options.jax_enable_custom_prng else _random.random_unwrap(made)


def _seed(name: str, seed) -> Array:
    offset = _options.jax_random_seed_offset
    if isinstance(seed, (bool, int)):
        return _python_seed(int(seed) + offset)
    if isinstance(seed, Array) and isinstance(seed.aval.dtype, dtypes.KeyType):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key. Use that key.")
    try:
        x = as_array(seed)
    except TypeError as e:
        raise TypeError(f"PRNG key seed must be an integer. {e}") from None
    if x.aval.shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {x.aval.shape} != (). "
            f"Use gradix.vmap for batching: vmap(gradix.random.{name})(seeds)."
        )
    if x.aval.dtype not in dtypes.INTEGER:
        raise TypeError(
            f"PRNG key seed must be an integer; got {seed!r} of dtype "
            f"{dtypes.dtype_name(x.aval.dtype)}. Write gradix.random.{name}(int(seed))."
        )
    return add(x, _wrapped(offset, x.aval.dtype)) if offset else x


def _wrapped(n: int, dtype) -> ArrayImpl:
    """An integer modulo the range of a dtype."""
    bits, least = 8 * dtype.itemsize, int(dtypes.iinfo(dtype).min)
    return scalar_array((n - least) % (1 << bits) + least, dtype, False)


def _python_seed(seed: int) -> ArrayImpl:
    if not -1 << 63 <= seed < 1 << 63:
        raise OverflowError(
            f"Python int too large to convert to a seed: {seed} has more than 64 bits. Seeds are "
            "integers of 32 bits, or 64 with jax_enable_x64. Take seed % 2**32."
        )
    return _wrapped(seed, dtypes.python_scalar_dtype(int))


def resolve_impl(impl) -> dtypes.KeyType:
    """The key dtype of a generator, which is given by its name or by a key dtype."""
    spec = _options.jax_default_prng_impl if impl is None else impl
    if isinstance(spec, dtypes.KeyType):
        return spec
    found = dtypes.KEYS.get(spec) if isinstance(spec, str) else getattr(spec, "key_dtype", None)
    if found is None:
        raise (ValueError if isinstance(spec, str) else TypeError)(
            f"unrecognized PRNG implementation {spec!r}. Did you mean one of: {', '.join(map(repr, dtypes.KEYS))}?"
        )
    return found


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of the keys of a generator; None is the default generator.

    Example:
        >>> from gradix import random
        >>> random.key_dtype()
        key<fry>
    """
    return resolve_impl(impl_spec)


# -- the parts of keys -----------------------------------------------------------------------------


def key_data(keys: Array) -> Array:
    """The 32-bit words of keys, as uint32 along a new last axis: two, or one or four by generator.

    Example:
        >>> from gradix import random
        >>> random.key_data(random.key(7))
        Array([0, 7], dtype=uint32)
    """
    typed, _ = typed_keys("key_data", keys)
    return _random.random_unwrap(typed)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: Hashable = None, dtype: Any = None) -> Array:
    """Typed keys made of raw words.

    Args:
        key_bits_array: a uint32 array of shape (..., n) for the n words of the generator's keys.
        impl: the name of the generator, as for `key`; by default that of the option
            `jax_default_prng_impl`.
        dtype: the dtype of the keys, instead of `impl`.

    Returns:
        An array of keys, of shape (...).

    Raises:
        TypeError: the words are not uint32, or the generator's keys have another number of them.
        ValueError: both `impl` and `dtype` are given, or no generator has this name.

    Example:
        >>> from gradix import random
        >>> random.wrap_key_data(random.PRNGKey(7)).dtype
        key<fry>
    """
    if impl is not None and dtype is not None:
        raise ValueError(f"wrap_key_data: give impl or dtype, but not both, got impl={impl!r} and dtype={dtype!r}.")
    made = resolve_impl(dtype if impl is None else impl)
    words = as_array(key_bits_array)
    if (
        isinstance(words.aval.dtype, dtypes.KeyType)
        or words.aval.dtype != U32
        or words.aval.shape[-len(made.key_shape) :] != made.key_shape
    ):
        raise TypeError(_not_words("wrap_key_data", words.aval, made))
    return _random.random_wrap(words, made._impl)


def key_impl(keys: Array) -> str:
    """The name of the generator of keys, or for a user's own what `define_prng_impl` was given.

    Example:
        >>> from gradix import random
        >>> random.key_impl(random.key(0))
        'threefry2x32'
    """
    return _impl_of(typed_keys("key_impl", keys)[0].aval.dtype)


def _impl_of(made: dtypes.KeyType):
    return _IMPLS.get(made) or _defined[made]


# The values are what names the users' generators, by the dtypes of their keys.
_defined: dict[dtypes.KeyType, Any] = {}


def define_key_type(made: dtypes.KeyType, impl: Any) -> None:
    """Let `impl`, a hashable object, name the generator whose keys have the dtype `made`."""
    _defined[made] = impl


# -- deriving keys ---------------------------------------------------------------------------------


def split(key: KeyLike, num: int | tuple[int, ...] = 2) -> Array:
    """New, independent keys made of one key, which should not be used again.

    Args:
        key: a key, typed or raw.
        num: the number of keys, or the shape of the array of keys.

    Returns:
        An array of typed or raw keys, as `key` is, of shape `(num,)` or `num`; raw keys have one
        more axis, for their words.

    Raises:
        ValueError: `num` is negative, or `key` is an array of keys.
        TypeError: `key` is not a random key, or `num` not an integer.

    Example:
        >>> from gradix import random
        >>> key, subkey = random.split(random.key(0))
        >>> random.normal(subkey)
        Array(-2.4424558, dtype=float32)
        >>> random.split(random.key(0), (2, 3)).shape
        (2, 3)

    See also:
        `random.fold_in`, which makes a key of a key and a number; `random.key`, `random.clone`.
    """
    keys, raw = single_key("split", key)
    if _options.jax_debug_key_reuse:
        consume_eagerly("split", keys)
    shape = (num,) if type(num) is int else num if type(num) is tuple else _split_shape(num)
    for n in shape:
        if type(n) is int and n < 0:
            raise ValueError(f"split: num must not be negative, got {num}.")
    if (
        state.stage is None
        and type(keys) is ArrayImpl
        and size_of(shape) >= _MANY
        and is_frequent(_counts, (), shape, {})
    ):
        return _as_given(accounted(_split_compiled, keys, shape), raw)
    return _as_given(accounted(_random.random_split, keys, shape), raw)


_counts: BoundedCache[tuple, int] = BoundedCache(4096)
_split_compiled = jit(_random.random_split, static_argnums=1)


def _split_shape(num) -> tuple:
    if isinstance(num, float):
        raise TypeError(f"'float' object cannot be interpreted as an integer: split got num={num}.")
    return canonical_shape(num, "num")


def fold_in(key: KeyLike, data: ArrayLike) -> Array:
    """A new key made of a key and an integer, such as the number of a step, a layer or a device.

    Args:
        key: a key, typed or raw.
        data: an integer of 32 bits, which may be traced.

    Returns:
        A typed or raw key, as `key` is.

    Raises:
        TypeError: `data` has axes, or `key` is not a random key.
        OverflowError: `data` does not fit uint32.

    Example:
        >>> from gradix import random
        >>> keys = [random.fold_in(random.key(0), step) for step in range(3)]
    """
    keys, raw = single_key("fold_in", key)
    return _as_given(_random.random_fold_in(keys, _fold_data(data)), raw)


def _fold_data(data) -> Array:
    if type(data) is int:
        if not 0 <= data < 1 << 32:
            raise OverflowError(
                f"Python integer {data} out of bounds for uint32: fold_in takes 32 bits of data. Take data % 2**32."
            )
        return scalar_array(data, U32, False)
    x: Any = data if isinstance(data, Tracer) else as_array(data)
    if x.aval.shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {x.aval.shape} != (). Use "
            "gradix.vmap for batching: vmap(gradix.random.fold_in, (None, 0))(key, data)."
        )
    return convert(x, U32)


def clone(key: KeyLike) -> Array:
    """The same key, which may be used once more on purpose where the reuse of keys is checked.

    Example:
        >>> from gradix import random
        >>> key = random.key(0)
        >>> bool(random.uniform(key) == random.uniform(random.clone(key)))
        True
    """
    x = as_array(key)
    return _random.random_clone(x) if isinstance(x.aval.dtype, dtypes.KeyType) else x
