"""Windows over NumPy arrays: dilated and padded inputs, and views of the windows in them."""

from __future__ import annotations

import numpy as np


def stretched(x, dilation, padding, fill=0):
    """`x` with `fill` between its elements and around it; negative padding crops."""
    if all(d == 1 for d in dilation) and not any(low or high for low, high in padding):
        return x
    full = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(x.shape, dilation)]
    wide = [max(n + max(low, 0) + max(high, 0), 0) for n, (low, high) in zip(full, padding)]
    out = np.full(wide, fill, x.dtype)
    out[_places_of(full, padding, dilation)] = x
    return out[tuple([slice(max(-low, 0), max(n - max(-high, 0), 0)) for n, (low, high) in zip(wide, padding)])]


def unstretched(wide, shape, dilation, padding):
    """The transpose of `stretched`; elements that it crops are zero."""
    full = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(shape, dilation)]
    crops = [(max(-low, 0), max(-high, 0)) for low, high in padding]
    whole = np.pad(wide, crops) if any(a or b for a, b in crops) else wide
    return whole[_places_of(full, padding, dilation)]


def _places_of(full, padding, dilation) -> tuple:
    return tuple([slice(max(low, 0), max(low, 0) + n, d) for n, (low, _), d in zip(full, padding, dilation)])


def windows(x, sizes, strides, dilation):
    """A view of all windows: the axes of their places, then those of the positions in a window."""
    extents = [0 if k == 0 else (k - 1) * d + 1 for k, d in zip(sizes, dilation)]
    counts = [max((n - e) // s + 1, 0) for n, e, s in zip(x.shape, extents, strides)]
    if 0 in counts or 0 in sizes:
        return np.zeros((*counts, *sizes), x.dtype)
    steps = [*[s * t for s, t in zip(strides, x.strides)], *[d * t for d, t in zip(dilation, x.strides)]]
    return np.lib.stride_tricks.as_strided(x, (*counts, *sizes), steps, writeable=False)
