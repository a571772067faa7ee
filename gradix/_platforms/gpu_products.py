"""Products of integers of 8 bits over few elements, which XLA:GPU multiplies wrongly.

A tile of the tensor cores has 32 elements along the axis that is summed. In a product of int8
matrices over three, XLA's fusion counts elements twice.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.dot import dot_general_p
from gradix._platforms.records import CORRECTNESS, Rewrite

_TILE = 32
_SUM = np.dtype("int32")


def _is_short(site) -> bool:
    x, y = [v.aval for v in site.values]
    (axes, _), _ = site.params["dimension_numbers"]
    is_narrow = all(a.dtype in dtypes.INTEGER and a.dtype.itemsize == 1 for a in (x, y))
    return is_narrow and site.is_static() and prod([x.shape[i] for i in axes]) < _TILE


def _widened(em, site, x, y):
    out = make_aval(site.out.shape, _SUM)
    wide = [em.convert(v, _SUM) for v in (x, y)]
    return em.convert(site.plain(em, *wide, out=out, preferred_element_type=_SUM), site.out.dtype)


REWRITES = (Rewrite("short_integer_products", (dot_general_p,), _widened, _is_short, CORRECTNESS, ("0.11.2",)),)
