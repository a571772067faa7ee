"""Convolution in NumPy: windows of the input as rows, one matrix product per group."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._ops.basis import inverse
from gradix._ops.windows.host import stretched, windows


def convolve(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
):
    """The convolution of NumPy arrays of one dtype."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x, w = lhs.transpose(lhs_spec), rhs.transpose(rhs_spec)
    x = stretched(x, (1, 1, *lhs_dilation), ((0, 0), (0, 0), *padding))
    seen = windows(x, (1, 1, *w.shape[2:]), (1, 1, *window_strides), (1, 1, *rhs_dilation))
    k = len(window_strides)
    batch, features, *places = seen.shape[: 2 + k]
    groups = feature_group_count * batch_group_count
    out, inner = w.shape[0] // groups, prod(w.shape[1:])
    n = batch // batch_group_count
    grouped = seen.reshape(
        (batch_group_count, n, feature_group_count, features // feature_group_count, *places, *w.shape[2:])
    )
    # to (batch group, feature group, batch, places, feature, window)
    grouped = grouped.transpose((0, 2, 1, *range(4, 4 + k), 3, *range(4 + k, 4 + 2 * k)))
    rows = grouped.reshape((groups, n * prod(places), inner))
    columns = w.reshape((groups, out, inner)).transpose((0, 2, 1))
    y = np.matmul(rows, columns).reshape((groups, n, *places, out))
    y = y.transpose((1, 0, 2 + k, *range(2, 2 + k))).reshape((n, groups * out, *places))
    return y.transpose(inverse(out_spec))
