"""Powers on the CPU."""
from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix._core.dtypes import FLOAT
from gradix._core.jaxpr import Literal
from gradix._ops.transcendental import pow_p
from gradix._platforms.records import Rewrite

_EASY = frozenset((-1.0, 0.0, 0.5, 1.0, 2.0, 3.0))        # XLA makes roots and products of these powers
_HALVES = frozenset((np.dtype("float16"), np.dtype(ml_dtypes.bfloat16)))


def _has_easy_exponent(site) -> bool:
    exponent = site.eqn.invars[1] if site.eqn is not None else None
    return (type(exponent) is Literal and exponent.aval.dtype in FLOAT and float(exponent.val) in _EASY
            and site.out.dtype not in _HALVES)


def _plain_power(em, site, x, y):
    x, y = [em.spread(v, site.out.shape) for v in (x, y)]
    return em.op("power", site.out, x, em.convert(y, site.out.dtype))


REWRITES = (
    Rewrite("powers_as_products", (pow_p,), _plain_power, "docs/kernels.md#how", _has_easy_exponent),
)
