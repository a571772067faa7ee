"""Transformations of functions from arrays to an array, each with a second way to compute the same.

`Transformations(api)` holds them in the words of a library with JAX's interface, gradix or the reference. A name stands
for two functions that take `f(*arrays) -> array` to another such function: the transformation under test, and the same
by plain loops, other transformations or nothing at all.
"""

from __future__ import annotations

import numpy as np

FACTORS = (1.0, 0.5, -0.75)


def identity(f):
    return f


def tangents(xs):
    return tuple([0.5 * x + 0.25 for x in xs])


def by_scaling(xs):
    return [tuple([c * x for x in xs]) for c in FACTORS]


def squared(f):
    return lambda *xs: (f(*xs) ** 2).sum()


def vmap_looped(f):
    return lambda *xs: sum([f(*row) for row in by_scaling(xs)])


def over_last_looped(f):
    return lambda x, *rest: sum([f(c * x, *rest) for c in FACTORS])


class Transformations:
    """The transformations of one library; `wrappers` keep values, `derivatives` give slopes."""

    def __init__(self, api):
        self.api, self.np, self.lax = api, api.numpy, api.lax
        self.wrappers = {
            "jit": (api.jit, identity),
            "inlined jit": (lambda f: api.jit(f, inline=True), identity),
            "checkpoint": (api.checkpoint, identity),
            "checkpoint of dots": (lambda f: api.checkpoint(f, policy=api.checkpoint_policies.dots_saveable), identity),
            "vmap": (self.vmapped, vmap_looped),
            "vmap over the last axis": (self.vmapped_over_last, over_last_looped),
            "scan": (self.scanned, over_last_looped),
            "fori_loop": (self.looped, over_last_looped),
            "cond": (self.branched, self.selected),
            "custom_jvp": (self.ruled_forward, identity),
            "custom_vjp": (self.ruled_backward, identity),
        }
        self.derivatives = {
            "jvp": (self.pushed, self.pulled_twice),
            "linearize": (self.linearized, self.pushed),
            "grad": (self.gradient, self.gradient_by_columns),
        }

    def stacked(self, names, side: int, f):
        """`f` wrapped by the transformations named, the first outermost; side 0 tests, side 1 compares."""
        known = self.wrappers | self.derivatives
        for name in reversed(names):
            f = known[name][side](f)
        return f

    # -- vmap ----------------------------------------------------------------------------------------------------------

    def vmapped(self, f):
        return lambda *xs: self.api.vmap(f)(*[self.np.stack([c * x for c in FACTORS]) for x in xs]).sum(0)

    def vmapped_over_last(self, f):
        """The first argument mapped over its last axis, the others shared; the result's last axis is the mapped one."""

        def g(x, *rest):
            rows = self.np.stack([c * x for c in FACTORS], -1)
            return self.api.vmap(f, (-1, *[None] * len(rest)), -1)(rows, *rest).sum(-1)

        return g

    # -- derivatives ---------------------------------------------------------------------------------------------------

    def pushed(self, f):
        return lambda *xs: self.api.jvp(f, xs, tangents(xs))[1]

    def pulled_twice(self, f):
        """The forward derivative as the transpose of the backward one."""

        def g(*xs):
            y, pull = self.api.vjp(f, *xs)
            return self.api.linear_transpose(pull, y)(tangents(xs))[0]

        return g

    def linearized(self, f):
        return lambda *xs: self.api.linearize(f, *xs)[1](*tangents(xs))

    def gradient(self, f):
        return self.api.grad(squared(f))

    def gradient_by_columns(self, f):
        """The gradient in the first argument, one forward derivative per element."""

        def g(x, *rest):
            basis = np.eye(x.size).reshape(x.size, *x.shape)
            slopes = [self.api.jvp(lambda x: squared(f)(x, *rest), (x,), (e,))[1] for e in basis]
            return self.np.stack(slopes).reshape(x.shape)

        return g

    # -- control flow --------------------------------------------------------------------------------------------------

    def scanned(self, f):
        def g(x, *rest):
            like = self.api.eval_shape(f, x, *rest)
            step = lambda c, s: (c + f(s * x, *rest), s)
            return self.lax.scan(step, self.np.zeros(like.shape, like.dtype), self.np.array(FACTORS))[0]

        return g

    def looped(self, f):
        """fori_loop of fixed length."""

        def g(x, *rest):
            like, factors = self.api.eval_shape(f, x, *rest), self.np.array(FACTORS)
            step = lambda i, c: c + f(factors[i] * x, *rest)
            return self.lax.fori_loop(0, len(FACTORS), step, self.np.zeros(like.shape, like.dtype))

        return g

    def branched(self, f):
        return lambda *xs: self.lax.cond(xs[0].sum() > 0.1, f, lambda *xs: 2 * f(*xs), *xs)

    def selected(self, f):
        return lambda *xs: self.np.where(xs[0].sum() > 0.1, f(*xs), 2 * f(*xs))

    # -- rules ---------------------------------------------------------------------------------------------------------

    def ruled_forward(self, f):
        g = self.api.custom_jvp(lambda *xs: f(*xs))
        g.defjvp(lambda xs, ts: self.api.jvp(f, xs, ts))
        return g

    def ruled_backward(self, f):
        g = self.api.custom_vjp(lambda *xs: f(*xs))
        g.defvjp(lambda *xs: self.api.vjp(f, *xs), lambda pull, ct: pull(ct))
        return g
