"""Lowering of reductions over windows, by XLA's operations or a slice for each window position."""

from __future__ import annotations

from itertools import product

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape


def emit_reduce_window(em, outs, xs, inits, window, body):
    """One reduce_window; `body` as for `em.reduce`.

    Negative padding is applied as a slice first: for a window of one element XLA ignores it and
    ends the process.
    """
    cut = [[max(-(p // b), 0) for p in pair] for pair, b in zip(window.padding, window.base_dilation)]
    if any(map(any, cut)):
        if any(low + high >= n for (low, high), n in zip(cut, xs[0].aval.shape)):
            # The windows cover padding only.
            return [em.broadcast_in_dim(i, out, ()) for i, out in zip(inits, outs)]
        low, high = [[-c for c in side] for side in zip(*cut)]
        xs = [emit_pad(em, x, low, high, [0] * len(low), 0) for x in xs]
        window = window._replace(
            padding=tuple(
                [
                    tuple([p + c * b for p, c in zip(pair, cs)])
                    for pair, cs, b in zip(window.padding, cut, window.base_dilation)
                ]
            )
        )
    return emit_windows(em, outs, xs, inits, window, body)


def emit_windows(em, outs, xs, inits, window, body):
    """XLA's reduction over windows, whose padding adds the initial values.

    Args:
        window: the fields of a `Window`. Strides and dilations may be empty, which stands for ones.
    """
    sizes, strides, padding, base, dilation = window
    padding = [list(pair) for pair in padding]
    widths = [n for pair in padding for n in pair]
    if is_symbolic_shape([*sizes, *widths]):
        return _emit_open_windows(em, outs, xs, inits, (sizes, strides, widths, base, dilation), body)
    named = (
        ("window_dimensions", sizes),
        ("window_strides", strides),
        ("base_dilations", base),
        ("window_dilations", dilation),
    )
    attrs = [f"{name} = {em.i64_array(values)}" for name, values in named if len(values)]
    attrs.append(f"padding = dense<{padding or ''}> : tensor<{len(padding)}x2xi64>")
    region = em.reducer([x.aval.dtype for x in xs], body, [x.aval for x in xs])
    return em.ops("reduce_window", outs, *xs, *inits, attrs=", ".join(attrs), regions=(region,))


def _emit_open_windows(em, outs, xs, inits, window, body):
    """As `emit_windows` with symbolic sizes: a call that XLA's shape refinement replaces."""
    scalars = [make_aval((), x.aval.dtype, False) for x in xs]
    reduced = (lambda x, y: [em.op(body, scalars[0], x, y)]) if isinstance(body, str) else body
    reducer = em.define("window_reducer", [*scalars, *scalars], reduced, is_closed=True)
    sizes, strides, widths, base, dilation = window
    vectors = [em.sizes(v or (1,) * len(sizes)) for v in (sizes, strides, base, dilation)]
    pairs = make_aval((len(widths) // 2, 2), np.dtype("int32"), False)
    return em.custom_call(
        "stablehlo.dynamic_reduce_window",
        outs,
        *xs,
        *inits,
        *vectors,
        em.op("reshape", pairs, em.sizes(widths)),
        api_version=2,
        attrs=f"called_computations = [@{reducer}]",
        is_refined=True,
    )


def emit_stretched(em, x, window, fill):
    """`x` with the base dilation and padding of the window."""
    if not window.padding:
        return x
    low, high = zip(*window.padding)
    return emit_pad(em, x, low, high, [d - 1 for d in window.base_dilation], fill)


def emit_pad(em, x, low, high, interior, fill):
    """`x` padded, or `x` itself where there is no padding."""
    if not any(low) and not any(high) and not any(interior):
        return x
    return em.pad(x, em.constant(fill, make_aval((), x.aval.dtype)), low, high, interior)


def positions(window):
    """Offsets of the window's positions, in order."""
    return [
        tuple([i * d for i, d in zip(at, window.window_dilation)])
        for at in product(*map(range, window.window_dimensions))
    ]


def emit_slices(em, x, window, places):
    """The elements of all windows at each window position, in the result's shape `places`."""
    out = make_aval(places, x.aval.dtype)
    if not places:
        yield (), x
        return
    for start in positions(window):
        limit = [a + (n - 1) * s + 1 for a, n, s in zip(start, places, window.window_strides)]
        yield start, em.slice(x, start, limit, window.window_strides, out)


def emit_first_winner(em, values, better: str):
    """The extremum over positions, and for each position whether it beats all earlier ones."""
    best = None
    for v in values:
        if best is None:
            best = v
            yield v, None
            continue
        beats = em.compare(v, best, better)
        if v.aval.dtype in dtypes.FLOAT:  # the first NaN wins
            flag = beats.aval
            new_nan = em.op("and", flag, em.compare(v, v, "NE"), em.compare(best, best, "EQ"))
            beats = em.op("or", flag, beats, new_nan)
        best = em.select(beats, v, best)
        yield v, beats


def emit_gather_winners(em, out, tangents, x, window, better: str, *, fill):
    """For each window, the tangent at the first extremum."""
    x, t = emit_stretched(em, x, window, fill), emit_stretched(em, tangents, window, 0)
    values = [v for _, v in emit_slices(em, x, window, out.shape)]
    taken = None
    for (_, beats), (_, part) in zip(emit_first_winner(em, values, better), emit_slices(em, t, window, out.shape)):
        taken = part if taken is None else em.select(beats, part, taken)
    return taken


def emit_scatter_winners(em, out, source, x, window, extremum: str, *, fill):
    """Add the source of each window at the first extremum of the window."""
    wide = emit_stretched(em, x, window, fill)
    places = source.aval.shape
    slices = list(emit_slices(em, wide, window, places))
    best = slices[0][1]
    for _, v in slices[1:]:
        best = em.op(extremum, v.aval, best, v)
    flag = make_aval(places, np.dtype(bool))
    open_, total = em.constant(True, flag), None
    zero = em.constant(0, source.aval)
    for start, v in slices:
        hit = em.compare(v, best, "EQ")
        if v.aval.dtype in dtypes.FLOAT:
            hit = em.op("or", flag, hit, em.compare(v, v, "NE"))
        part = em.select(em.op("and", flag, hit, open_), source, zero)
        open_ = em.op("and", flag, open_, em.op("not", flag, hit))
        inside = [(n - 1) * s + 1 for n, s in zip(places, window.window_strides)]
        high = [n - a - m for n, a, m in zip(wide.aval.shape, start, inside)]
        part = emit_pad(em, part, start, high, [s - 1 for s in window.window_strides], 0)
        total = part if total is None else em.op("add", part.aval, total, part)
    return _unstretched(em, total, out, window)


def _unstretched(em, x, out, window):
    """The adjoint of `emit_stretched`."""
    if not window.padding:
        return x
    low = [-a for a, _ in window.padding]
    high = [-b for _, b in window.padding]
    x = emit_pad(em, x, low, high, [0] * len(low), 0)
    if x.aval.shape == out.shape:
        return x
    limit = [(n - 1) * d + 1 for n, d in zip(out.shape, window.base_dilation)]
    return em.slice(x, [0] * len(low), limit, window.base_dilation, out)


def emit_select_and_scatter(em, out, source, x, window, direction: str, *, fill):
    """Lower to XLA's operation, for windows without dilation."""
    wide = emit_stretched(em, x, window, fill)
    scalar = make_aval((), x.aval.dtype)
    select = em.region([scalar, scalar], lambda a, b: em.compare(a, b, direction))
    sizes, strides = em.i64_array(window.window_dimensions), em.i64_array(window.window_strides)
    zero, total = em.constant(0, make_aval((), out.dtype)), make_aval(wide.aval.shape, out.dtype)
    total = em.op(
        "select_and_scatter",
        total,
        wide,
        source,
        zero,
        regions=(select, em.reducer([out.dtype], "add")),
        attrs=(
            f"window_dimensions = {sizes}, window_strides = {strides}, padding = dense<0> : tensor<{out.ndim}x2xi64>"
        ),
    )
    return _unstretched(em, total, out, window)
