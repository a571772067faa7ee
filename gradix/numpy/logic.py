"""Comparisons, logic, operations on bits, and tests for kinds of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.lazy import alias
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, FLOAT
from gradix._core.operators import Array
from gradix._core.promotion import promote_pair
from gradix.numpy.arithmetic import ordered
from gradix.numpy.axes import no_out
from gradix.numpy.promotion import (
    as_operand,
    convert,
    like,
    number,
    numeric_operand,
    numeric_operands,
    operands,
    same_rank,
)

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)


# -- comparisons -----------------------------------------------------------------------------------


def _comparison(name: str, op, summary: str, value: str) -> Callable[[ArrayLike, ArrayLike], Array]:
    """A comparison; complex numbers are compared by real part, then by imaginary part."""
    equality = name in ("equal", "not_equal")

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        x, y = operands(name, x, y)
        return op(x, y) if equality else ordered(op, x, y)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{summary}\n\nExample:\n    >>> import gradix.numpy as jnp\n"
        f"    >>> jnp.{name}(jnp.array([1, 2, 3]), 2)\n    Array({value}, dtype=bool)\n"
    )
    return function


equal = _comparison("equal", lax.eq, "Whether x == y, elementwise.", "[False,  True, False]")
not_equal = _comparison("not_equal", lax.ne, "Whether x != y, elementwise.", "[ True, False,  True]")
less = _comparison("less", lax.lt, "Whether x < y, elementwise.", "[ True, False, False]")
less_equal = _comparison("less_equal", lax.le, "Whether x <= y, elementwise.", "[ True,  True, False]")
greater = _comparison("greater", lax.gt, "Whether x > y, elementwise.", "[False, False,  True]")
greater_equal = _comparison("greater_equal", lax.ge, "Whether x >= y, elementwise.", "[False,  True,  True]")


# -- logic -----------------------------------------------------------------------------------------


def _truth(name: str, x, position: int = 0) -> Array:
    """Whether each element is not zero."""
    x = as_operand(name, x, position)
    dtype = x.aval.dtype
    return x if dtype == _BOOL else lax.ne(x, like(x, 0))


def _truths(name: str, x, y) -> tuple[Array, Array]:
    """Whether the elements of two operands are not zero, as arrays of one rank."""
    x, y = as_operand(name, x), as_operand(name, y, 1)
    a, b = x.aval, y.aval
    # The result is weakly typed only for scalars, if their promoted type is.
    weak = (
        not (a.ndim or b.ndim) and promote_pair(a.dtype, a.weak_type, b.dtype, b.weak_type, dtypes.promotion_mode())[1]
    )
    x, y = same_rank(name, _truth(name, x), _truth(name, y, 1))
    return convert(x, _BOOL, weak), convert(y, _BOOL, weak)


def logical_and(x: ArrayLike, y: ArrayLike):
    """Whether both operands are other than zero, elementwise, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logical_and(jnp.array([True, False]), True)
        Array([ True, False], dtype=bool)
    """
    return lax.bitwise_and(*_truths("logical_and", x, y))


def logical_or(x: ArrayLike, y: ArrayLike):
    """Whether one operand is, or both are, other than zero, elementwise, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logical_or(jnp.array([True, False]), False)
        Array([ True, False], dtype=bool)
    """
    return lax.bitwise_or(*_truths("logical_or", x, y))


def logical_xor(x: ArrayLike, y: ArrayLike):
    """Whether exactly one operand is other than zero, elementwise, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logical_xor(jnp.array([True, False]), True)
        Array([False,  True], dtype=bool)
    """
    return lax.bitwise_xor(*_truths("logical_xor", x, y))


def logical_not(x: ArrayLike, /) -> Array:
    """Whether each element is zero, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logical_not(jnp.array([0, 1, 2]))
        Array([ True, False, False], dtype=bool)
    """
    return lax.bitwise_not(_truth("logical_not", x))


# -- bits ------------------------------------------------------------------------------------------


def bitwise_and(x: ArrayLike, y: ArrayLike):
    """The bits that are set in both integers, elementwise; `and` for booleans.

    Raises:
        TypeError: the operands are neither integers nor booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bitwise_and(jnp.array([5, 6]), 3)
        Array([1, 2], dtype=int32)
    """
    return lax.bitwise_and(*operands("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike):
    """The bits that are set in at least one of the integers, elementwise; `or` for booleans.

    Raises:
        TypeError: the operands are neither integers nor booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bitwise_or(jnp.array([5, 6]), 3)
        Array([7, 7], dtype=int32)
    """
    return lax.bitwise_or(*operands("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike):
    """The bits that are set in exactly one of the integers, elementwise; `xor` for booleans.

    Raises:
        TypeError: the operands are neither integers nor booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bitwise_xor(jnp.array([5, 6]), 3)
        Array([6, 5], dtype=int32)
    """
    return lax.bitwise_xor(*operands("bitwise_xor", x, y))


def invert(x: ArrayLike, /) -> Array:
    """The integer with all bits inverted, elementwise; `not` for booleans.

    Raises:
        TypeError: `x` holds neither integers nor booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.invert(jnp.array([0, 5]))
        Array([-1, -6], dtype=int32)
    """
    return lax.bitwise_not(as_operand("invert", x))


bitwise_not, bitwise_invert = alias(invert, "bitwise_not"), alias(invert, "bitwise_invert")


@replayed
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of `x` moved up by `y` places, elementwise, in the promoted dtype.

    Raises:
        TypeError: the operands are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.left_shift(jnp.array([1, 3]), 2)
        Array([ 4, 12], dtype=int32)
    """
    return lax.shift_left(*numeric_operands("left_shift", x, y))


