"""Taylor mode: derivatives of many orders along a curve, in one pass."""

from __future__ import annotations

from typing import Any

from gradix._api.derivatives.jet import ZeroSeries as ZeroSeries, jet as jet, zero_series as zero_series
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array as _Array

_gammas = _lazy_module("gradix.scipy.special.gammas")


def fact(n: Any) -> _Array:
    """n!, by which derivatives and coefficients of a power series differ.

    Example:
        >>> from gradix.experimental.jet import fact
        >>> fact(5)
        Array(120., dtype=float32, weak_type=True)
    """
    return _gammas.factorial(n)


__dir__ = _own_names(__name__, "ZeroSeries", "jet", "zero_series")
