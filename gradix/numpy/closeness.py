"""Whether arrays are equal, or nearly so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.logic import equal, isfinite, isnan
from gradix.numpy.promotion import as_operand, common_shape, convert, inexact_operands, number

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)


@replayed
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether `|a - b| <= atol + rtol·|b|`, elementwise; infinities of one sign are close.

    Args:
        a: an array of values.
        b: an array of reference values.
        rtol: the tolerance relative to `|b|`.
        atol: the absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Booleans of the broadcast shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]))
        Array([ True, False], dtype=bool)
    """
    if not isinstance(a, Array) and not isinstance(b, Array) and np.ndim(a) == np.ndim(b) == 0:
        a = as_operand("isclose", a)
    if any(isinstance(x, Array) and dtypes.is_extended(x.aval.dtype) for x in (a, b)):
        return equal(a, b)  # Random keys have no distance.
    x, y = inexact_operands("isclose", a, b)
    dtype = dtypes.real_dtype(x.aval.dtype)
    rtol, atol = (_tolerance(t, dtype) for t in (rtol, atol))
    near = lax.le(lax.abs(lax.sub(x, y)), lax.add(atol, lax.mul(rtol, lax.abs(y))))
    close = lax.bitwise_or(lax.eq(x, y), lax.bitwise_and(isfinite(y), near))
    if equal_nan:
        close = lax.bitwise_or(close, lax.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return close


def _tolerance(t, dtype) -> Array:
    return number(t, dtype) if type(t) in (int, float) else convert(as_operand("isclose", t), dtype)


@replayed
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close, in the sense of `isclose`.

    Args:
        a, b: arrays that broadcast.
        rtol: the tolerance relative to `|b|`.
        atol: the absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        A boolean scalar.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0 + 1e-7]))
        Array(True, dtype=bool)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


@replayed
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and equal elements, as a boolean scalar.

    Args:
        a1, a2: arrays of any shape.
        equal_nan: whether NaN equals NaN.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array_equal(jnp.arange(3), jnp.array([0, 1, 2]))
        Array(True, dtype=bool)
    """
    x, y = as_operand("array_equal", _listed(a1)), as_operand("array_equal", _listed(a2), 1)
    if x.aval.shape != y.aval.shape:
        return lax.full((), False, _BOOL)
    same = equal(x, y)
    if equal_nan:
        same = lax.bitwise_or(same, lax.bitwise_and(isnan(x), isnan(y)))
    return _all(same)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays broadcast and then have equal elements, as a boolean scalar.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array_equiv(jnp.ones(3), 1)
        Array(True, dtype=bool)
    """
    x, y = as_operand("array_equiv", _listed(a1)), as_operand("array_equiv", _listed(a2), 1)
    try:
        common_shape("array_equiv", x, y)
    except ValueError:
        return lax.full((), False, _BOOL)
    return _all(equal(x, y))


def _listed(x):
    return np.asarray(x) if isinstance(x, (list, tuple)) else x


def _all(x):
    return convert(lax.reduce_and(x, tuple(range(x.aval.ndim))), _BOOL)
