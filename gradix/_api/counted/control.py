"""Mask rules of calls, branches and loops."""

from __future__ import annotations

from gradix._api.control import switch
from gradix._api.counted.masking import evaluate, masked, refuse, rule
from gradix._api.loops import fori_loop, scan, while_loop
from gradix._base.lazy import lazy_module
from gradix._control.while_adjoint import program_of
from gradix._core.trace import bind
from gradix._ops.basis import move_axis, to_axis
from gradix._ops.creation import full
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from gradix._transforms.batch import AxisData, batch
from gradix._transforms.counted import defined, free, in_types

_shard_maps = lazy_module("gradix._control.shard_map")


@rule("jit")
def _call(S, e, *xs):
    closed = e.params["jaxpr"]
    if free(closed.jaxpr).isdisjoint(S.own):
        return bind(e.primitive, xs, {**e.params, "jaxpr": masked(closed)})
    return evaluate(S, closed, *xs)


@rule("custom_jvp_call", "custom_vjp_call", "closed_call", "remat", "checkpoint", "remat2", "composite",
      "custom_vmap_call", "core_call", "linear_call", "call")  # fmt: skip
def _inlined(S, e, *xs):
    p = e.params
    closed = p.get("jaxpr") or p.get("call_jaxpr") or p.get("fun_jaxpr") or p["callee"]
    return evaluate(S, closed, *xs)


def _check_results(S, e, *programs) -> None:
    """Raise if a result of an inner program has a size that is decided inside of it."""
    for closed in programs:
        inside = [v for v in closed.jaxpr.outvars if not in_types([v]).isdisjoint(defined(closed.jaxpr))]
        if inside:
            raise refuse(
                e,
                f"'{e.primitive.name}' returns {inside[0].aval.str_short()}, whose size is decided inside of it and "
                "may differ at each turn",
                "return an array of known size, as jnp.where(mask, x, 0), or reduce it inside; vmap returns a Ragged",
            )


@rule("cond")
def _cond(S, e, index, *xs):
    _check_results(S, e, *e.params["branches"])
    return switch(index, [lambda *a, b=b: evaluate(S, b, *a) for b in e.params["branches"]], *xs)


@rule("while")
def _while(S, e, *xs):
    p = e.params
    n, m = p["cond_nconsts"], p["body_nconsts"]
    _check_results(S, e, p["body_jaxpr"])
    cond, body, init = xs[:n], xs[n : n + m], list(xs[n + m :])
    return while_loop(
        lambda carry: evaluate(S, p["cond_jaxpr"], *cond, *carry)[0],
        lambda carry: evaluate(S, p["body_jaxpr"], *body, *carry),
        init,
    )


@rule("while_save", "while_linear", "while_back", "while_curved")
def _part_of_a_while(S, e, *xs):
    """What a loop keeps for its derivatives, and these: each is composed of loops of its own."""
    _check_results(S, e, e.params["body_jaxpr"])
    return evaluate(S, program_of(e.primitive, [v.aval for v in e.invars], e.params), *xs)


@rule("scan")
def _scan(S, e, *xs):
    p = e.params
    n, k, closed, length = p["num_consts"], p["num_carry"], p["jaxpr"], p["length"]
    _check_results(S, e, closed)
    consts, carry, rows = list(xs[:n]), list(xs[n : n + k]), list(xs[n + k :])

    def step(carry, row):
        outs = evaluate(S, closed, *consts, *carry, *row)
        return outs[:k], outs[k:]

    if not S.is_open(length):
        carry, outs = scan(step, carry, rows, length=length, reverse=p["reverse"], unroll=p.get("unroll", 1))
        return [*carry, *outs]
    count = S.value(length)
    stacks = [full(S.shape(v.aval.shape), 0, v.aval.dtype) for v in e.outvars[k:]]

    def turn(i, state):
        carry, stacks = state
        at = count - 1 - i if p["reverse"] else i
        carry, outs = step(carry, [dynamic_index_in_dim(x, at, 0, False) for x in rows])
        stacks = [dynamic_update_index_in_dim(s, o, at, 0) for s, o in zip(stacks, outs)]
        return carry, stacks

    if any(d == 0 for s in (*stacks, *rows) for d in s.aval.shape[:1]):
        return [*carry, *stacks]
    carry, stacks = fori_loop(0, count, turn, (carry, stacks))
    return [*carry, *stacks]


@rule("mapped")
def _mapped(S, e, *xs):
    p = e.params
    size = S.bound(p["size"])
    axis = AxisData(None, size)
    outs, axes = batch(lambda *a: evaluate(S, p["jaxpr"], *a), axis, xs, p["in_axes"])
    return [to_axis(size, o, None, 0) if a is None else move_axis(o, a, 0) for o, a in zip(outs, axes)]


@rule("shard_map")
def _shard_map(S, e, *xs):
    closed = e.params["jaxpr"]
    if not free(closed.jaxpr).isdisjoint(S.own):
        raise refuse(
            e,
            f"{e.primitive.name} divides arrays whose size values decide, which no device knows",
            "select inside of the mapped function",
        )
    _check_results(S, e, closed)
    with _shard_maps.ShardMap.inside(e.params):
        closed = masked(closed)
    return bind(e.primitive, xs, {**e.params, "jaxpr": closed})


@rule("pure_callback", "io_callback", "debug_callback")
def _callback(S, e, *xs):
    """The function gets the true elements, cut from the buffers."""
    if any(S.open(a.shape) for a in e.params["result_avals"]):
        raise refuse(
            e,
            f"{e.primitive.name} returns an array whose size values decide",
            "return an array of the greatest size, and select from it",
        )
    cuts = [(i, axis) for i, v in enumerate(e.invars) for axis in S.open(v.aval.shape)]
    sizes = [S.value(e.invars[i].aval.shape[axis]) for i, axis in cuts]
    given, n = e.params["callback"], len(xs)

    def callback(*arrays):
        elements = list(arrays[:n])
        for (i, axis), size in zip(cuts, arrays[n:]):
            elements[i] = elements[i][(slice(None),) * axis + (slice(int(size)),)]
        return given(*elements)

    return S.same(e, [*xs, *sizes], callback=callback)


@rule("custom_linear_solve")
def _linear_solve(S, e, *xs):
    p = e.params
    first, own, _ = p["counts"]
    return evaluate(S, p["solve"], *xs[first : first + own], *xs[sum(p["counts"]) :])
