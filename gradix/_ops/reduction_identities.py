"""The neutral elements of max, min and and, per dtype."""

from __future__ import annotations

from functools import cache

import numpy as np

from gradix._core import dtypes


@cache
def lowest(dtype):
    """The neutral element of max: -inf, the smallest integer, False."""
    return _extreme(dtype, low=True)


@cache
def highest(dtype):
    """The neutral element of min: inf, the largest integer, True."""
    return _extreme(dtype, low=False)


@cache
def all_bits(dtype):
    """The neutral element of and: every bit set."""
    return np.ones((), dtype)[()] if dtype in dtypes.BOOL else np.array(-1).astype(dtype)[()]


def _extreme(dtype, low: bool):
    if dtype in dtypes.BOOL:
        return np.bool_(not low)
    if dtype in dtypes.INTEGER:
        info = dtypes.iinfo(dtype)
        return np.array(info.min if low else info.max, dtype)[()]
    infinity = np.array(-np.inf if low else np.inf).astype(dtype)[()]
    real = infinity.real if dtype in dtypes.COMPLEX else infinity
    if np.isinf(real.astype(np.float32) if dtype in dtypes.NARROW_FLOAT else real):
        return infinity
    info = dtypes.finfo(dtype)  # some small floats have no infinity
    return np.array(info.min if low else info.max).astype(dtype)[()]
