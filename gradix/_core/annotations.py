"""The types that public functions say of their parameters; only type checkers and `gradix.typing` load it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from gradix._core.operators import Array

if TYPE_CHECKING:
    from gradix._core.dimensions.expression import SymbolicDim


class SupportsDType(Protocol):
    """What stands for a dtype because it has one."""

    @property
    def dtype(self) -> np.dtype: ...


class Device(Protocol):
    """A device, as `gradix.devices` gives it."""

    @property
    def id(self) -> int: ...
    @property
    def platform(self) -> str: ...


ArrayLike: TypeAlias = (
    Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex  # fmt: skip
)
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
# Keys are arrays, so a seed in the place of a key is found.
KeyLike: TypeAlias = Array | np.ndarray
# A size may be an array of one integer where its value is known, or symbolic.
Size: TypeAlias = "SupportsIndex | SymbolicDim"
Shape: TypeAlias = "Size | Sequence[Size]"
Axes: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
