"""`abstracted_axes` of `jit`: names axes; axes of one name must have the same size."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gradix._base.tree import keystr, tree_flatten, tree_flatten_with_path

_FORM = (
    "abstracted_axes names axes of the positional arguments: a dict from axis to name, such as {0: 'n'}, or a "
    "tuple with a name or None for each axis, such as ('n', None), for all of them, or a tree of these that is a "
    "prefix of the arguments"
)


def _is_named(x: Any) -> bool:
    """Whether a part of the tree is a leaf: it names the axes of all arrays at its position."""
    if x is None:
        return True
    if isinstance(x, dict):
        return all(type(axis) is int for axis in x)
    return isinstance(x, tuple) and all(name is None or isinstance(name, str) for name in x)


def check_form(axes: Any) -> None:
    """Check that `axes` is a tree of dicts from axis to name and tuples of names.

    Raises:
        TypeError: a part of the tree is neither.
    """
    for part in tree_flatten(axes, is_leaf=_is_named)[0]:
        if not _is_named(part):
            raise TypeError(f"{_FORM}; got {part!r} of type {type(part).__name__} in {axes!r}.")
        if isinstance(part, dict):
            for axis, name in part.items():
                if not isinstance(name, Hashable) or name is None:
                    raise TypeError(f"{_FORM}; got the name {name!r} of type {type(name).__name__} for axis {axis}.")


def check_sizes(axes: Any, args: tuple, function: str) -> None:
    """Check that axes of the same name have the same size.

    Args:
        args: the positional arguments.
        function: the name of the function.

    Raises:
        ValueError: sizes differ, an array has no such axis, or `axes` is not a prefix of `args`.
    """
    leaves = tree_flatten_with_path(args)[0]
    sizes: dict[Any, tuple[int, str]] = {}
    for part, (path, x) in zip(_spread(axes, args, function), leaves):
        shape = np.shape(x) if not hasattr(x, "shape") else x.shape
        for axis, name in _pairs(part):
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"abstracted_axes of {function} names axis {axis} of args{keystr(path)}, {name!r}, "
                    f"whose shape {shape} has {len(shape)} axes. {_FORM}."
                )
            here = shape[axis], f"axis {axis} of args{keystr(path)}"
            first = sizes.setdefault(name, here)
            if first[0] != here[0]:
                raise ValueError(
                    f"abstracted_axes of {function} gives the name {name!r} to axes of different sizes: "
                    f"{first[0]}, {first[1]}, and {here[0]}, {here[1]}. Give each axis its own name, "
                    "or pass arrays of one size."
                )


def _spread(axes: Any, args: tuple, function: str) -> list:
    """Returns, for each leaf of the arguments, the part of the tree that names its axes."""
    parts, tree = tree_flatten(axes, is_leaf=_is_named)
    try:
        below = tree.flatten_up_to(args)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"abstracted_axes of {function}, {axes!r}, is not a prefix of its {len(args)} positional "
            f"arguments: {error}. {_FORM}."
        ) from None
    return [part for part, x in zip(parts, below) for _ in tree_flatten(x)[0]]


def _pairs(part: Any):
    if part is None:
        return ()
    if isinstance(part, dict):
        return part.items()
    return [(i, name) for i, name in enumerate(part) if name is not None]
