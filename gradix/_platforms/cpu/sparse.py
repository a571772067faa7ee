"""Products of sparse and dense matrices on the CPU, by jaxlib's kernel, which uses all cores."""

from __future__ import annotations

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX
from gradix._ops.basis import broadcast_in_dim
from gradix._ops.linalg.sparse_product import sparse_product_p
from gradix._ops.operands import scalar_like
from gradix._ops.shape import expand_dims
from gradix._platforms.records import Rewrite

_cumulative = lazy_module("gradix._ops.cumulative")
_joining = lazy_module("gradix._ops.joining")
_numbers = lazy_module("gradix._ops.indexing.gather_dimension_numbers")
_scatter = lazy_module("gradix._ops.indexing.scatter")
_sorting = lazy_module("gradix._ops.sorting.sort")
_INT = np.dtype("int32")
_DTYPES = frozenset(map(np.dtype, ("float32", "float64"))) | COMPLEX
# The least columns of the dense matrix, for ordered rows and for rows to be sorted first.
_FEWEST = {True: 8, False: 128}


def _has_many_columns(site) -> bool:
    data, dense = site.values[0].aval, site.values[3].aval
    return (
        site.is_static()
        and data.dtype in _DTYPES
        and data.size > 0
        and dense.size > 0
        and site.out.size > 0
        and dense.shape[1] >= _FEWEST[site.params["ordered"]]
    )


def _by_rows(em, site, data, rows, columns, dense, *known):
    """Call the kernel, which takes the elements in the order of rows, and the start of each row."""
    columns = em.convert(columns, _INT)
    if known:
        starts = em.convert(known[0], _INT)
    else:
        rows = em.convert(rows, _INT)
        if not site.params["ordered"]:
            rows, columns, data = em.expand(_in_order, rows, columns, data)
        (starts,) = em.expand(_starts, rows, height=site.params["height"])
    return em.custom_call(
        "cpu_csr_sparse_dense_ffi", [site.out], data, starts, columns, dense, backend_config={}
    )[0]


def _in_order(rows, columns, data):
    return list(_sorting.sort((rows, columns, data), num_keys=1))


def _starts(rows, *, height):
    """The index of the first element of each row, and the end of the last row."""
    zero = scalar_like(rows, 0)
    one = broadcast_in_dim(scalar_like(rows, 1), rows.aval.shape, ())
    elements = _scatter.ScatterDimensionNumbers((), (0,), (0,))
    counts = _scatter.scatter_add(
        broadcast_in_dim(zero, (height,), ()),
        expand_dims(rows, (1,)),
        one,
        elements,
        indices_are_sorted=True,
        mode=_numbers.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return [_joining.concatenate([broadcast_in_dim(zero, (1,), ()), _cumulative.cumsum(counts)], 0)]


REWRITES = (
    Rewrite(
        "sparse_products_by_rows",
        (sparse_product_p,),
        _by_rows,
        _has_many_columns,
    ),
)
