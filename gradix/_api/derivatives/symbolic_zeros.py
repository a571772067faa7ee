"""The arguments of users' rules with `symbolic_zeros=True`: symbolic zeros and marked primals."""

from __future__ import annotations

from typing import Any

from gradix._base.tree import tree_flatten as flatten
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._ops.basis import float0_zeros, tangent_aval, zeros


class SymbolicZero:
    """A tangent or cotangent that is zero for all values; it has a type, but no arithmetic.

    Example:
        >>> from gradix.custom_derivatives import SymbolicZero
        >>> zero = SymbolicZero.from_primal_value(2.0)
        >>> zero, zero.shape
        (SymbolicZero, ())
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    @staticmethod
    def from_primal_value(value) -> SymbolicZero:
        """The symbolic zero tangent of a value."""
        return SymbolicZero(tangent_aval(as_array(value).aval))

    def __repr__(self) -> str:
        return "SymbolicZero"

    def __eq__(self, other) -> bool:
        return type(other) is SymbolicZero and self.aval == other.aval

    def __hash__(self) -> int:
        return hash((SymbolicZero, self.aval))


class CustomVJPPrimal:
    """An argument of a forward rule: its `value`, and whether it is `perturbed` (has a tangent).

    Example:
        >>> from gradix.custom_derivatives import CustomVJPPrimal
        >>> CustomVJPPrimal(1.0, perturbed=False).perturbed
        False
    """

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value}, perturbed={self.perturbed})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of the arrays of a pytree: arrays (float0 for integers) or symbolic zeros.

    Args:
        val: a pytree of arrays.
        symbolic_zeros: whether to return a `SymbolicZero` for each.

    Example:
        >>> from gradix.custom_derivatives import zero_from_primal
        >>> zero_from_primal({"a": 2.0})
        {'a': Array(0., dtype=float32, weak_type=True)}
    """
    leaves, treedef = flatten(val)
    return treedef.unflatten([_zero(SymbolicZero.from_primal_value(x), symbolic_zeros) for x in leaves])


def _zero(zero: SymbolicZero, symbolic: bool):
    if symbolic:
        return zero
    return float0_zeros(zero.shape) if zero.dtype == dtypes.float0 else zeros(zero.aval)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of the arguments of a forward rule with `symbolic_zeros`, without their marks.

    Example:
        >>> from gradix.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
        >>> custom_vjp_primal_tree_values((CustomVJPPrimal(1.0, True),))
        (1.0,)
    """
    leaves, treedef = flatten(tree)
    wrong = [x for x in leaves if not isinstance(x, CustomVJPPrimal)]
    if wrong:
        raise TypeError(
            "custom_vjp_primal_tree_values expects the arguments of a fwd rule that was set with "
            f"symbolic_zeros=True, got a leaf of type {type(wrong[0]).__name__}."
        )
    return treedef.unflatten([x.value for x in leaves])
