"""Mutable values of types above arrays: a ref for each array that a value is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradix._api.hi_values import is_value, lo_types, made_of, no_tangents, opened, type_of
from gradix._base.tree import register_pytree_node
from gradix._core import library_values
from gradix._core.refs import Ref, freeze, new_ref
from gradix._ops.basis import zeros


class ValueRef:
    """A ref of a value of a type above arrays, which is read and written as a whole.

    Attributes:
        aval: the type of the value.
        refs: refs of its arrays, of which there are `n`, and of those that carry its derivatives.
    """

    __slots__ = ("aval", "refs", "n")

    def __init__(self, aval: Any, refs: Iterable[Ref], n: int):
        self.aval, self.refs, self.n = aval, tuple(refs), n

    def __getitem__(self, idx: Any) -> Any:
        self._check(idx)
        return made_of(self.aval, [r[...] for r in self.refs], self.n)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self._check(idx)
        if not is_value(value) or type_of(value) != self.aval:
            raise TypeError(f"a ref of a value of type {self.aval} is set to a value of that type, got {value!r}.")
        node = opened(value)
        for ref, array in zip(self.refs, (*node.arrays, *node.carriers)):
            ref[...] = array

    def get(self, idx: Any = ...) -> Any:
        """The value."""
        return self[idx]

    def set(self, value: Any, idx: Any = ...) -> None:
        """Replace the value."""
        self[idx] = value

    def swap(self, value: Any, idx: Any = ...) -> Any:
        """Replace the value, and return the one before."""
        before = self[idx]
        self[idx] = value
        return before

    def _frozen(self) -> Any:
        return made_of(self.aval, [freeze(r) for r in self.refs], self.n)

    def _check(self, idx: Any) -> None:
        if idx is not Ellipsis and idx not in (None, ()):
            raise NotImplementedError(
                f"a ref of a value of type {self.aval} is read and written as a whole, with ref[...], got the index "
                f"{idx!r}. Take an element by an operation of the value's library."
            )

    def __repr__(self) -> str:
        return f"Ref{{{self.aval}}}"


def _of_value(value: Any) -> ValueRef:
    node = opened(value)
    return ValueRef(node.aval, [new_ref(a) for a in (*node.arrays, *node.carriers)], len(node.arrays))


def _of_type(aval: Any) -> ValueRef:
    arrays = [zeros(a) for a in lo_types(aval)]
    return ValueRef(aval, [new_ref(a) for a in (*arrays, *no_tangents(aval))], len(arrays))


library_values.ref_of_value, library_values.ref_of_type = _of_value, _of_type
register_pytree_node(ValueRef, lambda r: (r.refs, (r.aval, r.n)), lambda aux, refs: ValueRef(aux[0], refs, aux[1]))
