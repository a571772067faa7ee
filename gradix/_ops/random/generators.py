"""The generators, by the names in key dtypes.

Each generator makes keys from seeds, splits keys, folds data into keys and draws bits: in NumPy
(`host_…`, on stored keys) and in StableHLO (`emit_…`). Where `together` is set, the first key of an
array draws the bits of all keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._base import config
from gradix._core import dtypes
from gradix._ops.random.counted_by_halves import RbgByHalves, ThreefryByHalves
from gradix._ops.random.counters import CounterBased, philox2x32, philox4x32, threefry4x32
from gradix._ops.random.rbg import Rbg, UnsafeRbg
from gradix._ops.random.threefry import Threefry2x32

# The generators that take over where jax_threefry_partitionable is off.
BY_HALVES = {"fry": "fry by halves", "rbg": "rbg by halves"}
_options = config.state


class Composed:
    """A user's generator: functions on arrays of the words of many keys."""

    together = False

    def __init__(self, seed: Callable, split: Callable, random_bits: Callable, fold_in: Callable):
        self.seed, self.split, self.random_bits, self.fold_in = seed, split, random_bits, fold_in


GENERATORS: dict[str, Any] = {
    "fry": Threefry2x32(),
    BY_HALVES["fry"]: ThreefryByHalves(),
    BY_HALVES["rbg"]: RbgByHalves(),
    "fry4": CounterBased(threefry4x32, 4, 4, dtypes.KeyType("fry4").physical, seed_is_key=True),
    "phx2": CounterBased(philox2x32, 1, 2, dtypes.KeyType("phx2").physical),
    "phx4": CounterBased(philox4x32, 2, 4, dtypes.KeyType("phx4").physical),
    "rbg": Rbg(),
    "urbg": UnsafeRbg(),
}


def parameter_of(dtype) -> str:
    """The parameter `impl` of primitives on keys of this dtype, under the options in force."""
    impl = getattr(dtype, "_impl", "fry")  # the primitive refuses dtypes that are no keys
    return impl if _options.jax_threefry_partitionable else BY_HALVES.get(impl, impl)


def draws_together(dtype) -> bool:
    """Whether the first key of an array of this dtype draws the bits of all keys."""
    return GENERATORS[dtype._impl].together


def is_composed(dtype) -> bool:
    """Whether the keys of this dtype belong to a generator that a user wrote."""
    return isinstance(GENERATORS[dtype._impl], Composed)
