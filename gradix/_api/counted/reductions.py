"""Mask rules of reductions, cumulative operations, sorting and products."""

from __future__ import annotations

import numpy as np

from gradix._api.counted.in_place import elements
from gradix._api.counted.masking import rule
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._ops.creation import full
from gradix._ops.reduction_identities import highest, lowest
from gradix._ops.select import select


def _zero(dtype):
    return 0


def _one(dtype):
    return 1


def _ones(dtype):
    return True if dtype == np.bool_ else -1 if dtype.kind == "i" else np.iinfo(dtype).max


_NEUTRAL = {
    "reduce_sum": _zero,
    "reduce_prod": _one,
    "reduce_max": lowest,
    "reduce_min": highest,
    "reduce_and": _ones,
    "reduce_or": _zero,
    "reduce_xor": _zero,
    "argmax": lowest,
    "argmin": highest,
    "cumsum": _zero,
    "cumprod": _one,
    "cummax": lowest,
    "cummin": highest,
    "cumlogsumexp": lowest,
}


# the reductions in which the order of elements does not matter
_FREE = frozenset([n for n in _NEUTRAL if n.startswith("reduce")])


@rule(*[n for n in _NEUTRAL if n.startswith(("reduce", "arg"))])
def _reduction(S, e, x):
    fill = _NEUTRAL[e.primitive.name](x.aval.dtype)
    (v,), axes = e.invars, e.params["axes"]
    found = elements(S, v) if S.open(v.aval.shape, axes) and e.primitive.name in _FREE else None
    if found is not None:  # their order does not matter, so that they can stay where they are
        return S.same(e, [_selected(found, fill)])
    return S.same(e, [S.filled(x, v.aval.shape, axes, fill)])


def _selected(found, fill):
    y = found.array
    return select(found.selected(), y, full(y.aval.shape, fill, y.aval.dtype))


@rule(*[n for n in _NEUTRAL if n.startswith("cum")])
def _cumulative(S, e, x):
    if e.params["reverse"]:
        fill = _NEUTRAL[e.primitive.name](x.aval.dtype)
        x = S.filled(x, e.invars[0].aval.shape, (e.params["axis"],), fill)
    return S.same(e, [x])


# -- order -----------------------------------------------------------------------------------------


def last_of(dtype):
    """The element that a sort puts last."""
    if dtype in COMPLEX:
        return complex(np.nan, np.nan)
    return np.nan if dtype in INEXACT else highest(dtype)


@rule("sort")
def _sort(S, e, *xs):
    axis, keys = e.params["dimension"], e.params["num_keys"]
    shape = e.invars[0].aval.shape
    if not S.open(shape, (axis,)):
        return S.same(e, xs)
    # A stable sort leaves elements equal to the fill before it.
    xs = [S.filled(x, shape, (axis,), last_of(x.aval.dtype)) if i < keys else x for i, x in enumerate(xs)]
    return S.same(e, xs, is_stable=True)


@rule("top_k")
def _top_k(S, e, x):
    axis = e.params.get("axis", x.aval.ndim - 1)
    shape = e.invars[0].aval.shape
    return S.same(e, [S.filled(x, shape, (axis,), lowest(x.aval.dtype))])


@rule("ranked")
def _ranked(S, e, x, ranks):
    shape = e.invars[0].aval.shape
    return S.same(e, [S.filled(x, shape, (0,), last_of(x.aval.dtype)), ranks])


# -- products --------------------------------------------------------------------------------------


@rule("dot_general")
def _dot_general(S, e, x, y):
    (cx, cy), _ = e.params["dimension_numbers"]
    shapes = [v.aval.shape for v in e.invars]
    if len(S.open(shapes[0])) == len(S.open(shapes[1])) == 1 and S.open(shapes[0], cx):
        found = [elements(S, v) for v in e.invars] if S.open(shapes[1], cy) else [None]
        if None not in found:
            return S.same(e, [_selected(f, 0) for f in found])
    x = S.filled(x, e.invars[0].aval.shape, cx, 0)
    y = S.filled(y, e.invars[1].aval.shape, cy, 0)
    return S.same(e, [x, y])


@rule("linear_recurrence")
def _recurrence(S, e, *xs):
    axis, shape = e.params["axis"], e.invars[0].aval.shape
    return S.same(e, [S.filled(x, shape, (axis,), 0) for x in xs] if e.params["reverse"] else xs)


@rule("transpose", "add_any", "broadcast_in_dim")
def _same(S, e, *xs):
    return S.same(e, xs)
