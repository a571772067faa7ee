"""Convolution in NumPy: windows of the input as rows, one matrix product per group."""
from __future__ import annotations

from math import prod

import numpy as np

from gradix._ops.basis import inverse


def convolve(lhs, rhs, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
             feature_group_count=1, batch_group_count=1):
    """The convolution of NumPy arrays of one dtype."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x, w = lhs.transpose(lhs_spec), rhs.transpose(rhs_spec)
    windows = _windows(_stretched(x, lhs_dilation, padding), w.shape[2:], window_strides, rhs_dilation)
    groups = feature_group_count * batch_group_count
    batch, features = windows.shape[:2]
    places = windows.shape[2:2 + len(window_strides)]
    out, inner = w.shape[0] // groups, w.shape[1] * prod(w.shape[2:])
    n = batch // batch_group_count
    grouped = windows.reshape((batch_group_count, n, feature_group_count, features // feature_group_count,
                               *windows.shape[2:]))
    k = len(places)
    # to (batch group, feature group, batch, places, feature, window)
    grouped = grouped.transpose((0, 2, 1, *range(4, 4 + k), 3, *range(4 + k, 4 + 2 * k)))
    rows = grouped.reshape((groups, n * prod(places), inner))
    columns = w.reshape((groups, out, inner)).transpose((0, 2, 1))
    y = np.matmul(rows, columns).reshape((groups, n, *places, out))
    y = y.transpose((1, 0, 2 + k, *range(2, 2 + k))).reshape((n, groups * out, *places))
    return y.transpose(inverse(out_spec))


def _stretched(x, dilation, padding):
    """`x` with zeros between its elements and around it; negative padding crops."""
    space = x.shape[2:]
    if all(d == 1 for d in dilation) and not any(low or high for low, high in padding):
        return x
    full = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(space, dilation)]
    wide = [max(n + max(low, 0) + max(high, 0), 0) for n, (low, high) in zip(full, padding)]
    out = np.zeros((*x.shape[:2], *wide), x.dtype)
    inside = tuple([slice(max(low, 0), max(low, 0) + n, d) for n, (low, _), d in zip(full, padding, dilation)])
    out[(..., *inside)] = x
    crop = tuple([slice(max(-low, 0), max(n - max(-high, 0), 0)) for n, (low, high) in zip(wide, padding)])
    return out[(..., *crop)]


def _windows(x, kernel, strides, dilation):
    """Views of the windows: batch, feature, places, positions in the window."""
    n = len(kernel)
    if not n:
        return x
    extents = [0 if k == 0 else (k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    counts = [max((m - e) // s + 1, 0) for m, e, s in zip(x.shape[2:], extents, strides)]
    if 0 in counts or 0 in kernel:
        return np.zeros((*x.shape[:2], *counts, *kernel), x.dtype)
    steps = x.strides[2:]
    return np.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *counts, *kernel),
        (*x.strides[:2], *[s * t for s, t in zip(strides, steps)], *[d * t for d, t in zip(dilation, steps)]),
        writeable=False)
