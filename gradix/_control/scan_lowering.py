"""Lowers a scan to StableHLO: to a while loop over slices, or to its steps one after another."""

from __future__ import annotations

import numpy as np

from gradix._control.inner_programs import is_any_ordered
from gradix._core.aval import make_aval
from gradix._core.divisions import sums


class Loop:
    """Lowers one scan."""

    __slots__ = ("em", "jaxpr", "consts", "xs", "length", "reverse", "num_carry", "index")

    def __init__(self, em, jaxpr, consts, xs, length, reverse, *, num_carry):
        # XLA adds up summands where it reads rows, so that is done before.
        xs = [em.added_up(x, x.aval) for x in xs]
        self.em, self.jaxpr, self.consts, self.xs = em, jaxpr, consts, xs
        self.length, self.reverse, self.num_carry = length, reverse, num_carry
        self.index = make_aval((), np.dtype("int64" if type(length) is int and length >= 2**31 else "int32"))

    def straight(self, carry, ys_avals) -> list:
        """Write all steps one after another, without a loop."""
        columns = []
        for i in range(self.length):
            carry, ys = self._step(carry, self.em.constant(self._place(i), self.index))
            columns.append(ys)
        if self.reverse:
            columns.reverse()
        return [*carry, *[self._concatenated([c[j] for c in columns], a) for j, a in enumerate(ys_avals)]]

    def rolled(self, carry, ys_avals, unroll: int) -> list:
        """Write a loop with `unroll` steps per iteration; the remaining steps follow the loop."""
        em, nk = self.em, self.num_carry
        whole = self.length - self.length % unroll if unroll > 1 else self.length
        state = [em.constant(0, self.index), *carry, *[self._empty(a) for a in ys_avals]]
        limit, last = self._number(whole), self._number(self.length - 1)
        offsets = [em.constant(k, self.index) for k in range(unroll + 1)]

        def condition(i, *_):
            return [em.called("lt", em.compare, i, limit, "LT")]

        def turn(i, *rest):
            carry, ys = list(rest[:nk]), list(rest[nk:])
            for k in range(unroll):
                at = em.called("add", em.op, "add", self.index, i, offsets[k]) if k else i
                if self.reverse:
                    at = em.called("sub", em.op, "subtract", self.index, last, at)
                carry, rows = self._step(carry, at)
                ys = [self._put(y, r, at) for y, r in zip(ys, rows)]
            following = em.called("add", em.op, "add", self.index, i, offsets[unroll])
            return [following, *carry, *ys]

        _, *rest = em.while_loop(state, condition, turn, ordered=is_any_ordered(self.jaxpr.effects))
        carry, ys = rest[:nk], rest[nk:]
        for k in range(whole, self.length) if unroll > 1 else ():
            at = em.constant(self._place(k), self.index)
            carry, rows = self._step(carry, at)
            ys = [self._put(y, r, at) for y, r in zip(ys, rows)]
        return [*carry, *ys]

    def _empty(self, aval):
        """The rows before any is written; those that are still to be summed over devices are written so."""
        return self.em.constant(0, aval if self._is_summand(aval) else aval.plain)

    def _is_summand(self, aval) -> bool:
        return self.em.is_divided and bool(sums(aval).unreduced)

    def _number(self, n):
        return self.em.number(n, self.index.dtype)

    def _place(self, i: int) -> int:
        return self.length - 1 - i if self.reverse else i

    def _step(self, carry, at):
        wanted = self.jaxpr.in_avals[len(self.consts) + len(carry) :]
        rows = [self.em.in_parts(self._row(x, at), a) for x, a in zip(self.xs, wanted)]
        outs = self.em.inline(self.jaxpr.jaxpr, self.jaxpr.consts, [*self.consts, *carry, *rows])
        return outs[: self.num_carry], outs[self.num_carry :]

    def _starts(self, at, ndim: int) -> list:
        return [at, *[self.em.constant(0, self.index)] * (ndim - 1)]

    def _row(self, x, at):
        return self.em.called("dynamic_slice", self._taken, x, at)

    def _taken(self, x, at):
        shape = x.aval.shape
        one = self.em.dynamic_slice(x, self._starts(at, len(shape)), (1, *shape[1:]))
        return self.em.reshape(one, shape[1:])

    def _put(self, y, r, at):
        return self.em.called("dynamic_update_slice", self._written, y, r, at)

    def _written(self, y, r, at):
        one = self._summand(self.em.reshape(r, (1, *r.aval.shape)), y.aval)
        return self._summand(self.em.dynamic_update_slice(y, one, self._starts(at, y.aval.ndim)), y.aval)

    def _summand(self, x, aval):
        """`x`, which is a summand if values of the type `aval` are: XLA takes it for the sum if that is not said."""
        if not self._is_summand(aval):
            return x
        return self.em.constrained(x, aval.division.mesh, aval.division.spec)

    def _concatenated(self, rows, aval):
        if not rows:
            return self.em.constant(0, aval)
        ones = [self._summand(self.em.reshape(r, (1, *r.aval.shape)), aval) for r in rows]
        return self._summand(self.em.concatenate(ones, 0, aval), aval)
