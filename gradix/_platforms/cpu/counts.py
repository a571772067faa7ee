"""Scatters of a single number into a vector, such as counts, and places, by native loops of the CPU.

XLA's own loop takes one index per step, and checks its bounds. Here a step takes several indices
without a check. Read as unsigned, an index out of bounds is clamped to one element behind the
vector, which is cut off at the end.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.indexing.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from gradix._ops.indexing.scatter_family import clamped
from gradix._ops.indexing.true_places import true_places_p
from gradix._platforms.cpu.kernel_loops import INT, SCALAR, Loops
from gradix._platforms.records import Rewrite

_STEP = 8  # indices in a step of the loop
_FEWEST = 1 << 14  # indices from which the loop pays
_MOST = (1 << 31) - 1  # indices that the loop counts
_DTYPES = frozenset([np.dtype(name) for name in ("int32", "uint32", "int64", "uint64", "float32", "float64")])


def _is_of_one_number(site) -> bool:
    """Whether a scatter combines one number with many elements of a vector.

    Where the updates differ, XLA is as quick.
    """
    x, indices, updates = site.values
    if x.aval.ndim != 1 or updates.filled_with is None or updates.aval.dtype not in _DTYPES or not site.is_static():
        return False
    if site.primitive.combine is None and site.params["update_jaxpr"] is not None:
        return False
    alone = site.params["dimension_numbers"].inserted_window_dims == (0,)
    count = updates.aval.size
    return alone and indices.aval.size == count and max(_FEWEST, x.aval.size) <= count <= _MOST and x.aval.size > 0


def _by_elements(em, site, x, indices, updates):
    scalar, combine = make_aval((), site.out.dtype), site.primitive.combine
    indices = clamped(em, x, indices, updates, site.params["dimension_numbers"], site.params["mode"])
    return emit_scatter(
        em, x, indices, updates, lambda old, new: new if combine is None else em.lower(combine, scalar, old, new)
    )


def emit_scatter(em, x, indices, updates, combine):
    """`x[i] = combine(x[i], update)` for each index in turn; indices out of bounds are dropped."""
    loops, length, count = Loops(em), x.aval.shape[0], updates.aval.size
    wide = indices.aval.dtype.itemsize == 8
    signed, unsigned = (np.dtype("int64" if wide else "int32"), make_aval((), np.dtype("uint64" if wide else "uint32")))

    def kernel(x, places, update):
        def step(start: int, size: int):
            def body(i, x):
                block = loops.block(places, (size,), loops.do("add", loops.do("multiply", i, size), start))
                for k in range(size):
                    place = em.bitcast(em.convert(loops.at(block, k), signed), unsigned)
                    x = loops.put(x, place, combine(loops.get(x, place), update))
                return [x]

            return body

        rest = count % _STEP
        (x,) = loops.count(count // _STEP, [x], step(0, _STEP))
        return loops.count(rest, [x], step(count - rest, 1)) if rest else [x]

    longer = em.pad_to(x, (length + 1,), 0)
    (found,) = em.kernel(
        "number_to_elements",
        [longer.aval],
        kernel,
        longer,
        em.reshape(indices, (count,)),
        updates.filled_with,
        whole=True,
    )
    return em.head(found, (length,))


def _is_long_row(site) -> bool:
    """Whether places are looked for in one long row."""
    (mask,) = site.values
    is_row = site.is_static() and mask.aval.ndim == 1 and _FEWEST <= mask.aval.size <= _MOST
    return is_row and site.params["size"] is not None


def _by_writing(em, site, mask):
    """Each place is written behind those found so far, and overwritten if it is not one."""
    (places, number), loops, count = site.out, Loops(em), mask.aval.size
    size = places.shape[0]
    longer = make_aval((size + 1,), INT)

    def kernel(mask, out):
        def step(start: int, width: int):
            def body(i, found, out):
                first = loops.do("add", loops.do("multiply", i, width), start)
                block = loops.block(mask, (width,), first)
                for k in range(width):
                    out = loops.put(out, found, loops.do("add", first, k))
                    found = loops.do("add", found, em.convert(loops.at(block, k), INT))
                return [found, out]

            return body

        rest = count % _STEP
        found, out = loops.count(count // _STEP, [loops.number(0), out], step(0, _STEP))
        return loops.count(rest, [found, out], step(count - rest, 1)) if rest else [found, out]

    found, out = em.kernel("places", [SCALAR, longer], kernel, mask, em.constant(0, longer), whole=True)
    row = make_aval((size,), INT)
    is_one = em.compare(em.iota(row, 0), em.spread(em.reshape(found, (1,)), row.shape), "LT")
    out = em.select(is_one, em.head(out, (size,)), em.constant(0, row))
    return [em.convert(out, places.dtype), em.convert(found, number.dtype)]


REWRITES = (
    Rewrite("places_by_writing", (true_places_p,), _by_writing, _is_long_row, native=True),
    Rewrite(
        "counts_by_elements",
        (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p),
        _by_elements,
        _is_of_one_number,
        native=True,
    ),
)
