"""Conditions under which a kernel's writes hold where devices that communicate take different ways.

A conditional that one device enters and another does not cannot hold an exchange between them. Its
function runs on all devices then, and its writes are made where the condition holds.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from gradix import lax, numpy as jnp


class Exchange(Exception):
    """A branch that is being traced communicates with other devices; `pl.when` traces it otherwise."""


class _Conditions(threading.local):
    """The conditions around what this thread traces, and whether it is in a branch of a conditional."""

    def __init__(self):
        self.held: tuple = ()
        self.is_in_branch = False


_conditions = _Conditions()


@contextlib.contextmanager
def branch() -> Iterator[None]:
    """A context for a function that is traced as a branch, which no exchange can be part of."""
    before, _conditions.is_in_branch = _conditions.is_in_branch, True
    try:
        yield
    finally:
        _conditions.is_in_branch = before


@contextlib.contextmanager
def under(condition: Any) -> Iterator[None]:
    """A context for a function that runs in any case, whose writes are made where the condition holds."""
    before = _conditions.held
    _conditions.held = (*before, condition)
    try:
        yield
    finally:
        _conditions.held = before


@contextlib.contextmanager
def anywhere() -> Iterator[None]:
    """A context for writes that are made whatever the conditions around them."""
    before, _conditions.held = _conditions.held, ()
    try:
        yield
    finally:
        _conditions.held = before


def condition() -> Any:
    """The conjunction of the conditions around what is traced; None if there are none.

    Raises:
        Exchange: in a branch.
    """
    if _conditions.is_in_branch:
        raise Exchange
    found = None
    for c in _conditions.held:
        found = jnp.asarray(c, bool) if found is None else lax.bitwise_and(found, jnp.asarray(c, bool))
    return found


def selected(value: Any, old: Any) -> Any:
    """The value where the conditions around what is traced hold, and the old one elsewhere."""
    for c in _conditions.held:
        value = jnp.where(c, value, old)
    return value


def is_conditional() -> bool:
    """Whether writes are made under a condition."""
    return bool(_conditions.held)
