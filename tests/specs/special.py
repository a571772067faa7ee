"""Bessel functions, incomplete gamma and beta functions."""

from __future__ import annotations

import numpy as np
from scipy import special

from gradix import lax
from tests.specs.spec import BF16, F32, Operand, Sample, Spec

_SAMPLES = tuple(
    Sample((Operand(s, lo, hi),)) for s, lo, hi in (((), -3, 3), ((4,), -30, 30), ((2, 0), 0, 1), ((2, 3), -1, 1))
)
_EDGE = (0.0, -0.0, 1e-30, 1.0, -8.0, 8.0, 8.5, 1e30, np.inf, -np.inf, np.nan)
_ENDS = (0.0, -0.0, 1e-30, 0.5, 1.0, 1.5, 40.0, -1.0, np.inf, -np.inf, np.nan)


def _shapes(lo, hi):
    """Operands of one shape, among them a large one and its mean."""
    return (
        *(Sample((Operand(s, lo, hi), Operand(s, 0.1, 8.0))) for s in ((), (5,), (2, 0))),
        Sample((Operand((3, 1), 30.0, 33.0), Operand((1, 2), 28.0, 36.0))),
        Sample((Operand((2,), values=(250.0, 300.0)), Operand((2,), 240.0, 320.0))),
    )


_BETA = tuple(
    Sample((*[Operand(v.shape, values=v, linear=False) for v in np.asarray(ab, float)], Operand(shape, 0.05, 0.95)))
    for ab, shape in (
        ((2.0, 3.0), ()),
        (([0.5, 20.0, 4.0], [0.3, 30.0, 50.0]), (3,)),
        (([[300.0]], [[250.0]]), (1, 2)),
        (np.ones((2, 2, 0)), (2, 0)),
    )
)


def _slope(a, x, h=1e-5):
    """∂P/∂a by differences of differences (Richardson)."""

    def central(h):
        return (special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h)

    return (4 * central(h * 50) - central(h * 100)) / 3


def _moved(a, x):
    return -_slope(a, x) / np.exp((a - 1) * np.log(x) - x - special.gammaln(a))


SPECS = [
    Spec("bessel_i0e", lax.bessel_i0e, _SAMPLES, special.i0e, (F32, BF16), edge=_EDGE),
    Spec("bessel_i1e", lax.bessel_i1e, _SAMPLES, special.i1e, (F32, BF16), edge=_EDGE),
    Spec(
        "igamma",
        lax.igamma,
        _shapes(0.2, 6.0),
        special.gammainc,
        (F32, BF16),
        edge=_ENDS,
        second=False,
        rtol=4e-6,
        errors=((lambda: lax.igamma(np.ones(2, "i4"), np.ones(2, "i4")), TypeError, "int32"),),
    ),
    Spec(
        "igammac", lax.igammac, _shapes(0.2, 6.0), special.gammaincc, (F32, BF16), edge=_ENDS, second=False, rtol=4e-6
    ),
    Spec(
        "igamma_grad_a",
        lax.igamma_grad_a,
        _shapes(0.2, 6.0),
        _slope,
        (F32, BF16),
        edge=_ENDS,
        derivative="partial",
        rtol=1e-5,
    ),
    Spec(
        "random_gamma_grad",
        lax.random_gamma_grad,
        _shapes(0.2, 6.0),
        _moved,
        (F32, BF16),
        edge=_ENDS,
        derivative="none",
        rtol=1e-5,
    ),
    Spec(
        "regularized_incomplete_beta",
        lax.betainc,
        _BETA,
        special.betainc,
        (F32, BF16),
        rtol=1e-5,
        edge=(0.0, 1e-30, 0.3, 1.0, 3.0, 40.0, -1.0, np.inf, np.nan),
    ),
]
