"""reduce_prod, reduce_and and reduce_or on the CPU, by blocks."""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import FLOAT
from gradix._ops.reductions import reduce_and_p, reduce_or_p, reduce_prod_p
from gradix._platforms.cpu.blocks import WORDS, emit_blocks
from gradix._platforms.records import Rewrite

_WIDE = np.dtype("float32")


def _is_of_words_or_floats(site) -> bool:
    return site.out.dtype in WORDS | FLOAT and site.out.dtype.itemsize > 1


def _product_by_blocks(em, site, x):
    """The product by blocks; half precisions are multiplied in float32."""
    out = site.out
    wide = _WIDE if out.dtype in FLOAT and out.dtype.itemsize < 4 else out.dtype
    found = emit_blocks(
        em,
        make_aval(out.shape, wide),
        em.convert(x, wide),
        site.params["axes"],
        site.primitive.hlo,
        lambda x, axis, out: site.plain(em, x, out=out, axes=(axis,)),
        columns=wide != out.dtype,
        neutral=1,
    )
    return NotImplemented if found is None else em.convert(found, out.dtype)


def _truths_by_blocks(em, site, x):
    found = emit_blocks(
        em,
        site.out,
        x,
        site.params["axes"],
        site.primitive.hlo,
        lambda x, axis, out: site.plain(em, x, out=out, axes=(axis,)),
        columns=site.out.dtype == bool,
    )
    return NotImplemented if found is None else found


REWRITES = (
    Rewrite("products_by_blocks", (reduce_prod_p,), _product_by_blocks, _is_of_words_or_floats, alone=True),
    Rewrite("truths_by_blocks", (reduce_and_p, reduce_or_p), _truths_by_blocks, alone=True),
)
