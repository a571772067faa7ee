"""Signals cut into overlapping segments and added up again, and windows for segments."""

from __future__ import annotations

import warnings
from math import ceil
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix.numpy.promotion import as_operand, convert

_signal = lazy_module("scipy.signal")


def cut(x, length: int, step: int):
    """Segments of signals along the last axis, of shape (..., count, length).

    A signal must have at least one segment. It is divided into blocks of `step`, of which the
    segments are concatenated, so that no gather is needed.
    """
    lead, size = x.aval.shape[:-1], x.aval.shape[-1]
    count, per = (size - length) // step + 1, ceil(length / step)
    needed = (count + per - 1) * step
    x = x[..., :needed]
    x = lax.pad(x, np.zeros((), x.aval.dtype), [*[(0, 0, 0)] * len(lead), (0, needed - x.aval.shape[-1], 0)])
    blocks = lax.reshape(x, (*lead, count + per - 1, step))
    parts = [lax.slice_in_dim(blocks, i, i + count, axis=len(lead)) for i in range(per)]
    return lax.concatenate(parts, len(lead) + 1)[..., :length]


def overlap_add(x, step: int):
    """The sum of segments of which each starts `step` after the previous one; transposed `cut`."""
    *lead, count, length = x.aval.shape
    per, rank = ceil(length / step), x.aval.ndim
    zero = np.zeros((), x.aval.dtype)
    x = lax.pad(x, zero, [*[(0, 0, 0)] * (rank - 1), (0, per * step - length, 0)])
    total: Any = None
    for i in range(per):
        block = lax.pad(
            x[..., i * step : (i + 1) * step], zero, [*[(0, 0, 0)] * len(lead), (i, per - 1 - i, 0), (0, 0, 0)]
        )
        total = block if total is None else total + block
    return lax.reshape(total, (*lead, (count + per - 1) * step))[..., : (count - 1) * step + length]


def window_of(window, nperseg: int | None, size: int, dtype):
    """The values of a window, and the length of its segments.

    Args:
        window: a name or tuple as for `scipy.signal.get_window`, or the values of the window.
        nperseg: the requested length; None for 256, or the length of the given values.
        size: the length of the signal, which segments do not exceed.
        dtype: the dtype of the values, if they are real.

    Raises:
        ValueError: the lengths do not fit each other.
    """
    if nperseg is not None and nperseg < 1:
        raise ValueError(f"nperseg must be a positive integer, got {nperseg}.")
    if isinstance(window, (str, tuple)):
        if nperseg is not None and nperseg > size:
            warnings.warn(
                f"nperseg={nperseg} is greater than the signal's length {size}; using nperseg={size}.", stacklevel=5
            )
        nperseg = min(256 if nperseg is None else nperseg, size)
        return jnp.asarray(_signal.get_window(window, nperseg).astype(dtype)), nperseg
    values = as_operand("window", jnp.asarray(window))
    values = convert(values, values.aval.dtype if values.aval.dtype in COMPLEX else dtype)
    if values.aval.ndim != 1:
        raise ValueError(f"window must be 1-D, got shape {values.aval.shape}.")
    length = values.aval.shape[0]
    if length > size:
        raise ValueError(f"window is longer than input signal: it has {length} elements, and the signal {size}.")
    if nperseg is not None and nperseg != length:
        raise ValueError(f"value specified for nperseg is different from length of window: {nperseg} and {length}.")
    return values, length


def overlap_of(noverlap: int | None, nperseg: int) -> int:
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if noverlap >= nperseg:
        raise ValueError(f"noverlap must be less than nperseg, got {noverlap} and {nperseg}.")
    return noverlap


_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def extended(x, boundary: str | None, n: int):
    """The signal with `n` values before and after it."""
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(_BOUNDARIES)}.")
    if boundary is None or not n:
        return x
    if boundary in ("even", "odd") and n > x.aval.shape[-1] - 1:
        raise ValueError(
            f"The extension length n ({n}) is too big: it must be less than the length of the signal, "
            f"{x.aval.shape[-1]}. Use shorter segments, or boundary='zeros'."
        )
    widths = [(0, 0)] * (x.aval.ndim - 1) + [(n, n)]
    if boundary == "zeros":
        return jnp.pad(x, widths)
    if boundary == "constant":
        return jnp.pad(x, widths, mode="edge")
    return jnp.pad(x, widths, mode="reflect", reflect_type=boundary)


def float_of(x):
    """The signal in a floating or complex dtype that Fourier transforms accept."""
    dtype = dtypes.to_inexact_dtype(x.aval.dtype)
    return convert(x, np.dtype("float32") if dtype.itemsize < 4 else dtype)
