"""How an array lies in a device's memory: the order of its axes, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """The order of axes in memory, slowest first.

    Attributes:
        major_to_minor: axis numbers, the contiguous one last.
        tiling: of accelerators; None or () where there is none.
        sub_byte_element_size_in_bits: of types smaller than a byte.

    Example:
        >>> Layout((0, 1)) == Layout((0, 1))
        True
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self):
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))


@dataclass(frozen=True)
class Format:
    """A layout and a sharding.

    Raises:
        TypeError: `layout` is no `Layout`.
        ValueError: there is a layout, but no sharding.
    """

    layout: Layout | None = None
    sharding: Any = None

    def __post_init__(self):
        if self.layout is not None and not isinstance(self.layout, Layout):
            raise TypeError(
                f"Invalid value received for the layout argument: expected None or a Layout, got "
                f"{self.layout!r} of type {type(self.layout).__name__}."
            )
        if self.layout is not None and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when a layout is given; got {self.layout} without one. "
                "Pass a SingleDeviceSharding."
            )


def row_major(ndim: int) -> Layout:
    """The layout of C order, which XLA gives arguments and results of programs by default."""
    return Layout(tuple(range(ndim)), ())