bitwise_left_shift = alias(left_shift, "bitwise_left_shift")


@replayed
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of `x1` moved down by `x2` places, elementwise; negative integers stay negative.

    Raises:
        TypeError: the operands are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.right_shift(jnp.array([8, -8]), 2)
        Array([ 2, -2], dtype=int32)
    """
    x, y = numeric_operands("right_shift", x1, x2)
    return (lax.shift_right_logical if x.aval.dtype in dtypes.UNSIGNED else lax.shift_right_arithmetic)(x, y)


bitwise_right_shift = alias(right_shift, "bitwise_right_shift")


def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits of `|x|` are set, elementwise, as uint8.

    Raises:
        TypeError: `x` does not hold integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bitwise_count(jnp.array([7, -8]))
        Array([3, 1], dtype=uint8)
    """
    x = numeric_operand("bitwise_count", x)
    if x.aval.dtype not in dtypes.UNSIGNED:
        x = lax.abs(x)
    return lax.convert_element_type(lax.population_count(x), np.dtype("uint8"))


# -- kinds of numbers ------------------------------------------------------------------------------


def _constant(value: bool, shape) -> Array:
    return lax.full(shape, value, _BOOL)


def isnan(x: ArrayLike, /) -> Array:
    """Whether each element is NaN, or for complex numbers a part of it, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    x = as_operand("isnan", x)
    return lax.ne(x, x)


def isfinite(x: ArrayLike, /) -> Array:
    """Whether each element is neither NaN nor infinite, in all its parts, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([ True, False, False], dtype=bool)
        >>> jnp.isfinite(jnp.array([1 + 1j, complex(0, jnp.inf)]))
        Array([ True, False], dtype=bool)

    See also:
        `jnp.isnan`, `jnp.isinf`, `jnp.nan_to_num`, `gradix.debug_nans`.
    """
    x = as_operand("isfinite", x)
    dtype = x.aval.dtype
    if dtype in FLOAT:
        return lax.is_finite(x)
    if dtype in COMPLEX:
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return _constant(True, x.aval.shape)


def isinf(x: ArrayLike, /) -> Array:
    """Whether each element is infinite, or for complex numbers a part of it, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isinf(jnp.array([1.0, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    x = as_operand("isinf", x)
    dtype = x.aval.dtype
    if dtype in FLOAT:
        return lax.eq(lax.abs(x), number(math.inf, dtype))
    if dtype in COMPLEX:
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    return _constant(False, x.aval.shape)


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is +∞, as booleans.

    Raises:
        ValueError: `x` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
        Array([ True, False], dtype=bool)
    """
    return _is_infinity("isposinf", x, math.inf, out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is -∞, as booleans.

    Raises:
        ValueError: `x` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return _is_infinity("isneginf", x, -math.inf, out)


def _is_infinity(name: str, x, infinity: float, out):
    no_out(name, out)
    x = as_operand(name, x)
    dtype = x.aval.dtype
    if dtype in FLOAT:
        return lax.eq(x, number(infinity, dtype))
    if dtype in COMPLEX:
        raise ValueError(f"{name}: x must be real, got dtype {dtype}. Take jnp.real(x) or jnp.imag(x).")
    return _constant(False, x.aval.shape)


def iscomplex(x: ArrayLike) -> Array:
    """Whether each element has an imaginary part other than zero, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.iscomplex(jnp.array([1.0 + 0j, 2j]))
        Array([False,  True], dtype=bool)
    """
    x = as_operand("iscomplex", x)
    part = lax.imag(x) if x.aval.dtype in COMPLEX else lax.full_like(x, 0)
    return lax.ne(part, like(part, 0.0))


def isreal(x: ArrayLike) -> Array:
    """Whether each element has no imaginary part, or one that is zero, as booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isreal(jnp.array([1.0 + 0j, 2j]))
        Array([ True, False], dtype=bool)
    """
    return lax.bitwise_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether `x` has a complex dtype, whatever its values.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.iscomplexobj(jnp.array([1.0 + 0j]))
        True
    """
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return dtype in COMPLEX
    if hasattr(x, "__jax_array__"):
        return iscomplexobj(x.__jax_array__())
    return any(map(iscomplexobj, x)) if isinstance(x, (list, tuple)) else np.iscomplexobj(x)


def isrealobj(x: Any) -> bool:
    """Whether `x` has a dtype that is not complex, whatever its values.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isrealobj(jnp.arange(3))
        True
    """
    return not iscomplexobj(x)
