"""Sums of long columns side by side, as sums of a batch are, written as products with ones.

XLA:CPU gives sums of floats to a library that takes 50 to 300 times as long as the memory does where there are more than 16 384
columns, and twice as long where there are some thousands. Its products read row after row.
"""
from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import apart

_COLUMNS = 1 << 12
_DTYPES = frozenset((np.dtype("float32"), np.dtype("float64")))


def emit_column_sums(em, out, x, axes):
    """The sum of `x` over `axes`, or None where it is not one of many columns, rows after rows."""
    shape = x.aval.shape
    if em.platform != "cpu" or out.dtype not in _DTYPES or not all(type(n) is int for n in shape):
        return None
    summed = [i for i, n in enumerate(shape) if n > 1 and i in axes]
    if not summed or any(n > 1 and i not in axes for i, n in enumerate(shape[:summed[-1]]) if i > summed[0]):
        return None
    outer, rows, columns = (prod(s) for s in (shape[:summed[0]], shape[summed[0]:summed[-1] + 1], shape[summed[-1] + 1:]))
    if columns < _COLUMNS or not outer:
        return None
    ones, sums = make_aval((outer, rows), out.dtype), make_aval((outer, columns), out.dtype)
    attrs = ("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
             "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>")

    def write(x):
        return em.op("dot_general", sums, em.constant(1, ones), x, attrs=attrs)
    # On its own: what the elements are made of would be computed in the product, one by one.
    return em.reshape(apart(em, "column_sums", sums, write, em.reshape(x, (outer, rows, columns))), out.shape)
