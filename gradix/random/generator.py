"""Generators with a state, for scripts; the transformations make the state explicit."""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix import lax
from gradix._base.tree import register_pytree_node
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.checks import trace_state_clean
from gradix._core.operators import Array
from gradix._core.refs import AbstractRef, ForkedKind, Ref
from gradix._ops.random import random as _random
from gradix.random import continuous, counts, discrete, floats, gammas, integers, keys, permutations, truncated, vectors

_U32 = np.dtype("uint32")


class _KeyAndCount(ForkedKind):
    """The kind of a ref that holds the words of a key, and then how many keys were made of it."""

    __slots__ = ("impl",)

    def __init__(self, impl: dtypes.KeyType):
        self.impl = impl

    def __eq__(self, other) -> bool:
        return type(other) is _KeyAndCount and self.impl == other.impl

    def __hash__(self) -> int:
        return hash((_KeyAndCount, self.impl))

    def next_key(self, ref: Ref) -> Array:
        """A key that was never made before."""
        state = ref.read()
        words = self.impl.words
        if state.ndim > 1:
            raise ValueError(
                f"This generator holds states of shape {state.shape[:-1]}, made by split. Pass it "
                "to a function under vmap, which sees one of them at a time."
            )
        base = lax.slice_in_dim(state, 0, words)
        count = lax.slice_in_dim(state, words, words + 1)
        key = _random.random_fold_in(_random.random_wrap(base, self.impl._impl), lax.reshape(count, ()))
        ref.write(lax.concatenate([base, lax.add(count, np.ones(1, _U32))], 0))
        return key

    def states(self, made: Array) -> Array:
        """The states of generators that start with the keys `made`."""
        data = _random.random_unwrap(made)
        return lax.concatenate([data, lax.full((*made.shape, 1), 0, _U32)], made.ndim)

    def fork(self, ref: Ref, size: int):
        return self.states(_random.random_split(self.next_key(ref), (size,)))


def _new_state(made: Array, count: Any = None) -> Ref:
    kind = _KeyAndCount(made.dtype)
    value = kind.states(made)
    if count is not None:
        count = lax.convert_element_type(as_array(count), _U32)
        count = lax.broadcast_in_dim(count, (*made.shape, 1), tuple(range(count.ndim)))
        value = lax.concatenate([_random.random_unwrap(made), count], made.ndim)
    return Ref(AbstractRef(make_aval(value.shape, _U32), kind=kind), value)


