"""Calls of compiled functions that do almost nothing: what is left is the price of the call."""

from benchmarks.case import case

LIMIT = 1.5


@case("call, one array", "dispatch", LIMIT)
def one(x):
    a = x.array(8)
    f = x.api.jit(lambda v: v + 1.0)
    return lambda: f(a)


@case("call, two arrays", "dispatch", LIMIT)
def two(x):
    a, b = x.array(8), x.array(8, seed=1)
    f = x.api.jit(lambda v, w: v + w)
    return lambda: f(a, b)


@case("call, a tree of 20 arrays", "dispatch", LIMIT)
def tree(x):
    params = {f"layer{i}": {"w": x.array(4, 4, seed=i), "b": x.array(4, seed=i)} for i in range(10)}
    f = x.api.jit(lambda p: x.api.tree.map(lambda v: v + 1.0, p))
    return lambda: f(params)
