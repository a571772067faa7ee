"""Reductions over small windows on the CPU, by slices: one for each place in the window.

XLA:CPU runs elementwise operations on slices much faster than its own operation for windows.
"""

from __future__ import annotations

from math import prod

from gradix._ops.windows.lowering import emit_scatter_winners, emit_slices, emit_stretched
from gradix._ops.windows.reduce_windows import (
    is_maximum,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    select_and_scatter_add_p,
    window_fill,
    windowed,
)
from gradix._platforms.records import Rewrite

_FEW = 16  # positions in a window


def _is_small(site) -> bool:
    return bool(site.out.size) and prod(site.params["window_dimensions"]) <= _FEW


def _by_slices(em, site, x):
    reduction, window, out = site.primitive, windowed(site.params), site.out
    x, total = reduction.widened(em, x), None
    wide = emit_stretched(em, x, window, reduction.identity(x.aval.dtype))
    for _, v in emit_slices(em, wide, window, out.shape):
        total = v if total is None else reduction.both(em, total, v)
    return em.convert(total, out.dtype)


def _winners_by_slices(em, site, source, x):
    if not source.aval.size:
        return NotImplemented
    prim = site.params["select_prim"]
    window = windowed({k: v for k, v in site.params.items() if k != "select_prim"})
    return emit_scatter_winners(
        em,
        site.out,
        source,
        x,
        window,
        "maximum" if is_maximum(prim) else "minimum",
        fill=window_fill(prim, x.aval.dtype),
    )


REWRITES = (
    Rewrite(
        "small_windows_by_slices",
        (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p),
        _by_slices,
        _is_small,
    ),
    Rewrite("winners_of_small_windows", (select_and_scatter_add_p,), _winners_by_slices, _is_small),
)
