"""Control flow: what it computes, its types, and its errors, eager and under transformations."""

import numpy as np

from tests.parity.case import Case, sample

V = sample("float32", (4,), 130)
M = sample("float32", (3, 4), 131)

# Functions of (ns, x) that use control flow; x is a float32[4].
BODIES = {
    "cond": lambda ns, x: ns.lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: ns.jnp.sin(a), x),
    "cond not taken": lambda ns, x: ns.lax.cond(x.sum() > 99, lambda a: a * 2, lambda a: ns.jnp.sin(a), x),
    "cond constants": lambda ns, x: ns.lax.cond(x[0] > 0, lambda: x + 1, lambda: x * x),
    "cond tree": lambda ns, x: ns.lax.cond(
        x[0] > 9, lambda d: {"a": d["a"], "n": 1}, lambda d: {"a": d["a"] * 3, "n": 2}, {"a": x}
    ),
    "switch": lambda ns, x: ns.lax.switch(
        (x > 0).sum() % 3, [lambda a: a, lambda a: a * a, lambda a: ns.jnp.exp(a)], x
    ),
    "switch clamps": lambda ns, x: ns.lax.switch(7, [lambda a: a, lambda a: a * a], x),
    "while": lambda ns, x: ns.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))[1],
    "fori": lambda ns, x: ns.lax.fori_loop(0, 4, lambda i, c: c + i * ns.jnp.cos(c), x),
    "fori traced bound": lambda ns, x: ns.lax.fori_loop(0, (x > -99).sum(), lambda i, c: c * 1.1 + i, x),
    "fori empty": lambda ns, x: ns.lax.fori_loop(3, 1, lambda i, c: c + 1, x),
    "scan": lambda ns, x: ns.lax.scan(lambda c, v: (c * 0.5 + v, c * v), 0.5, x),
    "scan reverse": lambda ns, x: ns.lax.scan(lambda c, v: (c + v, c * v), 0.0, x, reverse=True),
    "scan length": lambda ns, x: ns.lax.scan(lambda c, _: (c * 1.1, c.sum()), x, None, length=3),
    "scan unroll": lambda ns, x: ns.lax.scan(lambda c, v: (c + v, c), 0.0, x, unroll=2),
    "scan unroll all": lambda ns, x: ns.lax.scan(lambda c, v: (ns.jnp.sin(c) + v, None), 0.0, x, unroll=True),
    "scan tree": lambda ns, x: ns.lax.scan(
        lambda c, v: ({"a": c["a"] + v[0]}, (v[1], c["a"])), {"a": 1.0}, (x, ns.jnp.arange(4))
    ),
    "scan closure": lambda ns, x: ns.lax.scan(lambda c, v: (c @ ns.jnp.outer(x, x) * 0.1 + v, c[0]), x, x),
    "nested scan": lambda ns, x: ns.lax.scan(lambda c, v: ns.lax.scan(lambda d, w: (d * w, d), c + v, x), 1.0, x),
    "scan of cond": lambda ns, x: ns.lax.scan(
        lambda c, v: (ns.lax.cond(v > 0, lambda a: a + v, lambda a: a * 0.5, c), c), 1.0, x
    ),
    "cond of while": lambda ns, x: ns.lax.cond(
        x[1] < 9, lambda a: ns.lax.fori_loop(0, 3, lambda i, c: c * c, a), lambda a: a, x
    ),
    "map": lambda ns, x: ns.lax.map(lambda v: ns.jnp.sin(v) * v, x),
    "map batch": lambda ns, x: ns.lax.map(lambda v: v**2, x, batch_size=3),
    "associative add": lambda ns, x: ns.lax.associative_scan(ns.jnp.add, x),
    "associative reverse": lambda ns, x: ns.lax.associative_scan(ns.jnp.multiply, x, reverse=True),
    "associative pairs": lambda ns, x: ns.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x)),
    "custom_root": lambda ns, x: ns.lax.custom_root(
        lambda y: y - x / 2, x, lambda f, y: y - f(y), lambda g, y: y / g(ns.jnp.ones_like(y))
    ),
    "linear solve": lambda ns, x: ns.lax.custom_linear_solve(
        lambda v: 2 * v, x, lambda mv, b: b / 2, lambda vm, b: b / 2
    ),
    "select chain": lambda ns, x: ns.jnp.where(x > 0, ns.lax.stop_gradient(x) * x, ns.jnp.sqrt(ns.jnp.abs(x))),
}
REVERSE_FREE = {"while", "fori traced bound"}

