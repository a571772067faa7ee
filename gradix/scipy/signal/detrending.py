"""`detrend`, which removes the trends of signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.dimensions.expression import is_count
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import convert, inexact_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: Any = None
) -> Array:
    """Signals minus their mean, or minus the line that fits them in least squares.

    Args:
        data: the signals.
        axis: the axis of time.
        type: "linear" or "constant".
        bp: an integer or a sequence of integers, the places where another line begins.
        overwrite_data: must be None, because arrays are immutable.

    Returns:
        An array of the shape of `data`, of a floating or complex dtype.

    Raises:
        ValueError: `type` has another value, or a place is outside of the signal.
        NotImplementedError: `overwrite_data` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> signal.detrend(jnp.array([1.0, 2.0, 4.0]), type="constant").round(3)
        Array([-1.333, -0.333,  1.667], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError(
            "overwrite_data argument not implemented, because arrays are immutable. Use the result."
        )
    if type not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', got {type!r}.")
    x = inexact_operand("detrend", data)
    x = convert(x, x.aval.dtype)
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    if type == "constant":
        return x - jnp.mean(x, axis, keepdims=True)
    if is_count(n):
        if np.any(np.asarray(bp)):
            raise ValueError(f"detrend: bp={bp} divides an axis of {n} elements, which values decide. Leave it out.")
        return _without_line(x, axis)
    ends = sorted({0, n, *[int(b) for b in np.ravel(np.asarray(bp))]})
    if ends[0] < 0 or ends[-1] > n:
        raise ValueError(
            f"Breakpoints must be non-negative and less than length of data along given axis; got bp={bp} "
            f"for length {n}."
        )
    parts = [lax.slice_in_dim(x, a, b, axis=axis) for a, b in zip(ends, ends[1:])]
    return lax.concatenate([_without_line(p, axis) for p in parts], axis) if parts else x


def _without_line(x, axis: int):
    n = x.aval.shape[axis]
    x = x - jnp.mean(x, axis, keepdims=True)
    shape = [n if i == axis else 1 for i in range(x.aval.ndim)]
    if is_count(n):
        times = jnp.arange(n) - jnp.asarray(n - 1) / 2
        # of one element the time is 0, and else the squares are at least 1/2
        times = (times / jnp.sqrt(jnp.maximum((times * times).sum(), 0.5))).reshape(shape).astype(x.aval.dtype)
        return x - times * jnp.sum(times * x, axis, keepdims=True)
    if n < 2:
        return x
    # The times are scaled to norm 1, so that their sums do not overflow in 16 bits.
    time = np.arange(n) - (n - 1) / 2
    time = (time / np.sqrt((time * time).sum())).reshape(shape)
    time = jnp.asarray(time.astype(x.aval.dtype))
    return x - time * jnp.sum(time * x, axis, keepdims=True)
