"""A random generator with a state, like NumPy's; `gradix.random.Generator` has more samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix import random as _random
from gradix._base.listing import own_names as _own_names
from gradix._core.array import as_array
from gradix._core.operators import Array
from gradix._core.refs import Ref, new_ref
from gradix.random.generator import Stateful, base_key, register, stateful_of


@register
class StatefulPRNG(Stateful):
    """A generator with a state, made by `stateful_rng`, with NumPy's methods and keys by `key()`.

    It works inside every transformation. Under `vmap` each example draws different numbers.

    Example:
        >>> from gradix.experimental import random
        >>> rng = random.stateful_rng(123)
        >>> rng.integers(0, 10, 2).shape
        (2,)
    """

    __slots__ = ()

    def __new__(cls, _base_key: Any, _counter: Any = None):
        return stateful_of(cls, _base_key, _counter)

    @property
    def _base_key(self) -> Array:
        kind = self._state.aval.kind
        return _random.wrap_key_data(self._state.read()[..., : kind.impl.words], dtype=kind.impl)

    @property
    def _counter(self) -> Ref:
        """How many keys were made so far; writing to it has no effect on this generator."""
        return new_ref(self._state.read()[..., -1].astype("int32"))

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def random(self, size: int | Sequence[int] | None = None, dtype: Any = float) -> Array:
        """Uniform floats in [0, 1), of shape `size`.

        Example:
            >>> stateful_rng(0).random()
            Array(0.8423141, dtype=float32)
        """
        return _random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self, low: Any = 0, high: Any = 1, size: int | Sequence[int] | None = None, *, dtype: Any = float
    ) -> Array:
        """Uniform floats in [low, high), of shape `size`, by default that of the bounds.

        Example:
            >>> stateful_rng(0).uniform(1.0, 2.0)
            Array(1.8423141, dtype=float32)
        """
        return _random.uniform(self.key(), _shape(size, low, high), dtype, minval=low, maxval=high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: int | Sequence[int] | None = None, *, dtype: Any = float
    ) -> Array:
        """Normally distributed floats with mean `loc` and standard deviation `scale`.

        Their shape is `size`, by default that of `loc` and `scale`.

        Example:
            >>> stateful_rng(0).normal(size=(2,)).shape
            (2,)
        """
        drawn = _random.normal(self.key(), _shape(size, loc, scale), dtype)
        return as_array(loc).astype(drawn.dtype) + as_array(scale).astype(drawn.dtype) * drawn

    def integers(
        self, low: Any, high: Any = None, size: int | Sequence[int] | None = None, *, dtype: Any = int
    ) -> Array:
        """Integers in [low, high), or in [0, low) if `high` is left out.

        Their shape is `size`, by default that of the bounds.

        Example:
            >>> stateful_rng(0).integers(10).dtype
            dtype('int32')
        """
        low, high = (0, low) if high is None else (low, high)
        return _random.randint(self.key(), _shape(size, low, high), low, high, dtype)


def _shape(size: Any, *parameters: Any) -> tuple:
    """`size` as a tuple; if it is None, the shape to which the parameters broadcast."""
    if size is None:
        return np.broadcast_shapes(*[as_array(p).shape for p in parameters])
    return (size,) if isinstance(size, (int, np.integer)) else tuple(size)


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A random generator with a state.

    Args:
        seed: an integer; by default it is drawn from the operating system.
        impl: the name of the generator of bits, as for `gradix.random.key`.

    Raises:
        TypeError: the seed is not an integer.

    Example:
        >>> from gradix.experimental import random
        >>> rng = random.stateful_rng(0)
        >>> rng.uniform(), rng.uniform()
        (Array(0.8423141, dtype=float32), Array(0.00729382, dtype=float32))
    """
    return StatefulPRNG(base_key(seed, impl))


__dir__ = _own_names(__name__)
