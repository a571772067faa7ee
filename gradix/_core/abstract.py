"""The common base of types of values, for `isinstance`."""

from __future__ import annotations

from abc import ABCMeta

from gradix._core.aval import AbstractToken, ShapedArray


class AbstractValue(metaclass=ABCMeta):  # noqa: B024
    """The type of a value in a program: `ShapedArray` for arrays."""

    __slots__ = ()


AbstractValue.register(ShapedArray)
AbstractValue.register(AbstractToken)

abstract_token = AbstractToken()
