"""dot_general, convolutions, windows."""
from __future__ import annotations

import numpy as np

from gradix import lax
from tests.specs.spec import BF16, C64, F16, F32, I8, I32, U8, Operand, Sample, Spec

DOTS = (
    ((3,), (3,), (((0,), (0,)), ((), ()))), ((2, 3), (3, 4), (((1,), (0,)), ((), ()))), ((2, 3), (4, 3), (((1,), (1,)), ((), ()))),
    ((2,), (3,), (((), ()), ((), ()))), ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))), ((2, 5, 3), (4, 3, 5), (((2,), (1,)), ((1,), (2,)))),
    ((2, 3, 4), (3, 4, 2), (((1, 2), (0, 1)), ((), ()))), ((2, 0), (0, 3), (((1,), (0,)), ((), ()))), ((0, 2), (2, 3), (((1,), (0,)), ((), ()))),
)


def _dot(x, y, dimension_numbers):
    (xc, yc), (xb, yb) = dimension_numbers
    xs, ys = list(range(x.ndim)), [x.ndim + i for i in range(y.ndim)]
    for i, j in (*zip(xc, yc), *zip(xb, yb)):
        ys[j] = xs[i]
    out = [xs[i] for i in xb] + [i for k, i in enumerate(xs) if k not in (*xc, *xb)] + [j for k, j in enumerate(ys) if k not in (*yc, *yb)]
    return np.einsum(x, xs, y, ys, out)


SPECS = [
    Spec("dot_general", lax.dot_general, tuple(Sample((Operand(a), Operand(b)), {"dimension_numbers": d}) for a, b, d in DOTS), _dot,
         (F32, F16, BF16, I32, I8, U8, C64), rtol=1e-5, errors=(
        (lambda: lax.dot_general(np.ones((2, 3), "f4"), np.ones((4, 2), "f4"), (((1,), (0,)), ((), ()))), TypeError, "3.*4"),)),
]