ERRORS = {
    "cond branches differ in dtype": lambda ns, x: ns.lax.cond(True, lambda a: a, lambda a: a.astype(int), x),
    "cond branches differ in shape": lambda ns, x: ns.lax.cond(True, lambda a: a, lambda a: a[:2], x),
    "cond branches differ in tree": lambda ns, x: ns.lax.cond(True, lambda a: a, lambda a: (a, a), x),
    "cond branches weak": lambda ns, x: ns.lax.cond(x[0] > 0, lambda: 1.0, lambda: ns.jnp.float32(2)),
    "cond predicate array": lambda ns, x: ns.lax.cond(x > 0, lambda a: a, lambda a: a, x),
    "cond predicate float": lambda ns, x: ns.lax.cond(x[0], lambda a: a, lambda a: a * 2, x),
    "cond predicate string": lambda ns, x: ns.lax.cond("yes", lambda a: a, lambda a: a, x),
    "cond not callable": lambda ns, x: ns.lax.cond(True, 3, lambda a: a, x),
    "switch none": lambda ns, x: ns.lax.switch(0, [], x),
    "switch float": lambda ns, x: ns.lax.switch(0.5, [lambda a: a, lambda a: a], x),
    "while carry dtype": lambda ns, x: ns.lax.while_loop(lambda c: c < 3, lambda c: c + 0.5, 0),
    "while carry shape": lambda ns, x: ns.lax.while_loop(lambda c: c.sum() < 3, lambda c: c[:2], x),
    "while carry tree": lambda ns, x: ns.lax.while_loop(lambda c: c[0] < 3, lambda c: c[0], (0, 1)),
    "while predicate": lambda ns, x: ns.lax.while_loop(lambda c: c, lambda c: c, x),
    "while predicate tree": lambda ns, x: ns.lax.while_loop(lambda c: (c, c), lambda c: c, True),
    "while weak carry": lambda ns, x: ns.lax.while_loop(lambda c: c < 3, lambda c: c + ns.jnp.float32(1), 0.0),
    "fori carry": lambda ns, x: ns.lax.fori_loop(0, 3, lambda i, c: c[:1], x),
    "fori bound float": lambda ns, x: ns.lax.fori_loop(0, 2.5, lambda i, c: c, x),
    "scan carry dtype": lambda ns, x: ns.lax.scan(lambda c, v: (c + v, c), 0, x),
    "scan carry shape": lambda ns, x: ns.lax.scan(lambda c, v: (x, v), 0.0, x),
    "scan carry weak": lambda ns, x: ns.lax.scan(lambda c, v: (c + v, c), 0.0, x),
    "scan lengths": lambda ns, x: ns.lax.scan(lambda c, v: (c, v), 0.0, (x, x[:2])),
    "scan length argument": lambda ns, x: ns.lax.scan(lambda c, v: (c, v), 0.0, x, length=7),
    "scan no length": lambda ns, x: ns.lax.scan(lambda c, v: (c, v), 0.0, None),
    "scan scalar": lambda ns, x: ns.lax.scan(lambda c, v: (c, v), 0.0, 3.0),
    "scan not a pair": lambda ns, x: ns.lax.scan(lambda c, v: c, 0.0, x),
    "scan empty": lambda ns, x: ns.lax.scan(lambda c, v: (c + v, c), ns.jnp.float32(1), x[:0]),
    "map scalar": lambda ns, x: ns.lax.map(lambda v: v, 3.0),
    "associative not callable": lambda ns, x: ns.lax.associative_scan(3, x),
    "associative lengths": lambda ns, x: ns.lax.associative_scan(lambda a, b: (a[0] + b[0], a[1] + b[1]), (x, x[:2])),
    "grad of while": lambda ns, x: ns.jax.grad(lambda a: BODIES["while"](ns, a).sum())(x),
    "grad of traced fori": lambda ns, x: ns.jax.grad(lambda a: BODIES["fori traced bound"](ns, a).sum())(x),
    "jvp of while": lambda ns, x: ns.jax.jvp(lambda a: BODIES["while"](ns, a), (x,), (x,)),
    "if on tracer": lambda ns, x: ns.jax.jit(lambda a: a if a[0] > 0 else -a)(x),
    "range of tracer": lambda ns, x: ns.jax.jit(lambda n: list(range(n)))(3),
    "int of tracer": lambda ns, x: ns.jax.jit(lambda a: int(a[0]))(x),
    "float of tracer": lambda ns, x: ns.jax.jit(lambda a: float(a[0]))(x),
    "numpy of tracer": lambda ns, x: ns.jax.jit(lambda a: np.sin(a))(x),
    "shape from tracer": lambda ns, x: ns.jax.jit(lambda n: ns.jnp.zeros(n))(3),
    "arange of tracer": lambda ns, x: ns.jax.jit(lambda n: ns.jnp.arange(n))(3),
    "iterate tracer": lambda ns, x: ns.jax.jit(lambda a: sum(v for v in a))(x),
    "item of tracer": lambda ns, x: ns.jax.jit(lambda a: a[0].item())(x),
    "tolist of tracer": lambda ns, x: ns.jax.jit(lambda a: a.tolist())(x),
    "len of tracer": lambda ns, x: ns.jax.jit(lambda a: a * len(a))(x),
    "assert on tracer": lambda ns, x: ns.jax.jit(lambda a: a if a.all() else a)(x),
    "in tracer": lambda ns, x: ns.jax.jit(lambda a: 3.0 in a)(x),
}


