"""Values of classes that libraries define: how they become arrays, and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import is_extended
from gradix._core.operators import Array

# class -> a function that converts a value to something array-like
converters: dict[type, Callable[[Any], Any]] = {}
types: dict[type, Callable[[Any], Any]] = {}  # class -> a function that returns a value's type

ARRAY_LIKE = (np.ndarray, np.generic, bool, int, float, complex, Array)


class ClassRules(MutableMapping):
    """A mapping from classes to rules for their values; setting one makes a class array-like.

    Args:
        table: the dictionary that holds the rules.
        usual: the rule for classes that are array-like without a rule of their own.
        others: a function that is called with each class that gets a rule.
    """

    def __init__(self, table: dict[type, Callable], usual: Callable, others: Callable[[type], Any] = lambda cls: None):
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
    """The type of the array that stores the elements: the words of random keys, else `aval`."""
    if not is_extended(aval.dtype):
        return aval
    inner = aval.dtype.key_shape
    return make_aval((*aval.shape, *inner), np.dtype(np.uint32))


containers: dict[type, Any] = {}  # class -> how vmap maps its instances
axes_of_containers: set[type] = set()  # the classes of axis specifications for containers
# classes whose values a mapped function may return: vmap hands them on as they are
handed_on: set[type] = set()
# what makes a ref of a value of a type above arrays, and of zeros of such a type; `_api.hi_refs` sets them
ref_of_value: Callable[[Any], Any] | None = None
ref_of_type: Callable[[Any], Any] | None = None
