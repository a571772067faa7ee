"""How an array lies in a device's memory: the order of its axes, and where it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gradix._core.sharding import Sharding

ATTRIBUTE = "mhlo.layout_mode"  # of those arguments and results of a module that are not in row-major order


@dataclass(frozen=True)
class Layout:
    """The order of axes in memory, slowest first.

    Attributes:
        major_to_minor: the axis numbers, with the contiguous axis last.
        tiling: the tiling on accelerators; None or () if there is none.
        sub_byte_element_size_in_bits: the element size of types smaller than a byte.

    Example:
        >>> Layout((0, 1)) == Layout((0, 1))
        True
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    # the compiler chooses this layout
    AUTO: ClassVar[AutoLayout]

    def __post_init__(self):
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))

    @staticmethod
    def from_pjrt_layout(pjrt_layout) -> Layout:
        """The layout of a buffer, from the form in which the runtime describes it."""
        own = pjrt_layout._xla_layout()
        return Layout(tuple(reversed(own.minor_to_major())), tuple(own.tiling()), own.element_size_in_bits())

    def update(self, **changes) -> Layout:
        """A copy with some fields changed.

        Raises:
            TypeError: there is no such field.
        """
        return replace(self, **changes)

    def check_compatible_aval(self, aval_shape) -> None:
        """Raise for the shape of an array that cannot lie so.

        Raises:
            ValueError: the array has another number of axes, or the layout does not name each once.
            NotImplementedError: the layout has a tiling.
        """
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={self.major_to_minor} and shape={tuple(aval_shape)}."
            )
        if sorted(self.major_to_minor) != list(range(len(aval_shape))):
            raise ValueError(
                f"major_to_minor of a layout must name each of the {len(aval_shape)} axes of an array of shape "
                f"{tuple(aval_shape)} once, from 0 on; got {self.major_to_minor}."
            )
        if self.tiling:
            raise NotImplementedError(
                f"arrays are laid out by the order of their axes alone, got tiling={self.tiling} for shape "
                f"{tuple(aval_shape)}. Leave tiling out."
            )


class AutoLayout:
    """Stands for a layout that the compiler chooses: `Layout.AUTO`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self):
        return "AUTO"


AUTO = AutoLayout()
Layout.AUTO = AUTO


@dataclass(frozen=True)
class Format:
    """A layout and a sharding.

    Raises:
        TypeError: `layout` is not a `Layout`, or `sharding` is not a Sharding.
        ValueError: a layout is given without a sharding.

    Example:
        >>> from gradix.experimental.layout import Format
        >>> Format().sharding is None
        True
    """

    layout: Layout | AutoLayout | None = None
    sharding: Any = None

    def __post_init__(self):
        if self.layout is not None and not isinstance(self.layout, (Layout, AutoLayout)):
            raise TypeError(
                f"Invalid value received for the layout argument: expected None, Layout.AUTO or a "
                f"Layout, got {self.layout!r} of type {type(self.layout).__name__}."
            )
        if self.sharding is not None and not isinstance(self.sharding, Sharding):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are None or a "
                f"Sharding, as NamedSharding(mesh, spec); got {self.sharding!r} of type "
                f"{type(self.sharding).__name__}."
            )
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when a layout is given; got {self.layout} without one. "
                "Pass a SingleDeviceSharding."
            )


def layout_in(order: tuple[int, ...] | None, ndim: int) -> Layout:
    """The layout of arrays whose axes lie in this order; None is row-major order, which XLA takes by default."""
    return Layout(tuple(range(ndim)) if order is None else order, ())


def order_in(layout: Layout | AutoLayout | None) -> tuple[int, ...] | AutoLayout | None:
    """The order of axes that a layout asks for; None is row-major order, or none asked for."""
    if not isinstance(layout, Layout):
        return layout
    order = layout.major_to_minor
    return None if order == tuple(range(len(order))) else order
