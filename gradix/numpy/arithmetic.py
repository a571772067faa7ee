"""Arithmetic of arrays: sums, products, powers, extremes, common divisors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base import config as _config
from gradix._base.lazy import alias
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.trace import state as trace_state
from gradix.numpy import host_implementations
from gradix.numpy.promotion import (
    as_operand,
    convert,
    inexact_operand,
    inexact_operands,
    like,
    numeric_operand,
    operands,
)
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)
_SELECTED = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))  # whose products XLA selects
_options = _config.state


# -- sums and products -----------------------------------------------------------------------------


def add(x: ArrayLike, y: ArrayLike):
    """The sum `x + y`, elementwise, with broadcasting and dtype promotion; `or` for booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.add(jnp.arange(3), 0.5)
        Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)
    """
    x, y = operands("add", x, y)
    return lax.bitwise_or(x, y) if x.aval.dtype == _BOOL else lax.add(x, y)


def subtract(x: ArrayLike, y: ArrayLike):
    """The difference `x - y`, elementwise, with broadcasting and dtype promotion.

    Raises:
        TypeError: both operands are boolean. Use `logical_xor`, or `x & ~y`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.subtract(jnp.arange(3), 1)
        Array([-1,  0,  1], dtype=int32)
    """
    return lax.sub(*operands("subtract", x, y))


def multiply(x: ArrayLike, y: ArrayLike):
    """The product `x · y`, elementwise, with broadcasting and dtype promotion; `and` for booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.multiply(jnp.arange(3), jnp.arange(3))
        Array([0, 1, 4], dtype=int32)
    """
    a, b = operands("multiply", x, y)
    if a.aval.dtype == _BOOL:
        return lax.bitwise_and(a, b)
    if (a is not x or b is not y) and trace_state.stage is None and "-products_with_masks" in _options.gradix_rewrites:
        mask, converted, value = (x, a, b) if _is_mask(x) else (y, b, a)
        is_whole = converted.aval.shape == lax.broadcast_shapes(a.aval.shape, b.aval.shape)
        if is_whole and _is_mask(mask) and a.aval.dtype in _SELECTED:
            return where(mask, value, like(value, 0))  # as XLA does in the programs of this option
    return lax.mul(a, b)


def _is_mask(x) -> bool:
    return getattr(x, "dtype", None) == _BOOL


def negative(x: ArrayLike):
    """The negative `-x`, elementwise, in the dtype of `x`.

    Raises:
        TypeError: `x` is boolean. Use `~x`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.negative(jnp.array([1.0, -2.0]))
        Array([-1.,  2.], dtype=float32)
    """
    return lax.neg(as_operand("negative", x))


def positive(x: ArrayLike, /) -> Array:
    """`+x`: the array itself.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.positive(-2.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    return as_operand("positive", x)


def absolute(x: ArrayLike, /) -> Array:
    """The absolute value `|x|`, elementwise, in the dtype of `x`; for complex `x` it is real.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.absolute(jnp.array([-2, 3]))
        Array([2, 3], dtype=int32)
        >>> jnp.absolute(jnp.array([3 + 4j, -1j]))
        Array([5., 1.], dtype=float32)

    See also:
        `jnp.fabs`, `jnp.sign`, `jnp.square`, `jnp.linalg.norm`.
    """
    x = as_operand("absolute", x)
    dtype = x.aval.dtype
    return x if dtype == _BOOL or dtype in dtypes.UNSIGNED else lax.abs(x)


abs = alias(absolute, "abs")


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value `|x|`, elementwise, in a floating dtype.

    Raises:
        TypeError: `x` is complex. Use `abs`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fabs(jnp.array([-2, 3]))
        Array([2., 3.], dtype=float32)
    """
    x = inexact_operand("fabs", x)
    if x.aval.dtype in COMPLEX:
        raise TypeError(f"fabs: x must be real, got dtype {x.aval.dtype}. Use jnp.abs for complex numbers.")
    return lax.abs(x)


def sign(x: ArrayLike, /) -> Array:
    """The sign of `x`, elementwise: -1, 0 or 1 in its dtype, and `x / |x|` for complex `x`.

    Raises:
        TypeError: `x` is boolean.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.sign(jnp.array([-2.0, 0.0, 3.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return lax.sign(as_operand("sign", x))


def square(x: ArrayLike, /) -> Array:
    """The square `x²`, elementwise, in the dtype of `x`; booleans become integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.square(jnp.arange(4))
        Array([0, 1, 4, 9], dtype=int32)
        >>> jnp.square(1 + 2j)
        Array(-3.+4.j, dtype=complex64, weak_type=True)

    See also:
        `jnp.power`, `jnp.sqrt`, `jnp.abs`.
    """
    return lax.square(numeric_operand("square", x))


# -- powers ----------------------------------------------------------------------------------------


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1` to the power `x2`, elementwise, with broadcasting and dtype promotion.

    A power with an integer as its exponent that is known while tracing, Python's or an array without
    axes, is computed by repeated multiplication, has the dtype of `x1`, and has derivatives everywhere.

    Raises:
        TypeError: `x1` is an integer, and `x2` a negative integer that is known while tracing.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.power(jnp.arange(4), 2)
        Array([0, 1, 4, 9], dtype=int32)
    """
    if not isinstance(x2, Array):
        if isinstance(x2, np.ndarray) and x2.dtype.kind in "iu":
            if x2.ndim:
                return _power_of_array(x1, as_operand("power", x2))
            x2 = int(x2)
        if isinstance(x2, (int, np.integer)):
            return lax.integer_pow(numeric_operand("power", x1), int(x2))
        x, y = operands("power", x1, x2)
        return lax.pow(x, y) if x.aval.dtype in INEXACT else _integer_power(*_integer_operands(x1, x2, x, y))
    if type(x2) is ArrayImpl and not x2.aval.ndim and x2.aval.dtype in dtypes.INTEGER and x2.aval.place is None:
        return lax.integer_pow(numeric_operand("power", x1), int(x2.host))
    return _power_of_array(x1, x2)


def _integer_operands(x1, x2, x, y):
    """Promoted operands of a power of integers; they are strongly typed where one is boolean."""
    if any(v is True or v is False or getattr(v, "dtype", None) == _BOOL for v in (x1, x2)):
        dtype = np.dtype("int32") if x.aval.dtype == _BOOL else x.aval.dtype
        return convert(x, dtype), convert(y, dtype)
    return x, y


def _power_of_array(x1, x2):
    x, y = operands("power", x1, x2)
    if x.aval.dtype not in INEXACT:
        x, y = _integer_operands(x1, x2, x, y)
        return _integer_power(convert(x, x.aval.dtype), y)
    if x2.aval.dtype in dtypes.INTEGER and (isinstance(x1, (float, complex)) or getattr(x1, "dtype", None) in INEXACT):
        exponent = (
            x2
            if x2.aval.ndim == y.aval.ndim
            else lax.broadcast_in_dim(x2, y.aval.shape, tuple(range(y.aval.ndim - x2.aval.ndim, y.aval.ndim)))
        )
        # With an integer exponent, the derivative in x is defined at 0.
        return lax.pow(x, exponent)
    return lax.pow(x, y)


def _integer_power(x, y):
    """`xʸ` of integers by squaring, over the bits of `y` that count before the result overflows."""
    largest = y if y.aval.ndim else x
    zero, one = like(largest, 0), like(largest, 1)
    out = where(lax.bitwise_and(lax.eq(x, zero), lax.ne(y, zero)), zero, one)
    for bit in range(6):
        if bit:
            x, y = lax.mul(x, x), lax.shift_right_logical(y, one)
        out = where(lax.bitwise_and(y, one), lax.mul(out, x), out)
    return out


def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1` to the power `x2`, elementwise; another name of `power`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.pow(2.0, 3)
        Array(8., dtype=float32, weak_type=True)
    """
    return power(x1, x2)


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x` to the power `y`, elementwise, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.float_power(jnp.array([2, 3]), 2)
        Array([4., 9.], dtype=float32)
    """
    return lax.pow(*inexact_operands("float_power", x, y))


# -- extremes --------------------------------------------------------------------------------------


def maximum(x: ArrayLike, y: ArrayLike):
    """The larger of `x` and `y`, elementwise, in their promoted dtype; NaN where either is NaN.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.maximum(jnp.array([1, 5]), 3)
        Array([3, 5], dtype=int32)
        >>> jnp.maximum(jnp.array([jnp.nan, 1.0]), 0.0), jnp.maximum.reduce(jnp.array([2, 7, 5]))
        (Array([nan,  1.], dtype=float32), Array(7, dtype=int32))

    See also:
        `jnp.minimum`, `jnp.fmax`, which leaves out NaN; `jnp.max`, `jnp.clip`.
    """
    return lax.max(*operands("maximum", x, y))


def minimum(x: ArrayLike, y: ArrayLike):
    """The smaller of `x` and `y`, elementwise, in their promoted dtype; NaN where either is NaN.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.minimum(jnp.array([1, 5]), 3)
        Array([1, 3], dtype=int32)
        >>> jnp.minimum(jnp.arange(3)[:, None], jnp.arange(3))
        Array([[0, 0, 0],
               [0, 1, 1],
               [0, 1, 2]], dtype=int32)

    See also:
        `jnp.maximum`, `jnp.fmin`, which leaves out NaN; `jnp.min`, `jnp.clip`.
    """
    return lax.min(*operands("minimum", x, y))


@replayed
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of `x1` and `x2`, elementwise; where one of them is NaN, the other one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5)
        Array([1. , 0.5], dtype=float32)
    """
    x, y = operands("fmax", x1, x2)
    first = ordered(lax.gt, x, y)
    return where(lax.bitwise_or(first, lax.ne(y, y)), x, y)


@replayed
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of `x1` and `x2`, elementwise; where one of them is NaN, the other one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.5)
        Array([0.5, 0.5], dtype=float32)
    """
    x, y = operands("fmin", x1, x2)
    first = ordered(lax.lt, x, y)
    return where(lax.bitwise_or(first, lax.ne(y, y)), x, y)


def ordered(compare, x, y):
    """`compare` of numbers; it compares complex ones by real part, then by imaginary part."""
    if x.aval.dtype not in COMPLEX:
        return compare(x, y)
    xr, yr = lax.real(x), lax.real(y)
    return where(lax.eq(xr, yr), compare(lax.imag(x), lax.imag(y)), compare(xr, yr))


# -- integers --------------------------------------------------------------------------------------


@replayed(host=host_implementations.gcd)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of `|x1|` and `|x2|`, elementwise, in their promoted dtype.

    Raises:
        ValueError: the operands are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.gcd(jnp.array([12, 18]), 8)
        Array([4, 2], dtype=int32)
    """
    x, y = _integer_pair("gcd", x1, x2)
    x, y = absolute(x), absolute(y)
    zero = like(x, 0)

    def step(pair):
        a, b = pair
        going = lax.ne(b, zero)
        return where(going, b, a), where(going, lax.rem(a, where(going, b, like(b, 1))), b)

    def unfinished(pair):
        left = lax.ne(pair[1], zero)
        return lax.reduce_or(left, tuple(range(left.aval.ndim)))

    shape = lax.add(x, y).aval.shape
    x, y = (lax.broadcast_in_dim(v, shape, tuple(range(len(shape) - v.aval.ndim, len(shape)))) for v in (x, y))
    found = lax.while_loop(unfinished, step, (x, y))[0]
    return convert(found, found.aval.dtype, found.aval.weak_type and not shape)


@replayed(host=host_implementations.lcm)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of `|x1|` and `|x2|`, elementwise, in their promoted dtype.

    Raises:
        ValueError: the operands are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.lcm(jnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    x, y = _integer_pair("lcm", x1, x2)
    x, y = absolute(x), absolute(y)
    divisor = gcd(x, y)
    zero = like(divisor, 0)
    none = lax.eq(divisor, zero)
    return where(none, zero, lax.mul(x, lax.div(y, where(none, like(divisor, 1), divisor))))


def _integer_pair(name: str, x1, x2):
    x, y = operands(name, x1, x2)
    if x.aval.dtype not in dtypes.INTEGER:
        raise ValueError(
            f"{name}: x1 and x2 must be integers, got dtype {x.aval.dtype}. Convert them with .astype(int)."
        )
    return x, y
