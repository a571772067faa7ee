"""Boxes of mutable values among the arguments of transformations, and what jitted functions do to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gradix._api.hi_boxes import Box, Handle, box_of
from gradix._base.tree import register_pytree_node
from gradix._core.refs import Ref


class Shape(NamedTuple):
    """The key by which boxes among arguments differ: type, state, and the class of their values."""

    aval: Any
    qdd: Any
    cls: type


class OpenBox:
    """A box as a pytree node, whose children are its handle and its refs."""

    __slots__ = ("shape", "children")

    def __init__(self, shape: Shape, children: Iterable):
        self.shape, self.children = shape, tuple(children)


def opened(x: Any) -> OpenBox:
    """A mutable value as a pytree node."""
    box = box_of(x)
    return OpenBox(Shape(box.aval, box.qdd, box.cls), (Handle(box), *box.refs))


def _joined(shape: Shape, children):
    handle, *refs = children
    if not all(isinstance(c, Ref) for c in children):
        return OpenBox(shape, children)
    if type(handle) is Handle and handle.box is not None:
        return handle.box
    box = Box(shape.aval, shape.qdd, refs, shape.cls, handle)
    if type(handle) is Handle:
        handle.hold(box)
    return box


register_pytree_node(OpenBox, lambda node: (node.children, node.shape), _joined)


# -- jitted functions ------------------------------------------------------------------------------


class Restructured(NamedTuple):
    """How a jitted function changes the types of the arrays of a box.

    Attributes:
        source: the number of the leaf that is the box's handle, or the box.
        before, qdd: the state it has, and the one it gets.
        refs: its refs, each by the number of a leaf or itself.
    """

    source: Any
    before: Any
    qdd: Any
    refs: list


def told(before: dict[Box, tuple], inside: dict[int, Ref]) -> list[Restructured]:
    """What a function that was traced does to boxes, whose states before are given."""
    place = {id(r): i for i, r in inside.items()}
    return [
        Restructured(
            place.get(id(box.handle), box),
            old[0],
            box.qdd,
            [place.get(id(r), r) for r in box.refs],
        )
        for box, old in before.items()
    ]


def undo(before: dict[Box, tuple]) -> None:
    """Give boxes the states back that they had before a function was traced."""
    for box, old in before.items():
        box._set(*old)


def restructure(changes: list[Restructured], leaves, parts: dict[int, Any]) -> None:
    """Give boxes the new states that a function left them; `parts` are the new arrays."""
    for source, _, qdd, refs in changes:
        box = leaves[source].box if isinstance(source, int) else source
        box.restructure(
            qdd,
            [
                leaves[r].read()
                if isinstance(r, int)
                else parts[id(r)]
                if id(r) in parts
                else r.read()
                for r in refs
            ],
        )
