"""Stacks of products of very small matrices, as sums over the contracted axis: XLA:CPU gives each product a library call."""
from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.basis import free_axes
from gradix._ops.canonicalization import i64_array

_REAL = (np.dtype("float32"), np.dtype("float64"))
_FEWEST, _SIZE = 64, 7              # products, and rows, columns and terms of one


def emit_small_dots(em, out, x, y, contracted, batched):
    """The contraction of two operands of the result's dtype, or None where a product of matrices is quicker."""
    (left, right), (x_batch, y_batch) = contracted, batched
    if em.platform != "cpu" or out.dtype not in _REAL or len(left) != 1 or not out.size:
        return None
    if not all(type(n) is int for n in (*x.aval.shape, *y.aval.shape)):
        return None
    rows, columns = free_axes(x.aval.ndim, left, x_batch), free_axes(y.aval.ndim, right, y_batch)
    count, terms = prod(x.aval.shape[i] for i in x_batch), x.aval.shape[left[0]]
    m, n = prod(x.aval.shape[i] for i in rows), prod(y.aval.shape[i] for i in columns)
    if count < _FEWEST or not 0 < terms <= _SIZE or max(m, n) > _SIZE:
        return None
    x = em.reshape(em.transpose(x, (*left, *x_batch, *rows)), (terms, count, m))
    y = em.reshape(em.transpose(y, (*right, *y_batch, *columns)), (terms, count, n))
    whole, total = make_aval((count, m, n), out.dtype), None
    for i in range(terms):
        factors = [em.broadcast_in_dim(_row(em, v, i), whole, dims) for v, dims in ((x, (0, 1)), (y, (0, 2)))]
        term = em.op("multiply", whole, *factors)
        total = term if total is None else em.op("add", whole, total, term)
    return em.reshape(total, out.shape)


def _row(em, x, i: int):
    """`x[i]`."""
    shape = x.aval.shape[1:]
    part = em.op("slice", make_aval((1, *shape), x.aval.dtype), x, attrs=(
        f"start_indices = {i64_array((i, 0, 0))}, limit_indices = {i64_array((i + 1, *shape))}, "
        f"strides = {i64_array((1, 1, 1))}"))
    return em.reshape(part, shape)
