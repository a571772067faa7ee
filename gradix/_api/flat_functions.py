"""Functions of pytrees as functions of lists of arrays, the form that transformations work on."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from gradix._api.hi_values import flatten
from gradix._base.config import state as _options
from gradix._base.tree import keystr, tree_flatten_with_path, tree_map, tree_unflatten
from gradix._core.array import as_array, check_number
from gradix._core.operators import Array
from gradix._core.trace import Tracer

_VALUES = (np.ndarray, np.generic, int, float, complex)
_GIVEN = ("argument", "primals", "init", "initial_guess", "operand ")


def arrays(name: str, leaves, tree, what: str, axes=None) -> list[Array]:
    """The leaves as arrays; with `axes`, leaves whose axis is None may be anything.

    Raises:
        TypeError: a leaf is not an array; the message names its path.
        OverflowError: a leaf is an int that does not fit into its dtype.
    """
    out = []
    for i, x in enumerate(leaves):
        if isinstance(x, Array):
            out.append(x)
            continue
        if _options.jax_transfer_guard_host_to_device is not None and what.startswith(_GIVEN):
            check_number(x)
        try:
            out.append(as_array(x))
        except (TypeError, OverflowError) as e:
            if axes is not None and axes[i] is None:
                out.append(x)
                continue
            path = keystr(tree_flatten_with_path(tree_unflatten(tree, leaves))[0][i][0])
            wrong = "is not an array" if isinstance(e, TypeError) else "does not fit"
            raise type(e)(f"{name}: {what}{path} {wrong}. {e}") from None
    return out


def with_arrays(values):
    """A pytree in which numbers and NumPy arrays are made arrays, which no one can change in place."""
    return tree_map(lambda x: as_array(x) if isinstance(x, _VALUES) else x, values)


class Flat:
    """A function of pytrees as one of lists, which keeps the tree of its results and its aux."""

    __slots__ = ("function", "name", "in_tree", "out_tree", "aux", "has_aux", "rebuild")

    def __init__(self, function, name, in_tree, has_aux=False, rebuild=None):
        self.function, self.name, self.in_tree, self.has_aux = function, name, in_tree, has_aux
        self.rebuild = rebuild or in_tree.unflatten
        self.out_tree = self.aux = None

    def __call__(self, *leaves) -> list:
        out = self.function(*self.rebuild(leaves))
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise TypeError(
                    f"{self.name}: with has_aux=True the function must return a pair (output, auxiliary "
                    f"data), got {kind_of(out)}."
                )
            out, aux = out
            aux_leaves, aux_tree = flatten(aux)
            self.aux = aux_tree, aux_leaves, [isinstance(x, Tracer) for x in aux_leaves]
        outs, self.out_tree = flatten(out)
        result = arrays(self.name, outs, self.out_tree, "output")
        return result + self._aux_arrays() if self.has_aux else result

    def _aux_arrays(self) -> list:
        return [x for x, traced in zip(self.aux[1], self.aux[2]) if traced]

    def split_aux(self, outs):
        """Split what a transformation of `__call__` returned into results and the auxiliary tree.

        Auxiliary leaves that are not traced are returned as they are.
        """
        n = self.out_tree.num_leaves
        tree, leaves, traced = self.aux
        given = iter(outs[n:])
        return outs[:n], tree.unflatten([next(given) if t else x for x, t in zip(leaves, traced)])


def kind_of(x) -> str:
    """The type of `x`, and the length of a tuple or list, for an error."""
    kind = f"a {type(x).__name__}"
    return f"{kind} of length {len(x)}" if isinstance(x, (tuple, list)) else kind


def named_as(function) -> Callable[[Callable], Callable]:
    """A decorator that gives a wrapper the name and documentation of the function it wraps."""

    def wrap(wrapper):
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            try:
                setattr(wrapper, attribute, getattr(function, attribute))
            except (AttributeError, TypeError):
                pass  # a callable object may lack the attribute, or have something else in its place
        wrapper.__dict__.update(getattr(function, "__dict__", ()))
        wrapper.__wrapped__ = function
        return wrapper

    return wrap
