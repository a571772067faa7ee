"""The table of `roofline`: what each kind of operation costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix._base.listing import own_names as _own_names
from gradix._control.callbacks import Callback
from gradix._core.jaxpr import jaxprs_in_params
from gradix._ops.basis import reduce_sum_p
from gradix._ops.collective_moves import (
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced_p,
    all_to_all_p,
    ppermute_p,
    reduce_scatter_p,
)
from gradix._ops.collectives import pmax_p, pmin_p, psum_invariant_p, psum_p
from gradix._ops.conv.conv import conv_general_dilated_p
from gradix._ops.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from gradix._ops.dot import dot_general_p
from gradix._ops.families import Elementwise
from gradix._ops.indexing.gather import gather_p
from gradix._ops.indexing.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from gradix._ops.select import select_n_p
from gradix.experimental.roofline.roofline import (
    Counter,
    RooflineResult,
    RooflineRuleContext,
    RooflineShape,
    register_roofline,
)


def _register(*prims):
    """A decorator that makes one rule that of several primitives."""

    def register(rule):
        for prim in prims:
            register_roofline(prim)(rule)
        return rule

    return register


@_register(Elementwise)
def _elementwise(context: RooflineRuleContext, *args: RooflineShape, **_) -> RooflineResult:
    """One operation for each element of the result; operands are read and the result is written."""
    out = RooflineShape.from_aval(context.avals_out[0])
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=sum([a.bytes for a in args]) + out.bytes)


@_register(select_n_p)
def _select_n(context, which, *cases, **_):
    """Of the cases, only the elements that are chosen are read."""
    return RooflineResult(unfused_flops=cases[0].size, unfused_hbm_bytes=which.bytes + cases[0].bytes)


@_register(reduce_sum_p)
def _reduce_sum(context, x, **_):
    out = RooflineShape.from_aval(context.avals_out[0])
    return RooflineResult(unfused_flops=x.size - out.size, unfused_hbm_bytes=x.bytes + out.bytes)


@_register(cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p)
def _cumulative(context, x, *, axis, **_):
    """The steps along the axis count, as rows are vectors; a step of cumlogsumexp is two."""
    each = 2 if context.primitive is cumlogsumexp_p else 1
    return RooflineResult(unfused_flops=each * x.shape[axis], unfused_hbm_bytes=2 * x.bytes)


@_register(Callback)
def _callback(context, *args, **_):
    """Operands are read, and results are written."""
    moved = sum([a.bytes for a in args]) + RooflineShape.total_bytes(context.avals_out)
    return RooflineResult(unfused_hbm_bytes=moved)


# -- products --------------------------------------------------------------------------------------


@_register(dot_general_p)
def _dot_general(context, lhs, rhs, *, dimension_numbers, **_):
    """2·b·m·n·k operations."""
    (contracted, _), _ = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    flops = 2 * out.size * math.prod([lhs.shape[d] for d in contracted])
    moved = 0
    if not context.pin_lhs_in_vmem:
        moved += lhs.bytes + out.bytes
    if not context.pin_rhs_in_vmem:
        moved += rhs.bytes
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


@_register(conv_general_dilated_p)
def _conv(context, lhs, rhs, *, dimension_numbers, **params):
    """2 operations for each pair of an element of the array, not of its padding, and of the kernel."""
    dnums = dimension_numbers
    batch, spatial = lhs.shape[dnums.lhs_spec[0]], dnums.lhs_spec[2:]
    features, depth = rhs.shape[dnums.rhs_spec[0]], rhs.shape[dnums.rhs_spec[1]]
    out = RooflineShape.from_aval(context.avals_out[0])
    pairs = 1
    for i, (d, k) in enumerate(zip(spatial, dnums.rhs_spec[2:])):
        pairs *= _pairs(
            (lhs.shape[d], rhs.shape[k], out.shape[dnums.out_spec[2 + i]]),
            params["window_strides"][i],
            params["padding"][i][0],
            (params["lhs_dilation"] or (1,) * len(spatial))[i],
            (params["rhs_dilation"] or (1,) * len(spatial))[i],
        )
    flops = 2 * (batch // params["batch_group_count"]) * features * depth * pairs
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=lhs.bytes + rhs.bytes + out.bytes)


def _pairs(sizes, stride: int, before: int, base: int, window: int) -> int:
    """Along one dimension, the pairs of an element and a tap that meet.

    Args:
        sizes: the numbers of elements, of taps, and of results.
        stride, before: the distance of windows, and the padding before the first element.
        base, window: how far apart elements and taps are.
    """
    n, taps, outs = sizes
    if not n or not outs:
        return 0
    first = np.arange(taps, dtype=np.int64) * window - before  # where each tap is at first
    last = (n - 1) * base
    # results o for which 0 <= first + o·stride <= last
    low = np.maximum(-(first // stride), 0)
    high = np.minimum((last - first) // stride, outs - 1)
    return int(_hits(first, low, high, stride, base).sum())


def _hits(first, low, high, stride: int, base: int) -> np.ndarray:
    """For each tap, how many of the results from `low` to `high` fall on an element.

    They are those with (first + o·stride) mod base = 0, which recur with the period base/g.
    """
    g = math.gcd(stride, base)
    period = base // g
    inverse = pow(stride // g, -1, period) if period > 1 else 0
    residue = (-(first // g) * inverse) % period
    count = (high - residue) // period - (low - 1 - residue) // period
    return np.where((first % g == 0) & (high >= low), count, 0)


# -- indices ---------------------------------------------------------------------------------------


@_register(gather_p)
def _gather(context, operand, indices, *, mode, **_):
    """The elements that are taken are read; those beyond the end cost the checks of indices."""
    out = RooflineShape.from_aval(context.avals_out[0])
    fills = mode.fills
    return RooflineResult(
        unfused_flops=4 * indices.size + out.size if fills else 0,
        unfused_hbm_bytes=2 * out.size * operand.dtype.itemsize + indices.bytes,
    )


@_register(scatter_p)
def _scatter(context, operand, indices, updates, **params):
    """Updates and the elements at their places are read, and written; a program may combine them."""
    counter = Counter(context.name_stack, context.mesh, False, False)
    each = sum([counter.cost(p).unfused_flops for p in jaxprs_in_params(params)])
    return RooflineResult(unfused_flops=each * updates.size, unfused_hbm_bytes=3 * updates.bytes + indices.bytes)


@_register(scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)
def _scatter_combined(context, operand, indices, updates, **_):
    """As `scatter`, with one operation for each update."""
    moved = _scatter(context, operand, indices, updates)
    return moved + RooflineResult(unfused_flops=updates.size)


# -- communication on a torus ----------------------------------------------------------------------


def _ring(context: RooflineRuleContext, params: Any) -> tuple[tuple[str, ...], list[int], int]:
    """The mesh axes that an operation communicates over, their sizes, and the number of devices.

    Raises:
        NotImplementedError: it does so in groups of devices.
    """
    if params.get("axis_index_groups") is not None:
        raise NotImplementedError(
            f"roofline: {context.primitive} in groups of devices has no rule. Give the groups a mesh axis of their own."
        )
    names = context.primitive.names(params)
    if context.mesh is None:
        raise ValueError(
            f"roofline: {context.primitive} communicates over {names}; give roofline the mesh, in_specs and out_specs."
        )
    sizes = [context.mesh.shape[n] for n in names]
    return names, sizes, math.prod(sizes)


def _each(names: Sequence[str], moved: int, steps: int) -> RooflineResult:
    return RooflineResult(ici_bytes=dict.fromkeys(names, int(moved)), ici_latency=dict.fromkeys(names, int(steps)))


def _around(context, params, whole: int) -> RooflineResult:
    """Parts of `whole` bytes go once around a ring, divided between the axes."""
    names, sizes, n = _ring(context, params)
    if n == 1:
        return _each(names, 0, 0)
    used = [name for name, size in zip(names, sizes) if size > 1]
    return _each(used, whole * (n - 1) // n // len(used), len(used) * max(sizes))


@_register(all_gather_p, all_gather_invariant_p, all_gather_reduced_p)
def _all_gather(context, *args, **params):
    return _around(context, params, RooflineShape.total_bytes(context.avals_out))


@_register(reduce_scatter_p)
def _reduce_scatter(context, *args, **params):
    return _around(context, params, sum([a.bytes for a in args]))


@_register(psum_p, psum_invariant_p, pmax_p, pmin_p)
def _all_reduce(context, *args, **params):
    """A sum of parts on each device, which are then gathered."""
    once = _around(context, params, sum([a.bytes for a in args]))
    return once + once


@_register(all_to_all_p)
def _all_to_all(context, x, **params):
    """Half of the parts go a quarter of the ring on average, either way; a ring of two has one way."""
    names, sizes, n = _ring(context, params)
    if n == 1:
        return _each(names, 0, 0)
    used = [(name, size) for name, size in zip(names, sizes) if size > 1]
    moved = x.bytes * n // (4 if n > 2 else 2)
    return _each([name for name, _ in used], moved, sum([size // 2 for _, size in used]))


@_register(ppermute_p)
def _ppermute(context, x, *, perm, **params):
    """Each part goes along one axis after another, the shorter way; the busiest link tells the bytes."""
    names, sizes, _ = _ring(context, params)
    links: dict = {}
    longest = 0
    for source, target in perm:
        at = list(np.unravel_index(source, sizes))
        to, hops = np.unravel_index(target, sizes), 0
        for axis, size in enumerate(sizes):
            ahead = int(to[axis] - at[axis]) % size
            step = 1 if ahead <= size - ahead else -1
            for _ in range(min(ahead, size - ahead)):
                after = [*at[:axis], (at[axis] + step) % size, *at[axis + 1 :]]
                link = frozenset((tuple(map(int, at)), tuple(map(int, after))))
                links[link] = links.get(link, 0) + 1
                at, hops = after, hops + 1
        longest = max(longest, hops)
    used = [name for name, size in zip(names, sizes) if size > 1] or names
    return _each(used, x.bytes * max(links.values(), default=0), longest)


__dir__ = _own_names(__name__)
