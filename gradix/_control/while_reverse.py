"""Reverse mode through loops of unknown length: a forward run with checkpoints, a backward run.

Iterations are grouped into units. The forward run keeps the carry before every `stride`-th unit,
and doubles the stride when its checkpoint rows are full. The backward run fills free rows by the
binomial schedule. So the memory does not grow with the number of iterations.
"""

from __future__ import annotations

import math

import numpy as np

from gradix._control.inner_programs import split
from gradix._control.scan_linear import invariants, linear_body, transposed_body
from gradix._core.array import ArrayImpl, scalar_array
from gradix._core.aval import make_aval
from gradix._core.trace import bind, cotangent_like
from gradix._ops.basis import add_any, broadcast_in_dim, reduce_sum, tangent_aval, zeros
from gradix._ops.comparison import eq, gt, lt
from gradix._ops.complex_parts import neg
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from gradix._ops.select import choose
from gradix._transforms.linearize import linearize_jaxpr
from gradix._transforms.staging import eval_closed, only_returned, stage_open

SLOTS = 32  # the number of checkpoint rows
# the forward run fills at most this many rows; the others are left for the backward run
FIRST = 24
# a checkpoint can be taken every so many iterations; as many rows of residuals are kept at once
UNIT = 32
# four values precede the rows: units run, iterations of the last unit, rows used, units of the rows
SAVED = 4
_INT = np.dtype(np.int32)
_LIMIT = int(np.iinfo(np.int32).max)


def _int(n: int):
    return scalar_array(n, _INT, False)


def _table(entry) -> ArrayImpl:
    values = [[min(entry(free, runs), _LIMIT) for runs in range(16)] for free in range(SLOTS + 1)]
    return ArrayImpl(np.array(values, _INT), make_aval((SLOTS + 1, 16), _INT))


# by free rows and by runs of each unit: the units that can be served (binomial schedule), and those
# that are left after the next checkpoint
_REACH = _table(lambda free, runs: math.comb(free + runs, free))
_BEYOND = _table(lambda free, runs: math.comb(free - 1 + runs, free - 1) if free else 1)


def _next(i, by: int = 1):
    return add_any(i, _int(by))


def _read(rows, at):
    return dynamic_index_in_dim(rows, at, keepdims=False, allow_negative_indices=False)


def _write(rows, row, at):
    return dynamic_update_index_in_dim(rows, row, at, 0, allow_negative_indices=False)


def _rows(n: int, aval):
    return zeros(make_aval((n, *aval.shape), aval.dtype))


def _both(a, b):
    return choose(a, a, b)


class Turns:
    """A loop's condition and body as functions of its carry; `loop` is `while_p`."""

    def __init__(self, loop, cc, bc, params):
        self.loop, self.cc, self.bc = loop, cc, bc
        self.cond, self.body = params["cond_jaxpr"], params["body_jaxpr"]
        self.masked = bool(self.cond.out_avals[0].shape)

    def repeat(self, going, turn, state) -> list:
        """Bind `while_p` for a condition and a body that are functions of the state."""
        avals = [s.aval for s in state]
        cond, cond_consts = stage_open(lambda *s: [going(*s)], avals)
        body, body_consts = stage_open(lambda *s: turn(*s), avals)
        return bind(
            self.loop,
            [*cond_consts, *body_consts, *state],
            {
                "body_jaxpr": body,
                "body_nconsts": len(body_consts),
                "cond_jaxpr": cond,
                "cond_nconsts": len(cond_consts),
            },
        )

    def each(self, carry):
        """Whether each loop continues: the condition, with its leading axes."""
        return eval_closed(self.cond, *self.cc, *carry)[0]

    def going(self, carry):
        """Whether any loop continues."""
        on = self.each(carry)
        if not self.masked:
            return on
        count = reduce_sum(
            choose(on, _int(0), broadcast_in_dim(_int(1), on.aval.shape, ())), tuple(range(on.aval.ndim))
        )
        return gt(count, _int(0))

    def kept(self, on, new, old) -> list:
        """The new values for loops that continue, the old values for the others."""
        if not self.masked:
            return new
        lanes = tuple(range(on.aval.ndim))
        return [choose(broadcast_in_dim(on, n.aval.shape, lanes), o, n) for n, o in zip(new, old)]

    def turn(self, *carry) -> list:
        new = eval_closed(self.body, *self.bc, *carry)
        return self.kept(self.each(carry), new, carry) if self.masked else new

    def unit(self, carry, count=None) -> list:
        """Run one unit; returns the number of its iterations, and the carry after them."""
        count = _int(UNIT) if count is None else count
        return self.repeat(
            lambda k, *c: _both(lt(k, count), self.going(c)),
            lambda k, *c: [_next(k), *self.turn(*c)],
            [_int(0), *carry],
        )


