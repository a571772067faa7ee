"""Rounding: floor, ceil and round."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

from gradix._core.dtypes import FLOAT
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.families import ZERO, Elementwise
from gradix._ops.operands import operands

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class RoundingMethod(enum.IntEnum):
    """How `lax.round` treats halves.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> x = jnp.array([0.5, 1.5, 2.5])
        >>> lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)
        Array([1., 2., 3.], dtype=float32)
        >>> lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
        Array([0., 2., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _host_round(x, *, rounding_method):
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    # -0.0 stays -0.0
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


def _lower_round(em, out, x, *, rounding_method):
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return em.op("round_nearest_even" if even else "round_nearest_afz", out, x)


floor_p = Elementwise("floor", np.floor, ZERO, hlo="floor", dtypes=FLOAT)
ceil_p = Elementwise("ceil", np.ceil, ZERO, hlo="ceil", dtypes=FLOAT)
round_p = Elementwise("round", _host_round, ZERO, hlo=_lower_round, dtypes=FLOAT)


def floor(x: ArrayLike) -> Array:
    """The largest whole number not above `x`.

    Example:
        >>> from gradix import lax
        >>> lax.floor(1.7)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(floor_p, operands("floor", x), {})


def ceil(x: ArrayLike) -> Array:
    """The smallest whole number not below `x`.

    Example:
        >>> from gradix import lax
        >>> lax.ceil(1.2)
        Array(2., dtype=float32, weak_type=True)
    """
    return bind(ceil_p, operands("ceil", x), {})


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number; halves away from zero, or to even.

    Example:
        >>> from gradix import lax
        >>> lax.round(2.5), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN)
        (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    return bind(round_p, operands("round", x), {"rounding_method": RoundingMethod(rounding_method)})
