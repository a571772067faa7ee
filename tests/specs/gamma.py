"""The gamma function's family."""

from __future__ import annotations

import numpy as np
from scipy import special

from gradix import lax
from tests.specs.spec import BF16, F32, Operand, Sample, Spec

POINTS = tuple(Sample((Operand(s, 0.3, 5.0),)) for s in ((), (3,), (2, 0))) + (Sample((Operand((4,), -0.9, -0.1),)),)
ORDERS = tuple(
    Sample((Operand(s, values=np.full(s, m), linear=False), Operand(s, 0.5, 4.0))) for m, s in ((1, (3,)), (2, ()))
)
EDGES = (0.0, -0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -9.5, -20.5, -20.0, np.inf, -np.inf, np.nan)
FAR = tuple(
    Sample((Operand((3,), values=np.full(3, s)), Operand((3,), values=[-20.5, -9.25, -1000.75]))) for s in (2, 5)
)
WRONG = ((lambda: lax.lgamma(np.ones(2, "i4")), TypeError, "int32"),)

SPECS = [
    Spec(
        "lgamma",
        lax.lgamma,
        POINTS,
        special.gammaln,
        (F32, BF16),
        rtol=1e-5,
        errors=WRONG,
        edge=(0.0, -0.0, 1.0, 2.0, -1.0, -2.0, 30.0, np.inf, -np.inf, np.nan),
    ),
    Spec(
        "digamma",
        lax.digamma,
        POINTS,
        special.psi,
        (F32, BF16),
        rtol=1e-5,
        edge=(0.0, -0.0, 1.0, -1.0, 30.0, np.inf, -np.inf, np.nan),
    ),
    Spec(
        "polygamma",
        lax.polygamma,
        ORDERS,
        lambda m, x: special.polygamma(m.astype(int), x),
        (F32,),
        rtol=1e-5,
        edge=EDGES,
    ),
    Spec(
        "zeta",
        lax.zeta,
        tuple(Sample((Operand(s, 1.5, 4.0), Operand(s, 0.5, 3.0))) for s in ((), (3,))) + FAR,
        special.zeta,
        (F32,),
        derivative="unknown",  # in the exponent, where q > 0 does not hold
        rtol=1e-5,
        edge=EDGES,
    ),
]