class Stateful:
    """The base of generators with a state, a ref of a key and of how many keys were made of it."""

    __slots__ = ("_state",)
    _state: Ref

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, or an array of new keys; the state advances.

        Args:
            shape: the shape of the array of keys; by default, one key is made.

        Example:
            >>> from gradix import random
            >>> rng = random.Generator(0)
            >>> bool((random.key_data(rng.key()) == random.key_data(rng.key())).all())
            False
        """
        made = self._state.aval.kind.next_key(self._state)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return keys.split(made, shape) if shape else made

    def split(self, num: int | Sequence[int]):
        """A generator with many states, as an argument of a function under `vmap`.

        Args:
            num: the number of states, or the shape of the array of states.

        Example:
            >>> import gradix
            >>> from gradix import random
            >>> gradix.vmap(lambda rng: rng.key())(random.Generator(1).split(3)).shape
            (3,)
        """
        return self._of(_new_state(self.key(num)))

    def spawn(self, n_children: int) -> list:
        """A list of independent generators.

        Args:
            n_children: the number of generators.

        Example:
            >>> from gradix import random
            >>> len(random.Generator(1).spawn(2))
            2
        """
        made = self.key((n_children,))
        return [self._of(_new_state(lax.index_in_dim(made, i, keepdims=False))) for i in range(n_children)]

    @classmethod
    def _of(cls, state: Any):
        new = object.__new__(cls)
        new._state = state
        return new

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._state!r})"


def register(cls: Any) -> Any:
    """Register a class of generators as pytrees of one leaf, the state, for `jit` and `vmap`."""
    register_pytree_node(cls, lambda g: ((g._state,), None), lambda _, leaves: cls._of(leaves[0]))
    return cls


@register
class Generator(Stateful):
    """A generator that draws random numbers without keys; its state advances with each draw.

    Each sampler of `gradix.random` is a method without the argument `key`: `rng.normal(shape)`.
    Under `jit` and in loops and branches, the state is an input and an output of the program. Under
    `vmap`, each example draws its own numbers. Derivatives take the numbers as constants. No two of
    the first 2^32 draws use the same key.

    Args:
        seed: an integer, or a key; None takes a seed from the operating system.
        impl: the name of the generator of bits, as for `random.key`.

    Raises:
        TypeError: the seed is neither an integer nor a key, or it is None inside a transformation,
            whose program would have the same seed in each call.

    Example:
        >>> import gradix
        >>> from gradix import random
        >>> rng = random.Generator(0)
        >>> rng.uniform((2,))
        Array([0.8423141 , 0.18237865], dtype=float32)
        >>> rng.uniform((2,))
        Array([0.00729382, 0.02089119], dtype=float32)
        >>> draw = gradix.jit(lambda: rng.normal())
        >>> bool(draw() == draw())
        False
    """

    __slots__ = ()

    def __init__(self, seed: Any = None, *, impl: Any = None):
        self._state = _new_state(base_key(seed, impl))


def base_key(seed: Any, impl: Any) -> Array:
    """The key with which a generator starts."""
    if seed is None:
        if not trace_state_clean():
            raise TypeError(
                "A generator made inside jit, grad, vmap or another transformation needs a seed: one "
                "from the operating system would be the same in all calls of the traced program. Give "
                "a seed, or make the generator outside."
            )
        return keys.key(secrets.randbits(31), impl=impl)
    if isinstance(seed, Array) and isinstance(seed.aval.dtype, dtypes.KeyType):
        return keys.single_key("Generator", seed)[0]
    return keys.key(seed, impl=impl)


def stateful_of(cls: type, made: Any, count: Any):
    """A generator of the class `cls` that made `count` keys of the key `made` already.

    Raises:
        ValueError: `made` is not a typed key, or `count` neither None nor a mutable integer.
    """
    if not isinstance(made, Array) or not isinstance(made.aval.dtype, dtypes.KeyType):
        raise ValueError(f"The key of a generator must be typed, as random.key(seed) gives it, got {made!r}.")
    if count is None:
        return cls._of(_new_state(made))  # type: ignore[attr-defined]
    if not isinstance(count, Ref) or count.dtype.kind not in "iu" or count.ndim not in (0, made.ndim):
        raise ValueError(f"The count of a generator must be a mutable integer, as new_ref(0) gives it, got {count!r}.")
    return cls._of(_new_state(made, count.read()))  # type: ignore[attr-defined]


def _method(function: Callable) -> Callable:
    """A sampler as a method, which takes the generator's next key."""

    @functools.wraps(function)
    def draw(self, *args, **kwargs):
        return function(self.key(), *args, **kwargs)

    sig = inspect.signature(function)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    draw.__signature__ = sig.replace(parameters=[own, *list(sig.parameters.values())[1:]])  # type: ignore[attr-defined]
    draw.__qualname__ = f"Generator.{function.__name__}"
    draw.__doc__ = f"`random.{function.__name__}` with a new key for each call; it takes the other arguments."
    return draw


_SAMPLERS = {
    continuous: "cauchy double_sided_maxwell exponential gumbel laplace logistic lognormal maxwell "
    "pareto rayleigh triangular wald weibull_min",
    counts: "binomial multinomial poisson",
    discrete: "bernoulli categorical geometric rademacher",
    floats: "bits normal uniform",
    gammas: "beta chisquare dirichlet f gamma loggamma t",
    integers: "randint",
    permutations: "choice permutation",
    truncated: "truncated_normal",
    vectors: "ball generalized_normal multivariate_normal orthogonal",
}
for _module, _names in _SAMPLERS.items():
    for _name in _names.split():
        setattr(Generator, _name, _method(getattr(_module, _name)))
