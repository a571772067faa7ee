"""The checks of primitives that hold programs: calls, branches, loops, users' rules, shard_map."""

from __future__ import annotations

import numpy as np

from gradix._api.checks.programs import PROGRAM_RULES, Checker, Found, zero_code
from gradix._control.call import jit_p
from gradix._control.check import first_failed
from gradix._control.cond import cond_p
from gradix._control.custom_jvp import custom_jvp_call_p
from gradix._control.custom_vjp import custom_vjp_call_p
from gradix._control.remat import remat_p
from gradix._control.scan import scan_p
from gradix._control.shard_map import ShardMap, shard_map_p
from gradix._control.while_loop import while_p
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.sharding import PartitionSpec as P
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import eq
from gradix._ops.indexing.dynamic_slicing import dynamic_slice
from gradix._ops.reductions import argmax, reduce_or
from gradix._ops.select import select
from gradix._ops.shape import reshape
from gradix._transforms.staging import eval_closed, stage_closed, stage_open


def _taken(outs, found: Found) -> list:
    *outs, code, words = outs
    found.take(code, words)
    return outs


def _call(checker: Checker, eqn, args, found):
    program = checker.program(eqn.params["jaxpr"])
    if program is None:
        return bind(eqn.primitive, args, eqn.params)
    return _taken(bind(eqn.primitive, args, {**eqn.params, "jaxpr": program}), found)


def _with_state(checker: Checker, closed: ClosedJaxpr) -> tuple[ClosedJaxpr, bool]:
    """The program with the state as two further results in any case, and whether it has checks."""
    program = checker.program(closed)
    if program is not None:
        return program, True
    return stage_closed(
        lambda *xs: [*eval_closed(closed, *xs), *Found(checker).state()], closed.in_avals, closed.jaxpr.debug_info
    ), False


def _cond(checker: Checker, eqn, args, found):
    branches = [_with_state(checker, b) for b in eqn.params["branches"]]
    if not any(checks for _, checks in branches):
        return bind(cond_p, args, eqn.params)
    return _taken(bind(cond_p, args, {**eqn.params, "branches": tuple([b for b, _ in branches])}), found)


def _scan(checker: Checker, eqn, args, found):
    params = eqn.params
    closed, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    program = checker.program(closed)
    if program is None:
        return bind(scan_p, args, params)
    avals = closed.in_avals
    empty = Found(checker).state()

    def body(*xs):
        code, words, rest = xs[nc + nk], xs[nc + nk + 1], xs[nc + nk + 2 :]
        *outs, new_code, new_words = eval_closed(program, *xs[: nc + nk], *rest)
        carried = Found(checker, code, words)
        carried.take(new_code, new_words)
        return [*outs[:nk], *carried.state(), *outs[nk:]]

    whole = stage_closed(
        body, [*avals[: nc + nk], *[e.aval for e in empty], *avals[nc + nk :]], closed.jaxpr.debug_info
    )
    outs = bind(scan_p, [*args[: nc + nk], *empty, *args[nc + nk :]], {**params, "jaxpr": whole, "num_carry": nk + 2})
    found.take(outs[nk], outs[nk + 1])
    return [*outs[:nk], *outs[nk + 2 :]]


def _while(checker: Checker, eqn, args, found):
    """The loop, which ends when a check fails.

    The checks of its condition are made before the loop and after each turn.
    """
    params = eqn.params
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    ncond, nbody = params["cond_nconsts"], params["body_nconsts"]
    checked_cond, checked_body = checker.program(cond), checker.program(body)
    if checked_cond is None and checked_body is None:
        return bind(while_p, args, params)
    shape = cond.out_avals[0].shape

    def goes_on(*xs):
        return eval_closed(cond if checked_cond is None else checked_cond, *xs)[0]

    cond_consts, body_consts, carry = (args[:ncond], args[ncond : ncond + nbody], args[ncond + nbody :])
    start = Found(checker)
    if checked_cond is not None:
        _taken(eval_closed(checked_cond, *cond_consts, *carry), start)
    empty = start.state()

    def again(*xs):
        *xs, code, words = xs
        going = goes_on(*xs)
        return [bitwise_and(_any(going), eq(code, zero_code()))]

    def turn(*xs):
        *xs, code, words = xs
        before, consts, old = xs[:ncond], xs[ncond : ncond + nbody], xs[ncond + nbody :]
        state, given = Found(checker, code, words), old
        going = goes_on(*before, *old) if shape else None
        if shape:
            given = _of_the_going(going, old)
        new = (
            eval_closed(body, *consts, *given)
            if checked_body is None
            else _taken(eval_closed(checked_body, *consts, *given), state)
        )
        if shape:
            new = [select(_along(going, n), n, o) for n, o in zip(new, old)]
        if checked_cond is not None:
            _taken(eval_closed(checked_cond, *before, *new), state)
        return [*new, *state.state()]

    types = [e.aval for e in empty]
    carried, debug = [*body.out_avals, *types], body.jaxpr.debug_info
    whole = {
        **params,
        "cond_jaxpr": stage_closed(again, [*cond.in_avals[:ncond], *carried], debug),
        "body_nconsts": ncond + nbody,
        "body_jaxpr": stage_closed(turn, [*cond.in_avals[:ncond], *body.in_avals[:nbody], *carried], debug),
    }
    return _taken(bind(while_p, [*cond_consts, *cond_consts, *body_consts, *carry, *empty], whole), found)


