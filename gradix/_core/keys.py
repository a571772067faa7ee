"""When two parameters mean the same: the keys by which programs and results are found again.

Python calls 0.0 and -0.0 equal, and 1, 1.0 and True, though operations tell them apart.
"""

from __future__ import annotations

import numpy as np

_PLAIN = frozenset([int, str, type(None)])


def exact(value):
    """A hashable key of a value, equal only to that of a value of its type with its digits and signs.

    The elements of tuples count too. Values of other kinds are compared by their own `__eq__`.

    Raises:
        TypeError: when the key is hashed, if the value cannot be.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple):
        if _PLAIN.issuperset(map(type, value)):
            return kind, value
        return (kind, *[v if type(v) in _PLAIN else exact(v) for v in value])
    if isinstance(value, float | complex | np.generic):
        return kind, repr(value)
    return kind, value


def exact_items(params: dict) -> tuple:
    """A hashable key of the parameters of an operation, by name."""
    return tuple([(k, v if type(v) in _PLAIN else exact(v)) for k, v in params.items()])


def typed_items(params: dict) -> tuple:
    """As `exact_items` for parameters that hold no signed zeros, nor mixed types within tuples: quicker."""
    return tuple([(k, type(v), v) for k, v in params.items()])
