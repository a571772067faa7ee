"""Bessel functions."""
from __future__ import annotations

import numpy as np
from scipy import special

from gradix import lax
from tests.specs.spec import BF16, F32, Operand, Sample, Spec

_SAMPLES = tuple(Sample((Operand(s, lo, hi),)) for s, lo, hi in (((), -3, 3), ((4,), -30, 30), ((2, 0), 0, 1), ((2, 3), -1, 1)))
_EDGE = (0.0, -0.0, 1e-30, 1.0, -8.0, 8.0, 8.5, 1e30, np.inf, -np.inf, np.nan)

SPECS = [
    Spec("bessel_i0e", lax.bessel_i0e, _SAMPLES, special.i0e, (F32, BF16), edge=_EDGE),
    Spec("bessel_i1e", lax.bessel_i1e, _SAMPLES, special.i1e, (F32, BF16), edge=_EDGE),
]
