"""Host rules of functions of neural networks, by NumPy; see `gradix.numpy.host_implementations`."""

from __future__ import annotations

import math

import numpy as np

_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))


def softplus(x):
    if x.dtype not in _FLOATS:
        return None
    zero = np.zeros((), x.dtype)
    return lambda x: np.logaddexp(x, zero)


def standardize(
    x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm="fast"
):
    """For a row; it computes with numbers where the program has arrays of one element."""
    if (
        x.dtype not in _FLOATS
        or len(x.shape) != 1
        or not x.size
        or type(axis) is not int
        or axis not in (0, -1)
    ):
        return None
    if (
        not (mean is variance is where is None)
        or algorithm != "fast"
        or type(epsilon) is not float
        or not epsilon >= 0
    ):
        return None
    number, ones = x.dtype.type, np.ones(x.size, x.dtype)
    count, epsilon, zero = number(x.size), number(epsilon), number(0)

    def standard(x):
        center = np.dot(ones, x) / count
        spread = np.dot(x, x) / count - center * center
        if spread < zero:
            spread = zero
        return np.multiply(np.subtract(x, center), number(1) / number(math.sqrt(spread + epsilon)))

    return standard