def total(ns, value):
    """A scalar of everything inexact in a tree."""
    leaves = ns.tree_util.tree_leaves(value)
    return sum(
        ns.jnp.sum(leaf * (i + 1))
        for i, leaf in enumerate(leaves)
        if ns.jnp.issubdtype(ns.jnp.result_type(leaf), np.inexact)
    )


def cases():
    for name, body in BODIES.items():
        for way, wrap in WAYS.items():
            if not (name in REVERSE_FREE and way in ("grad", "jit grad", "vmap grad", "hessian", "grad remat")):
                yield Case(f"{way} {name}", lambda ns, body=body, wrap=wrap: wrap(ns, lambda x: body(ns, x)), 2e-4)
    for name, body in ERRORS.items():
        reverse = name in ("grad of while", "grad of traced fori")
        yield Case(name, lambda ns, body=body: body(ns, ns.jnp.asarray(V)), may_work=reverse)


WAYS = {
    "eager": lambda ns, f: f(ns.jnp.asarray(V)),
    "jit": lambda ns, f: ns.jax.jit(f)(V),
    "jvp": lambda ns, f: ns.jax.jvp(f, (V,), (V[::-1].copy(),)),
    "grad": lambda ns, f: ns.jax.grad(lambda x: total(ns, f(x)))(V),
    "jit grad": lambda ns, f: ns.jax.jit(ns.jax.grad(lambda x: total(ns, f(x))))(V),
    "vmap": lambda ns, f: ns.jax.vmap(f)(M),
    "vmap grad": lambda ns, f: ns.jax.vmap(ns.jax.grad(lambda x: total(ns, f(x))))(M),
    "grad remat": lambda ns, f: ns.jax.grad(lambda x: total(ns, ns.jax.checkpoint(f)(x)))(V),
    "hessian": lambda ns, f: ns.jax.hessian(lambda x: total(ns, f(x)))(V),
    "eval_shape": lambda ns, f: ns.jax.eval_shape(f, V),
}
