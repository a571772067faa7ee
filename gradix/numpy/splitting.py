"""Arrays split into parts along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError, InconclusiveDimensionOperation
from gradix._base.lazy import lazy_module
from gradix._core.dimensions.expression import as_dim, is_count, is_symbolic_dim, is_undecided_remainder
from gradix._core.dtypes import INTEGER
from gradix._core.trace import is_unknown
from gradix.numpy.axes import axis_of
from gradix.numpy.indexing import take_index
from gradix.numpy.masks import decides_sizes
from gradix.numpy.promotion import as_operand, value_of

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_places = lazy_module("gradix._api.counted.places")


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple:
    """A tuple of the parts of `x` along an axis, without that axis.

    Raises:
        ValueError: `x` is a scalar, or `axis` is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unstack(jnp.arange(2))
        (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    x = as_operand("unstack", x)
    if not x.aval.ndim:
        raise ValueError("unstack: x must have at least one axis, got a scalar. Write jnp.atleast_1d(x).")
    return tuple(lax.unstack(x, axis_of(axis, x.aval.ndim)))


@replayed
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list:
    """A list of the parts of `ary` along an axis: equal ones, or those between given indices.

    Args:
        ary: an array with at least one axis.
        indices_or_sections: the number of parts, or the indices at which the second part and the
            later ones begin.
        axis: the axis.

    Raises:
        ValueError: the axis does not divide into that many equal parts (`array_split` makes unequal
            ones), the indices do not ascend, or `axis` is out of bounds.
        ConcretizationTypeError: the number of parts is traced, or the indices are, outside of a
            program. In a program that is traced, the sizes of the parts are known when it runs.

    Example:
        >>> import gradix.numpy as jnp
        >>> [len(x) for x in jnp.split(jnp.arange(5), [1, 3])]
        [1, 2, 2]
    """
    return _split("split", ary, indices_or_sections, axis)


@replayed
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list:
    """A list of the parts of `ary` along an axis, as `split`, but parts may differ in size by one.

    Args:
        ary: an array with at least one axis.
        indices_or_sections: the number of parts, or the indices at which the second part and the
            later ones begin.
        axis: the axis.

    Raises:
        ValueError: the number of parts is not positive, the indices do not ascend, or `axis` is out
            of bounds.
        ConcretizationTypeError: the number of parts is traced, or the indices are, outside of a
            program. In a program that is traced, the sizes of the parts are known when it runs.

    Example:
        >>> import gradix.numpy as jnp
        >>> [len(x) for x in jnp.array_split(jnp.arange(5), 3)]
        [2, 2, 1]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def _is_whole(x) -> bool:
    """Whether a float has the value of an integer."""
    is_float = isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"
    return is_float and float(x).is_integer()


def _split(name: str, ary, given: Any, axis: int) -> list:
    x = as_operand(name, ary)
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    is_list = isinstance(given, (tuple, list))
    where: Any = [value_of(i) for i in given] if is_list else value_of(given)
    unknown = next((i for i in (where if is_list else [where]) if is_unknown(i)), None)
    if unknown is not None and decides_sizes(unknown) and (is_list or np.ndim(unknown) == 1):
        return _at_traced(name, x, where if is_list else lax.unstack(unknown, 0), axis)
    if is_count(n) and (is_list or np.ndim(where) or name == "array_split"):
        return _of_counted(x, where, axis)
    if unknown is not None:
        raise ConcretizationTypeError(
            unknown, f"{name}: indices_or_sections must be known, as it determines the shapes of the parts."
        )
    if np.ndim(where) or isinstance(where, (tuple, list)):
        cuts = [0, *map(as_dim, where if is_list else np.asarray(where).tolist()), n]
    else:
        if is_symbolic_dim(where):
            raise ValueError(
                f"{name} with a symbolic number of sections is not supported, as the number of results would not be "
                f"known: got {where}. Give the indices to split at, or take the parts as an axis of their own, with "
                f"reshape."
            )
        parts = as_int(int(where) if _is_whole(where) else where)
        if parts <= 0:
            raise ValueError(f"{name}: the number of parts must be positive, got {parts}.")
        part, more = divmod(n, parts)
        if more and name != "array_split":
            raise ValueError(
                f"{name}: axis {axis} of size {n} does not divide into {parts} equal parts. Use "
                "array_split for parts of unequal size."
            )
        if is_undecided_remainder(more):
            raise InconclusiveDimensionOperation(
                f"{name}: axis {axis} of size {n} must divide into {parts} equal parts, but the "
                f"remainder {more} is not known to be 0."
            )
        more = more if type(more) is int else 0
        cuts = list(accumulate([part + 1] * more + [part] * (parts - more), initial=0))
    sizes = tuple([b - a for a, b in zip(cuts, cuts[1:])])
    if any(s < 0 for s in sizes):
        raise ValueError(
            f"{name}: the indices must ascend from 0 to {n}, the size of axis {axis}, but "
            f"{cuts[1:-1]} give parts of sizes {list(sizes)}."
        )
    return list(lax.split(x, sizes, axis))


def _at_traced(name: str, x, where, axis: int) -> list:
    """The parts between indices that are known when the program runs, as slices have them."""
    points = [as_operand(name, i, 1) for i in where]
    wrong = next((p for p in points if p.aval.ndim or p.aval.dtype not in INTEGER), None)
    if wrong is not None:
        raise TypeError(f"{name}: the indices must be integers, got {wrong.aval.str_short()}.")
    return _places.parts(x, points, axis)


def _of_counted(x, where, axis: int) -> list:
    """The parts of an axis whose size values decide: those that slices of it have."""
    n = x.aval.shape[axis]
    if np.ndim(where) or isinstance(where, (tuple, list)):
        cuts = [0, *[as_int(i) for i in np.asarray(where, dtype=None if len(where) else int)], None]
    else:
        parts = as_int(where)
        if parts <= 0:
            raise ValueError(f"array_split: the number of parts must be positive, got {parts}.")
        sizes = [(n + parts - 1 - i) // parts for i in range(parts)]
        cuts = list(accumulate(sizes, initial=0))
    before = (slice(None),) * axis
    return [take_index(x, (*before, slice(a, b))) for a, b in zip(cuts, cuts[1:])]


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list:
    """A list of the parts of `ary` along axis 0, as `split` returns them.

    Example:
        >>> import gradix.numpy as jnp
        >>> len(jnp.vsplit(jnp.ones((4, 2)), 2))
        2
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list:
    """A list of the parts of `ary` along axis 1, or its only axis, as `split` returns them.

    Example:
        >>> import gradix.numpy as jnp
        >>> len(jnp.hsplit(jnp.ones((4, 2)), 2))
        2
    """
    x = as_operand("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.aval.ndim == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list:
    """A list of the parts of `ary` along axis 2, as `split` returns them.

    Example:
        >>> import gradix.numpy as jnp
        >>> len(jnp.dsplit(jnp.ones((1, 1, 4)), 2))
        2
    """
    return _split("dsplit", ary, indices_or_sections, 2)
