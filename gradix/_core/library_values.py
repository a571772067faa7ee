"""Values of libraries' own classes: how one becomes an array, and what its type is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import is_extended
from gradix._core.operators import Array

# class -> what makes something array-like of a value
converters: dict[type, Callable[[Any], Any]] = {}
types: dict[type, Callable[[Any], Any]] = {}  # class -> what gives the type of a value

ARRAY_LIKE = (np.ndarray, np.generic, bool, int, float, complex, Array)


class ClassRules(MutableMapping):
    """What is done with values of a class, as a mapping: setting an item makes the class one of array-likes.

    Args:
        table: where the rules are kept.
        usual: the rule for all classes that are array-like without one.
        others: called with a class that is given a rule.
    """

    def __init__(
        self,
        table: dict[type, Callable],
        usual: Callable,
        others: Callable[[type], Any] = lambda cls: None,
    ):
        self.table, self.usual, self.others = table, usual, others

    def __getitem__(self, cls: type) -> Callable:
        if cls in self.table:
            return self.table[cls]
        if isinstance(cls, type) and issubclass(cls, ARRAY_LIKE):
            return self.usual
        raise KeyError(cls)

    def __setitem__(self, cls: type, rule: Callable) -> None:
        self.table[cls] = rule
        self.others(cls)

    def __delitem__(self, cls: type) -> None:
        del self.table[cls]

    def __iter__(self) -> Iterator[type]:
        return iter({*ARRAY_LIKE, *self.table})

    def __len__(self) -> int:
        return len({*ARRAY_LIKE, *self.table})


def physical_aval(aval):
    """The type of what holds the elements: of random keys their words, of other arrays the array's own."""
    if not is_extended(aval.dtype):
        return aval
    inner = aval.dtype.key_shape
    return make_aval((*aval.shape, *inner), np.dtype(np.uint32))


# classes of values above arrays -> what gives the type of one
above_arrays: dict[type, Callable[[Any], Any]] = {}
containers: dict[type, Any] = {}  # class -> how vmap maps its instances
axes_of_containers: set[type] = set()  # the classes of what says along which axis
