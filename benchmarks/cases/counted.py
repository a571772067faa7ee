"""Sizes that values decide: without a size on Gradix, beside JAX with `size=`, which pads to it, and NumPy."""

import numpy as np

from benchmarks.case import case

N = 1 << 16


def _chosen(x, values, mask):
    """The elements that a mask selects, and the ones in place of missing ones, which JAX pads with."""
    if x.name == "jax":
        (at,) = x.np.nonzero(mask, size=mask.shape[0], fill_value=mask.shape[0])
        return values.at[at].get(mode="fill", fill_value=0.0)
    return values[mask]


def _program(name: str, function, limit: float = 1.1, numpy=None):
    """Register a function of (target, numbers, mask), compiled once."""

    def make(x):
        values = x.array(N)
        mask = values > 1.0
        f = x.api.jit(lambda v, m: function(x, v, m))
        return lambda: f(values, mask)

    def with_numpy(x):
        values = np.random.default_rng(0).random(N).astype(np.float32) + np.float32(0.5)
        mask = values > 1.0
        return lambda: numpy(values, mask)

    case(name, "counted", limit, numpy=None if numpy is None else with_numpy)(make)


_program("elements of a mask", lambda x, v, m: _chosen(x, v, m), numpy=lambda v, m: v[m])
_program("sum of a mask", lambda x, v, m: _chosen(x, v, m).sum(), numpy=lambda v, m: v[m].sum())
_program("sorted elements of a mask", lambda x, v, m: x.np.sort(_chosen(x, v, m)), numpy=lambda v, m: np.sort(v[m]))
_program("running sums of a mask", lambda x, v, m: x.np.cumsum(_chosen(x, v, m)), numpy=lambda v, m: np.cumsum(v[m]))
_program("gradient through a mask", lambda x, v, m: x.api.grad(lambda v: (_chosen(x, v, m) ** 2).sum())(v))


@case("distinct numbers", "counted", 1.1, numpy=True)
def _distinct(x):
    values = x.np.floor(x.np.asarray(np.random.default_rng(0).random(N).astype(np.float32)) * 1000)
    if x.name == "numpy":
        return lambda: np.unique(values)
    f = x.api.jit(lambda v: x.np.unique(v, size=N) if x.name == "jax" else x.np.unique(v))
    return lambda: f(values)


@case("a hundred counts of a mask, first calls", "counted", 1.3)
def _counts(x):
    values = x.array(1 << 10)
    order = x.np.arange(1 << 10)

    def run():
        f = x.api.jit(lambda v, m: _chosen(x, v, m).sum())
        return [f(values, order < n) for n in range(100)][-1]

    return run
