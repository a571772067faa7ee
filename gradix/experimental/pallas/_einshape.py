"""`einshape`: an array reshaped and transposed as an equation of names says."""

from __future__ import annotations

import math
from typing import Any

from gradix import numpy as jnp


def einshape(equation: str, x: Any, assert_is_tile_preserving: bool = False, **sizes: int) -> Any:
    """The array with its axes divided, moved and joined as an equation says.

    Args:
        equation: names of axes, one letter each, before and after `->`. Names in brackets are
            the parts of one axis, the last one innermost.
        x: the array.
        assert_is_tile_preserving: accepted; arrays have no tiles here.
        **sizes: the sizes of parts; of each axis, one may be left out.

    Raises:
        ValueError: the equation does not fit the array, or a size is missing.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.einshape("a(bc)->b(ac)", jnp.arange(8).reshape(2, 4), b=2)
        Array([[0, 1, 4, 5],
               [2, 3, 6, 7]], dtype=int32)
    """
    before, arrow, after = equation.replace(" ", "").partition("->")
    if not arrow:
        raise ValueError(f"einshape needs an arrow, as in 'a(bc)->abc', got {equation!r}.")
    inputs, outputs = _groups(before, equation), _groups(after, equation)
    names, wanted = "".join(inputs), "".join(outputs)
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        raise ValueError(f"einshape: {equation!r} must name each axis once before and once after the arrow.")
    if len(inputs) != x.ndim:
        raise ValueError(f"einshape: {equation!r} names {len(inputs)} axes, but the array has shape {x.shape}.")
    known = dict(sizes)
    for group, n in zip(inputs, x.shape):
        _measure(group, n, known, equation)
    parts = jnp.reshape(x, [known[name] for name in names])
    moved = jnp.transpose(parts, [names.index(name) for name in wanted])
    return jnp.reshape(moved, [math.prod([known[name] for name in group]) for group in outputs])


def _groups(text: str, equation: str) -> list[str]:
    """The names of each axis of one side of an equation."""
    found: list[str] = []
    inside = False
    for letter in text:
        if letter == "(" and not inside:
            inside = True
            found.append("")
        elif letter == ")" and inside:
            inside = False
        elif letter.isalpha():
            if inside:
                found[-1] += letter
            else:
                found.append(letter)
        else:
            raise ValueError(f"einshape: unexpected {letter!r} in {equation!r}.")
    if inside:
        raise ValueError(f"einshape: a bracket of {equation!r} is not closed.")
    return found


def _measure(group: str, n: int, known: dict[str, int], equation: str) -> None:
    """Find the sizes of the parts of an axis of `n` elements."""
    missing = [name for name in group if name not in known]
    rest = math.prod([known[name] for name in group if name in known])
    if len(missing) > 1:
        raise ValueError(
            f"einshape: {equation!r} divides an axis of {n} elements into {group!r}. Give the sizes of all but one: "
            f"{missing[0]}=..."
        )
    if missing and rest and n % rest == 0:
        known[missing[0]] = n // rest
    elif missing or rest != n:
        told = ", ".join([f"{k}={known[k]}" for k in group if k in known])
        raise ValueError(
            f"einshape: {equation!r} divides an axis of {n} elements into {group!r}, which does not go with {told}."
        )