def _any(going):
    return reduce_or(going, tuple(range(going.ndim))) if going.ndim else going


def _along(going, x):
    return broadcast_in_dim(going, x.aval.shape, tuple(range(going.ndim)))


def _of_the_going(going, carry) -> list:
    """The carries; examples that have ended get one of a running example, so they cannot fail."""
    n, k = going.size, going.ndim
    first = argmax(reshape(going, (n,)), 0, np.dtype("int32"))
    given = []
    for x in carry:
        rest = x.aval.shape[k:]
        row = dynamic_slice(reshape(x, (n, *rest)), (first, *[np.int32(0)] * len(rest)), (1, *rest))
        row = broadcast_in_dim(reshape(row, rest), x.aval.shape, tuple(range(k, x.ndim)))
        given.append(select(_along(going, x), x, row))
    return given


def _checked_rule(checker: Checker, rule, n_out: int):
    """A user's rule on lists of arrays with its checks; the state follows `n_out` results."""

    def call(*args):
        closed, consts = stage_open(rule, [a.aval for a in args])
        program, _ = _with_state(checker, closed)
        *outs, code, words = eval_closed(program, *consts, *args)
        return [*outs[:n_out], code, words, *outs[n_out:]]

    return call


def _custom_jvp(checker: Checker, eqn, args, found):
    params = eqn.params
    program, rule = checker.program(params["call_jaxpr"]), params["jvp"]
    if program is None:
        return bind(custom_jvp_call_p, args, params)
    n_out = len(params["call_jaxpr"].out_avals)

    def jvp(primals, tangents):
        n, there = len(primals), [t is not None for t in tangents]
        zero: list[bool] = []

        def flat(*xs):
            given = iter(xs[n:])
            outs, ts = rule(list(xs[:n]), [next(given) if t else None for t in there])
            zero[:] = [t is None for t in ts]
            return [*outs, *[t for t in ts if t is not None]]

        outs = _checked_rule(checker, flat, n_out)(*primals, *[t for t in tangents if t is not None])
        ts = iter(outs[n_out + 2 :])
        return outs[: n_out + 2], [*[None if z else next(ts) for z in zero], None, None]

    return _taken(bind(custom_jvp_call_p, args, {**params, "call_jaxpr": program, "jvp": jvp}), found)


def _custom_vjp(checker: Checker, eqn, args, found):
    params = eqn.params
    program, fwd, bwd = checker.program(params["call_jaxpr"]), params["fwd"], params["bwd"]
    if program is None:
        return bind(custom_vjp_call_p, args, params)
    n_out = len(params["call_jaxpr"].out_avals)

    def checked_fwd(*primals, **told):
        def flat(*xs):
            outs, residuals = fwd(*xs, **told)
            return [*outs, *residuals]

        outs = _checked_rule(checker, flat, n_out)(*primals)
        return outs[: n_out + 2], outs[n_out + 2 :]

    new = {
        **params,
        "call_jaxpr": program,
        "fwd": checked_fwd,
        "bwd": lambda residuals, cts: bwd(residuals, cts[:n_out]),
    }
    return _taken(bind(custom_vjp_call_p, args, new), found)


def _shard_map(checker: Checker, eqn, args, found):
    """Each device gives its own state, stacked along one axis; the first that failed is taken."""
    params = eqn.params
    mesh, manual, closed = params["mesh"], params["manual_axes"], params["jaxpr"]
    with ShardMap.inside(params):
        program = checker.program(closed)
        if program is None:
            return bind(shard_map_p, args, params)

        def part(*xs, program=program):
            *outs, code, words = eval_closed(program, *xs)
            return [*outs, reshape(code, (1,)), reshape(words, (1, checker.width))]

        whole = stage_closed(part, closed.in_avals, closed.jaxpr.debug_info)
    axes = tuple([a for a in mesh.axis_names if a in manual])
    outs = bind(
        shard_map_p, args, {**params, "jaxpr": whole, "out_specs": (*params["out_specs"], P(axes), P(axes, None))}
    )
    found.take(*first_failed(*outs[-2:]))
    return outs[:-2]


PROGRAM_RULES.update(
    {
        jit_p: _call,
        remat_p: _call,
        cond_p: _cond,
        scan_p: _scan,
        while_p: _while,
        custom_jvp_call_p: _custom_jvp,
        custom_vjp_call_p: _custom_vjp,
        shard_map_p: _shard_map,
    }
)
