"""Transformations of functions from arrays to an array, each with a second way to compute the same.

Every entry of `WRAPPERS` is a pair of functions that take `f(*arrays) -> array` to another such function: by the
transformation under test, and by plain loops, other transformations or nothing at all.
"""

from __future__ import annotations

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax

FACTORS = (1.0, 0.5, -0.75)
identity = lambda f: f


def tangents(xs):
    return tuple([0.5 * x + 0.25 for x in xs])


def by_scaling(xs):
    return [tuple([c * x for x in xs]) for c in FACTORS]


# -- vmap --------------------------------------------------------------------------------------------------------------


def vmapped(f):
    return lambda *xs: gradix.vmap(f)(*[jnp.stack([c * x for c in FACTORS]) for x in xs]).sum(0)


def vmap_looped(f):
    return lambda *xs: sum([f(*row) for row in by_scaling(xs)])


def vmapped_over_last(f):
    """The first argument mapped over its last axis, the others shared; the result's last axis is the mapped one."""

    def g(x, *rest):
        rows = jnp.stack([c * x for c in FACTORS], -1)
        return gradix.vmap(f, (-1, *[None] * len(rest)), -1)(rows, *rest).sum(-1)

    return g


def over_last_looped(f):
    return lambda x, *rest: sum([f(c * x, *rest) for c in FACTORS])


# -- derivatives -------------------------------------------------------------------------------------------------------


def pushed(f):
    return lambda *xs: gradix.jvp(f, xs, tangents(xs))[1]


def pulled_twice(f):
    """The forward derivative as the transpose of the backward one."""

    def g(*xs):
        y, pull = gradix.vjp(f, *xs)
        return gradix.linear_transpose(pull, y)(tangents(xs))[0]

    return g


def linearized(f):
    return lambda *xs: gradix.linearize(f, *xs)[1](*tangents(xs))


def squared(f):
    return lambda *xs: (f(*xs) ** 2).sum()


def gradient(f):
    return gradix.grad(squared(f))


def gradient_by_columns(f):
    """The gradient in the first argument, one forward derivative per element."""

    def g(x, *rest):
        basis = np.eye(x.size).reshape(x.size, *x.shape)
        slopes = [gradix.jvp(lambda x: squared(f)(x, *rest), (x,), (e,))[1] for e in basis]
        return jnp.stack(slopes).reshape(x.shape)

    return g


# -- control flow ------------------------------------------------------------------------------------------------------


def scanned(f):
    def g(x, *rest):
        like = gradix.eval_shape(f, x, *rest)
        step = lambda c, s: (c + f(s * x, *rest), s)
        return lax.scan(step, jnp.zeros(like.shape, like.dtype), jnp.array(FACTORS))[0]

    return g


def looped(f):
    """fori_loop of fixed length."""

    def g(x, *rest):
        like, factors = gradix.eval_shape(f, x, *rest), jnp.array(FACTORS)
        step = lambda i, c: c + f(factors[i] * x, *rest)
        return lax.fori_loop(0, len(FACTORS), step, jnp.zeros(like.shape, like.dtype))

    return g


def branched(f):
    return lambda *xs: lax.cond(xs[0].sum() > 0.1, f, lambda *xs: 2 * f(*xs), *xs)


def selected(f):
    return lambda *xs: jnp.where(xs[0].sum() > 0.1, f(*xs), 2 * f(*xs))


# -- rules -------------------------------------------------------------------------------------------------------------


def ruled_forward(f):
    g = gradix.custom_jvp(lambda *xs: f(*xs))
    g.defjvp(lambda xs, ts: gradix.jvp(f, xs, ts))
    return g


def ruled_backward(f):
    g = gradix.custom_vjp(lambda *xs: f(*xs))
    g.defvjp(lambda *xs: gradix.vjp(f, *xs), lambda pull, ct: pull(ct))
    return g


WRAPPERS = {
    "jit": (gradix.jit, identity),
    "inlined jit": (lambda f: gradix.jit(f, inline=True), identity),
    "checkpoint": (gradix.checkpoint, identity),
    "checkpoint of dots": (
        lambda f: gradix.checkpoint(f, policy=gradix.checkpoint_policies.dots_saveable),
        identity,
    ),
    "vmap": (vmapped, vmap_looped),
    "vmap over the last axis": (vmapped_over_last, over_last_looped),
    "scan": (scanned, over_last_looped),
    "fori_loop": (looped, over_last_looped),
    "cond": (branched, selected),
    "custom_jvp": (ruled_forward, identity),
    "custom_vjp": (ruled_backward, identity),
}
DERIVATIVES = {
    "jvp": (pushed, pulled_twice),
    "linearize": (linearized, pushed),
    "grad": (gradient, gradient_by_columns),
}
ALL = WRAPPERS | DERIVATIVES


def stacked(names, side: int, f):
    """`f` wrapped by the transformations named, the first outermost; side 0 tests, side 1 compares."""
    for name in reversed(names):
        f = ALL[name][side](f)
    return f
