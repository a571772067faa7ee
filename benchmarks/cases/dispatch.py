"""Calls of compiled functions that do almost nothing, which measure the cost of the call itself."""

import numpy

from benchmarks.case import case

LIMIT = 1.0


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


@case("call, a NumPy argument", "dispatch", LIMIT)
def numpy_argument(x):
    a = numpy.ones(8, numpy.float32)
    f = x.api.jit(lambda v: v + 1.0)
    return lambda: f(a)


@case("call, a Python number", "dispatch", LIMIT)
def number(x):
    f = x.api.jit(lambda v: v + 1.0)
    return lambda: f(2.0)


@case("call, a static argument", "dispatch", LIMIT)
def static(x):
    a = x.array(8)
    f = x.api.jit(lambda v, n: v * n, static_argnums=1)
    return lambda: f(a, 3)


@case("call, a static tuple", "dispatch", LIMIT)
def static_tuple(x):
    a = x.array(8)
    f = x.api.jit(lambda v, options: options[0][1](v) * options[1], static_argnums=1)
    return lambda: f(a, (("name", x.np.tanh, None), 2.0, (3, 4)))


@case("call, a tree of 20 donated arrays", "dispatch", LIMIT)
def donated_tree(x):
    f = x.api.jit(lambda t: x.api.tree.map(lambda v: v * 0.5, t), donate_argnums=0)
    kept = [{f"k{i:02}": x.array(8, seed=i) for i in range(20)}]

    def run():
        kept[0] = f(kept[0])
        return kept[0]

    return run


@case("500 steps of gradient descent", "dispatch", LIMIT)
def train(x):
    features = x.array(8, 4)

    def loss(p, v):
        return ((v @ p["w"] + p["b"]) ** 2).mean()

    @x.api.jit
    def step(p, v):
        return x.api.tree.map(lambda q, d: q - 0.01 * d, p, x.api.grad(loss)(p, v))

    def run():
        p = {"w": x.array(4, 4), "b": x.array(4, seed=1)}
        for _ in range(500):
            p = step(p, features)
        return p

    return run
