"""Generators of random bits: the built-in ones as objects, and those that users define."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from gradix import lax, random as _random
from gradix._api.mapping.vmap import vmap
from gradix._base.listing import own_names as _own_names
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.operators import Array
from gradix._ops.random.generators import GENERATORS, Composed
from gradix._ops.random.random import (
    random_seed as _keys_of_seeds,
    threefry2x32_p as threefry2x32_p,
    threefry_2x32 as threefry_2x32,
)
from gradix.random.keys import define_key_type as _define_key_type, resolve_impl as _resolve_impl

_numbers = itertools.count()
_defined: dict[tuple, PRNGImpl] = {}  # by the arguments of `define_prng_impl`


class PRNGImpl(NamedTuple):
    """A generator of random bits: the shape of a raw key, and functions of one raw key.

    A raw key is an array of dtype uint32. The functions are

    - `seed(seed) -> key`, where `seed` is an integer scalar;
    - `split(key, shape) -> keys`, of shape `(*shape, *key_shape)`;
    - `random_bits(key, bit_width, shape) -> bits`, unsigned integers of 8, 16, 32 or 64 bits;
    - `fold_in(key, data) -> key`, where `data` is a uint32 scalar.

    Example:
        >>> import math
        >>> import gradix.numpy as jnp
        >>> from gradix import random
        >>> from gradix.extend.random import define_prng_impl
        >>> def split(key, shape):
        ...     return key + jnp.arange(1, 1 + math.prod(shape), dtype="uint32").reshape(*shape, 1)
        >>> impl = define_prng_impl(
        ...     key_shape=(1,),
        ...     seed=lambda seed: jnp.asarray(seed, "uint32")[None],
        ...     split=split,
        ...     random_bits=lambda key, width, shape: jnp.broadcast_to(key, shape).astype(f"uint{width}"),
        ...     fold_in=lambda key, data: key ^ data,
        ...     name="counting",
        ... )
        >>> impl, random.bits(random.key(7, impl=impl), (2,))
        (PRNGImpl(name='counting', tag='?', key_shape=(1,)), Array([7, 7], dtype=uint32))
    """

    key_shape: tuple[int, ...]
    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable
    name: str = "<unnamed>"
    tag: str = "?"
    key_dtype: Any = None

    def __repr__(self) -> str:
        return f"PRNGImpl(name={self.name!r}, tag={self.tag!r}, key_shape={self.key_shape})"

    def __hash__(self) -> int:
        return hash(self.key_dtype)

    def __eq__(self, other) -> bool:
        return type(other) is PRNGImpl and self.key_dtype == other.key_dtype

    def __ne__(self, other) -> bool:
        return not self == other


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Array], Array],
    split: Callable[[Array, tuple[int, ...]], Array],
    random_bits: Callable[[Array, int, tuple[int, ...]], Array],
    fold_in: Callable[[Array, int], Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGImpl:
    """A generator of random bits defined by functions, which `random.key` takes as `impl`.

    All samplers accept its keys. The same arguments give the same generator.

    Args:
        key_shape: the shape of a raw key, which has 1 to 4 elements of dtype uint32.
        seed: a function of an integer scalar that returns a raw key.
        split: a function of a raw key and a shape that returns raw keys, of shape
            `(*shape, *key_shape)`.
        random_bits: a function of a raw key, a bit width and a shape that returns unsigned integers
            of that width and shape.
        fold_in: a function of a raw key and a uint32 scalar that returns a raw key.
        name: the name of the generator, for messages.
        tag: the name in the dtype of its keys, `key<tag>`.

    Raises:
        ValueError: a key has more than four elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import random
        >>> word = lambda key, n: key * jnp.uint32(747796405) + jnp.asarray(n, "uint32") * jnp.uint32(2891336453)
        >>> def draw(key, width, shape):
        ...     n = jnp.arange(jnp.prod(jnp.array(shape)).item() if shape else 1, dtype="uint32")
        ...     return word(key, n).reshape(shape).astype(f"uint{width}")
        >>> lcg = define_prng_impl(
        ...     key_shape=(1,), seed=lambda s: word(jnp.ones(1, "uint32"), s), fold_in=word, random_bits=draw,
        ...     name="lcg", tag="lcg",
        ...     split=lambda key, shape: draw(key, 32, (*shape, 1)))
        >>> random.key(3, impl=lcg).dtype
        key<lcg>
        >>> random.uniform(random.key(3, impl=lcg), (2,)).shape
        (2,)
    """
    key_shape = tuple(key_shape)
    given = key_shape, seed, split, random_bits, fold_in, name, tag
    if given in _defined:
        return _defined[given]
    made = dtypes.KeyType.define(f"{name}#{next(_numbers)}", tag, key_shape)
    GENERATORS[made._impl] = Composed(
        _many(seed, key_shape, 0),
        _many(split, key_shape, 1),
        _many(random_bits, key_shape, 1),
        _many(fold_in, key_shape, 2),
    )
    impl = _defined[given] = PRNGImpl(*given, made)
    _define_key_type(made, impl)
    return impl


def _many(function: Callable, key_shape: tuple[int, ...], mapped: int) -> Callable:
    """A function of one raw key, mapped over arrays of them.

    The first `mapped` arguments are mapped, of which the first is a raw key. If `mapped` is 0, the
    only argument is a seed, which is mapped.
    """
    trailing = [key_shape, ()] if mapped else [()]
    count = max(mapped, 1)

    def mapping(*args):
        given, rest = [as_array(x) for x in args[:count]], args[count:]
        own = trailing[0]
        shape = given[0].shape[: given[0].ndim - len(own)]
        if not shape:
            return function(*given, *rest)
        flat = [lax.reshape(x, (math.prod(shape), *t)) for x, t in zip(given, trailing)]
        out = vmap(lambda *xs: function(*xs, *rest))(*flat)
        return lax.reshape(out, (*shape, *out.shape[1:]))

    return mapping


def random_seed(seeds: Any, impl: Any) -> Array:
    """Typed keys of integer seeds, of the shape of `seeds`.

    Args:
        seeds: an array of integers.
        impl: a generator, or its name.

    Example:
        >>> random_seed(3, threefry_prng_impl).dtype
        key<fry>
    """
    return _keys_of_seeds(seeds, _resolve_impl(impl)._impl)


def seed_with_impl(impl: Any, seed: Any) -> Array:
    """A typed key of an integer seed, for a generator or its name.

    Example:
        >>> seed_with_impl(rbg_prng_impl, 3).dtype
        key<rbg>
    """
    return random_seed(seed, impl)


def _built_in(name: str) -> PRNGImpl:
    made = dtypes.KEYS[name]

    def typed(key):
        return _random.wrap_key_data(key, dtype=made)

    return PRNGImpl(
        made.key_shape,
        lambda seed: _random.key_data(_random.key(seed, dtype=made)),
        lambda key, shape: _random.key_data(_random.split(typed(key), shape)),
        lambda key, width, shape: _random.bits(typed(key), shape, f"uint{width}"),
        lambda key, data: _random.key_data(_random.fold_in(typed(key), data)),
        name,
        made._impl,
        made,
    )


threefry_prng_impl = _built_in("threefry2x32")
rbg_prng_impl = _built_in("rbg")
unsafe_rbg_prng_impl = _built_in("unsafe_rbg")


__dir__ = _own_names(
    __name__, "rbg_prng_impl", "threefry2x32_p", "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl"
)
