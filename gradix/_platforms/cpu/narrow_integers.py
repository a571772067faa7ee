"""Operations on integers of two and four bits, which XLA:CPU stores in bytes, done on the bytes."""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import NARROW_INTEGER, iinfo
from gradix._ops.bitwise import population_count_p
from gradix._ops.indexing.gather import gather_p
from gradix._ops.joining import concatenate_p
from gradix._ops.sorting.sort import sort_p
from gradix._platforms.records import CORRECTNESS, Rewrite

_UNSIGNED, _BYTE = np.dtype("uint8"), np.dtype("int8")


def _is_narrow(dtype) -> bool:
    return dtype in NARROW_INTEGER


def _has_two_bits(site) -> bool:
    return any(_is_narrow(v.aval.dtype) and iinfo(v.aval.dtype).bits == 2 for v in site.values)


def _counted(em, site, x):
    """Count the bits in a byte with the others cleared, as XLA also counts copies of the sign."""
    byte = make_aval(x.aval.shape, _UNSIGNED)
    own = em.op("and", byte, em.convert(x, _UNSIGNED), em.splat((1 << iinfo(x.aval.dtype).bits) - 1, byte))
    return em.convert(em.op("popcnt", byte, own), site.out.dtype)


def _wide(aval):
    return make_aval(aval.shape, _BYTE) if _is_narrow(aval.dtype) else aval


def _as_bytes(em, site, *values):
    """Compute on bytes: with integers of two bits XLA ends the process or gives wrong results."""
    values = [em.convert(v, _BYTE) if _is_narrow(v.aval.dtype) else v for v in values]
    several = site.primitive.multiple_results
    outs = site.out if several else [site.out]
    wide = [_wide(out) for out in outs]
    found = site.primitive.lower(em, wide if several else wide[0], *values, **site.params)
    narrow = [
        em.convert(v, out.dtype) if _is_narrow(out.dtype) else v for v, out in zip(found if several else [found], outs)
    ]
    return narrow if several else narrow[0]


REWRITES = (
    Rewrite(
        "bits_of_narrow_integers", (population_count_p,), _counted, lambda site: _is_narrow(site.out.dtype), CORRECTNESS
    ),
    Rewrite("two_bits_as_bytes", (concatenate_p, sort_p, gather_p), _as_bytes, _has_two_bits, CORRECTNESS),
)
