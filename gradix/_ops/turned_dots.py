"""Products of transposed matrices: XLA:CPU's quick library takes no transposed first operand, and its other one is slow."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import apart

_REAL = (np.dtype("float32"), np.dtype("float64"))
_LEAST = 256            # rows, columns and terms of a product that is worth a pass over an operand or the result


def emit_turned_dots(em, out, x, y, contracted, batched, product: Callable):
    """`product(out, x, y, contracted)` of two operands, in the form that the library is quick at.

    Args:
        contracted: the axes, one list for each operand, that are summed over.
    """
    (left, right), (x_batch, _) = contracted, batched
    if em.platform != "cpu" or x_batch or len(left) != 1 or x.aval.ndim > 2 or y.aval.ndim > 2:
        return product(out, x, y, contracted)
    x, left = _unturned(x, left)
    y, right = _unturned(y, right)
    sizes = (*x.aval.shape, *y.aval.shape)
    if out.ndim == 2 and left == [0] and out.dtype in _REAL and all(type(n) is int for n in sizes):
        (terms, rows), columns = x.aval.shape, out.shape[1]
        if min(terms, rows, columns) >= _LEAST and right == [0]:
            # Apart, as XLA would make one product of each again, which goes to its slow library.
            x = apart(em, "turned", make_aval((rows, terms), x.aval.dtype), lambda x: em.transpose(x, (1, 0)), x)
            return apart(em, "product", out, lambda x, y: product(out, x, y, ([1], right)), x, y)
        if terms >= _LEAST and right == [1] and terms * (rows + columns) >= 2 * rows * columns:
            turned = make_aval(out.shape[::-1], out.dtype)
            z = apart(em, "product", turned, lambda y, x: product(turned, y, x, (right, left)), y, x)
            return em.transpose(z, (1, 0))
    return product(out, x, y, (left, right))


def _unturned(x, axes):
    """What `x` is the transpose of, and its axes there: XLA would move a whole matrix for its product with a vector."""
    if x.turned is None:
        return x, axes
    source, permutation = x.turned
    return source, [permutation[i] for i in axes]
