"""Which axis of a convolution's operands and result is batch, feature or space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gradix._core.annotations import Size


class ConvDimensionNumbers(NamedTuple):
    """The axes of a convolution.

    Attributes:
        lhs_spec: axes of the input: batch, feature, then space.
        rhs_spec: axes of the kernel: output feature, input feature, then space.
        out_spec: axes of the result: batch, feature, then space.

    Example:
        >>> from gradix import lax
        >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).lhs_spec
        (0, 3, 1, 2)
        >>> lax.ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)).out_spec
        (0, 1, 2)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def conv_dimension_numbers(
    lhs_shape: Sequence[Size], rhs_shape: Sequence[Size], dimension_numbers: ConvGeneralDilatedDimensionNumbers
) -> ConvDimensionNumbers:
    """Dimension numbers from layouts, as ("NHWC", "HWIO", "NHWC"); None is batch, feature, space.

    Args:
        lhs_shape, rhs_shape: the shapes of input and kernel, of one rank.
        dimension_numbers: the layouts of input, kernel and result, or None, or what this function
            returned.

    Raises:
        TypeError: ranks differ, or a layout does not fit.

    Example:
        >>> from gradix import lax
        >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).lhs_spec
        (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs ndim to be equal, got "
            f"{len(lhs_shape)} and {len(rhs_shape)}: shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if len(lhs_shape) < 2:
        raise TypeError(
            "convolution requires lhs and rhs to have axes of batch and features at least, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        plain = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(plain, plain, plain)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(f"convolution dimension_numbers must be a tuple of layouts or None, got {dimension_numbers!r}.")
    if len(dimension_numbers) != 3:
        raise TypeError(f"convolution dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}.")
    if not all(isinstance(layout, str) for layout in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers elements must be strings, got "
            f"{tuple([type(layout) for layout in dimension_numbers])}."
        )
    _check_layouts(lhs_shape, rhs_shape, dimension_numbers)
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _check_layouts(lhs_shape, rhs_shape, layouts) -> None:
    for i, (layout, (a, b)) in enumerate(zip(layouts, (("N", "C"), ("O", "I"), ("N", "C")))):
        if len(layout) != len(lhs_shape):
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, got "
                f"{len(layout)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
        if layout.count(a) != 1 or layout.count(b) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{a}' and '{b}' exactly "
                f"once, got {layout}."
            )
        if len(set(layout)) != len(layout):
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {layout}.")
    spaces = [set(layout) - set(known) for layout, known in zip(layouts, ("NC", "OI", "NC"))]
    if not spaces[0] == spaces[1] == spaces[2]:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial characters, got "
            f"{tuple(layouts)}."
        )


def conv_general_permutations(dimension_numbers: Any) -> tuple:
    """The axis orders of layouts: batch or output feature, feature, then space as in the kernel.

    Returns:
        Three tuples of axes: of input, kernel and result.

    Example:
        >>> from gradix import lax
        >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    space = [c for c in rhs if c not in "OI"]
    return tuple(
        [
            tuple([layout.index(c) for c in (*first, *space)])
            for layout, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
        ]
    )
