"""Products of sparse and dense matrices on the CPU, by jaxlib's kernel, which uses all cores."""

from __future__ import annotations

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._core.dtypes import COMPLEX
from gradix._ops.basis import broadcast_in_dim
from gradix._ops.linalg.sparse_product import sampled_product_p, sparse_product_p
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
    return em.custom_call("cpu_csr_sparse_dense_ffi", [site.out], data, starts, columns, dense, backend_config={})[0]


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


# -- elements of a product of dense matrices -------------------------------------------------------

# Bytes of the rows taken at a time. More would not stay in the caches, and go to new memory.
_BLOCK = 1 << 21


def _rows_at_a_time(x) -> int:
    return max(1, _BLOCK // (x.aval.dtype.itemsize * max(1, x.aval.shape[1])))


def _has_many_rows(site) -> bool:
    x = site.values[0]
    return site.is_static() and site.out.size > 2 * _rows_at_a_time(x)


def _by_blocks(em, site, x, y, rows, columns):
    """Blocks of elements in a loop. The last one begins early enough to be whole."""
    out, size, index = site.out, _rows_at_a_time(x), make_aval((), _INT)
    block, last = make_aval((size,), out.dtype), em.constant(site.out.size - size, index)

    def going(start, *_):
        return [em.compare(start, em.constant(out.size, index), "LT")]

    def step(start, found):
        at = em.op("minimum", index, start, last)
        places = [em.dynamic_slice(p, [at], (size,)) for p in (rows, columns)]
        part = em.lower(sampled_product_p, block, x, y, *places)
        after = em.op("add", index, start, em.constant(size, index))
        return [after, em.dynamic_update_slice(found, part, [at])]

    return em.while_loop([em.constant(0, index), em.splat(0, out)], going, step)[1]


REWRITES = (
    Rewrite("sparse_products_by_rows", (sparse_product_p,), _by_rows, _has_many_columns, alone=True),
    Rewrite("sampled_products_by_blocks", (sampled_product_p,), _by_blocks, _has_many_rows, alone=True),
)
