"""Inner products with masks, of which XLA makes selections that hide NaN."""

from __future__ import annotations

from math import prod

from gradix._core.dtypes import BOOL, INEXACT
from gradix._ops.dot import dot_general_p
from gradix._platforms.records import CORRECTNESS, Rewrite


def _has_mask(site) -> bool:
    """Whether the compiler computes a product as a sum of elementwise products, of which one factor is a mask."""
    x, y = site.values
    are_masks = [v.aval.dtype in BOOL or v.converted_from in BOOL for v in site.values]
    if site.out.dtype not in INEXACT or sum(are_masks) != 1 or not site.is_static():
        return False
    (left, right), (x_batch, y_batch) = site.params["dimension_numbers"]
    free = [n for v, used in ((x, (*left, *x_batch)), (y, (*right, *y_batch))) for n in _others(v.aval.shape, used)]
    return prod(free) == 1


def _others(shape, used) -> list:
    return [n for i, n in enumerate(shape) if i not in used]


def _with_numbers(em, site, x, y):
    """The product with numbers of which the compiler does not see that they were a mask."""
    values = [
        em.optimization_barrier([em.convert(v, site.out.dtype)])[0]
        if v.aval.dtype in BOOL or v.converted_from in BOOL
        else v
        for v in (x, y)
    ]
    return em.lower(dot_general_p, site.out, *values, **site.params)


REWRITES = (Rewrite("inner_products_with_masks", (dot_general_p,), _with_numbers, _has_mask, CORRECTNESS),)