def saved_avals(carry) -> list:
    """The types of the checkpoints that a forward run keeps, for a carry of these types."""
    scalar = make_aval((), _INT)
    return [scalar] * 3 + [make_aval((SLOTS, *a.shape), a.dtype) for a in (scalar, *carry)]


# -- forward ---------------------------------------------------------------------------------------


def saving(turns: Turns, init) -> list:
    """The forward run.

    Returns:
        the last carry, the number of units, the iterations of the last unit, the number of rows
        used, the units that the rows precede, and the rows.
    """
    n = len(init)

    def unit(u, _, used, wait, stride, *state):
        store = eq(wait, _int(0))
        full = _both(store, eq(used, _int(FIRST)))
        carry, rows = state[:n], _halved(turns, full, state[n:])
        used = choose(full, used, _int(FIRST // 2))
        stride = choose(full, stride, add_any(stride, stride))
        rows = [_write(r, x, used) for r, x in zip(rows, [u, *carry])]
        last, *carry = turns.unit(carry)
        wait = choose(store, _next(wait, -1), _next(stride, -1))
        return [_next(u), last, choose(store, used, _next(used)), wait, stride, *carry, *rows]

    rows = [_rows(SLOTS, x.aval) for x in (_int(0), *init)]
    u, last, used, _, _, *state = turns.repeat(
        lambda *s: turns.going(s[5 : 5 + n]), unit, [_int(0), _int(0), _int(0), _int(0), _int(1), *init, *rows]
    )
    return [*state[:n], u, last, used, *state[n:]]


def _halved(turns: Turns, full, rows) -> list:
    """The rows with every second one moved to the front, if `full`."""
    return turns.repeat(
        lambda k, *_: lt(k, _int(FIRST // 2)),
        lambda k, *rs: [_next(k), *[_write(r, _read(r, add_any(k, k)), k) for r in rs]],
        [choose(full, _int(FIRST // 2), _int(1)), *rows],
    )[1:]


# -- backward --------------------------------------------------------------------------------------


def returning(turns: Turns, init, saved, cts, nonzero, apart: bool) -> list:
    """The backward run: cotangents of constants and first carry, from those of the last carry."""
    units, last, used, *rows = saved
    step = _Step(turns, init, nonzero, apart)
    n_rows = len(rows)

    def unit(left, used, *state):
        target = _next(left, -1)
        used, *rows = _placed(turns, target, used, state[:n_rows])
        count = choose(eq(left, units), _int(UNIT), last)
        sums_cts = step.unit([_read(r, _next(used, -1)) for r in rows[1:]], count, state[n_rows:])
        return [target, _next(used, -1), *rows, *sums_cts]

    state = [units, used, *rows, *step.sums(), *cts]
    outs = turns.repeat(lambda left, *_: gt(left, _int(0)), unit, state)
    return step.all_cotangents(outs[2 + n_rows :])


def _placed(turns: Turns, target, used, rows) -> list:
    """Run forward and fill free rows, until the last row is the carry before the unit `target`."""

    def behind(used, places, *_):
        return lt(_read(places, _next(used, -1)), target)

    def advance(used, *rows):
        place, *carry = [_read(r, _next(used, -1)) for r in rows]
        to = _next_place(place, target, used)
        _, *carry = turns.repeat(lambda u, *_: lt(u, to), lambda u, *c: [_next(u), *turns.unit(c)[1:]], [place, *carry])
        return [_next(used), *[_write(r, x, used) for r, x in zip(rows, [to, *carry])]]

    return turns.repeat(behind, advance, [used, *rows])


def _next_place(place, target, used):
    """The best unit for the next checkpoint after `place`, on the way to the unit `target`."""
    one = _int(1)
    left = add_any(_next(target), neg(place))
    free = add_any(_int(SLOTS), neg(used))
    reach = _read(_REACH, free)
    runs = reduce_sum(
        choose(lt(reach, broadcast_in_dim(left, (16,), ())), _int(0), broadcast_in_dim(one, (16,), ())), (0,)
    )
    to = add_any(_next(target), neg(_read(_read(_BEYOND, free), runs)))
    nearest = _next(place)
    return choose(lt(to, nearest), to, nearest)


class _Step:
    """The derivative of one iteration; it stores residuals of a unit, and runs back through it."""

    def __init__(self, turns: Turns, init, nonzero, apart: bool):
        body, nk, nb = turns.body, len(init), len(turns.bc)
        self.init, self.apart = init, apart
        cut = linearize_jaxpr(body, nonzero, nonzero[nb:])
        assert cut.out_nonzero == nonzero[nb:]
        self.turns, self.nk = turns, nk
        self.known, hoisted, plan = linear_body(cut, nb, nk)
        fixed = invariants(hoisted, turns.bc)
        self.consts = [turns.bc[i] if kind == "in" else fixed[i] for kind, i in plan.known_consts]
        self.fixed = [turns.bc[i] if kind == "in" else fixed[i] for kind, i in plan.fixed]
        self.places = [i for _, i in plan.rows]
        n_c, n_k, n_res = sum(nonzero[:nb]), sum(nonzero[nb:]), len(self.fixed)
        linear = (*[False] * n_res, *[True] * (n_c + n_k), *[False] * len(plan.rows))
        self.back, live, refs = transposed_body(plan.body, linear, (True,) * n_k, n_res + n_c, n_k)
        if refs:
            raise only_returned(refs[0][0], body.jaxpr)
        self.live = live[n_res : n_res + n_c]
        self.avals = [tangent_aval(a) for a, nz in zip(body.in_avals[:nb], nonzero) if nz]

    def sums(self) -> list:
        return [cotangent_like(zeros(a), a) for a, alive in zip(self.avals, self.live) if alive]

    def unit(self, carry, count, state) -> list:
        """Sums and cotangents before a unit, from those after it."""
        turns, masked, n_sums = self.turns, self.turns.masked, sum(self.live)

        def keep(k, *state):
            carry, rows = state[: self.nk], state[self.nk :]
            on = turns.each(carry) if masked else None
            # loops that have ended run their first iteration again, because past its end a loop
            # may have no finite derivative
            outs = eval_closed(self.known, *self.consts, *turns.kept(on, carry, self.init))
            kept = [outs[i] for i in self.places]
            if masked:
                outs[: self.nk] = turns.kept(on, outs[: self.nk], carry)
                kept.append(on)
            return [_next(k), *outs[: self.nk], *[_write(r, x, k) for r, x in zip(rows, kept)]]

        avals = [self.known.out_avals[i] for i in self.places]
        rows = [_rows(UNIT, a) for a in ([*avals, turns.cond.out_avals[0]] if masked else avals)]
        done, *after = turns.repeat(
            lambda k, *s: _both(lt(k, count), turns.going(s[: self.nk])), keep, [_int(0), *carry, *rows]
        )
        rows = after[self.nk :]

        def back(k, *state):
            k = _next(k, -1)
            at = [_read(r, k) for r in rows]
            on = at.pop() if masked else None
            sums, cts = split(state, n_sums)
            live = turns.kept(on, cts, [zeros(c.aval) for c in cts]) if masked else cts
            new_sums, new = split(eval_closed(self.back, *self.fixed, *sums, *live, *at), n_sums)
            return [k, *(turns.kept(on, new_sums, sums) if self.apart else new_sums), *turns.kept(on, new, cts)]

        return turns.repeat(lambda k, *_: gt(k, _int(0)), back, [done, *state])[1:]

    def all_cotangents(self, state) -> list:
        given = iter(state)
        consts = [next(given) if alive else cotangent_like(zeros(a), a) for a, alive in zip(self.avals, self.live)]
        return [*consts, *given]
