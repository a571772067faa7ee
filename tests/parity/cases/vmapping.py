"""vmap: axes in and out, trees of axes, names and collectives, the zoo mapped, and errors."""

import functools

import numpy as np

from tests.parity.case import Case, sample
from tests.parity.cases.zoo import NO_FORWARD, ROUGH, ZOO, M, V, W, scalar

A = sample("float32", (2, 3, 4), 150)
B = sample("float32", (3, 2), 151)
D = {"a": A, "b": B}
IN_AXES = (0, 1, 2, -1, -3, 3, -4, None, (0,), (1,), [1], (None,), 0.5, "a", (0, 1), {0: 0})
OUT_AXES = (0, 1, 2, -1, -3, None, 5, (0,), "a")
TREES = {
    "prefix": ({"a": 1, "b": 0},),
    "none": ({"a": 1, "b": None},),
    "one": (0,),
    "sizes": ({"a": 0, "b": 0},),
    "missing": ({"a": 1},),
    "extra": ({"a": 1, "b": 0, "c": 0},),
    "minus": ({"a": -2, "b": -2},),
    "list": ([1, 0],),
}


def cases():
    for axes in IN_AXES:
        yield Case(f"in_axes {axes}", lambda ns, a=axes: ns.jax.vmap(lambda x: x * 2 + 1, in_axes=a)(A))
        yield Case(f"in_axes {axes} reduced", lambda ns, a=axes: ns.jax.vmap(lambda x: x.sum(0), in_axes=a)(A))
        for out in OUT_AXES[:5]:
            yield Case(
                f"in {axes} out {out}", lambda ns, a=axes, o=out: ns.jax.vmap(ns.jnp.sin, in_axes=a, out_axes=o)(A)
            )
    for out in OUT_AXES:
        yield Case(f"out {out} of constant", lambda ns, o=out: ns.jax.vmap(lambda x: ns.jnp.arange(3), out_axes=o)(A))
        yield Case(f"out {out} of pair", lambda ns, o=out: ns.jax.vmap(lambda x: (x, x.sum()), out_axes=(o, 0))(A))
    for name, axes in TREES.items():
        yield Case(f"tree {name}", lambda ns, a=axes: ns.jax.vmap(lambda d: d["a"].sum() + d["b"], in_axes=a)(D))
    for name, f in ZOO.items():
        yield Case(f"zoo {name}", lambda ns, f=f: ns.jax.vmap(functools.partial(f, ns))(M), ROUGH.get(name, 3e-4))
        yield Case(
            f"zoo columns {name}",
            lambda ns, f=f: ns.jax.vmap(functools.partial(f, ns), 1, -1)(M.T),
            ROUGH.get(name, 3e-4),
        )
        yield Case(
            f"zoo twice {name}",
            lambda ns, f=f: ns.jax.vmap(ns.jax.vmap(functools.partial(f, ns)), 1)(
                ns.jnp.abs(ns.jnp.stack([M, M * 1.1]))
            ),
            ROUGH.get(name, 3e-4),
        )
        if name not in NO_FORWARD:
            yield Case(
                f"zoo jvp {name}",
                lambda ns, f=f: ns.jax.vmap(lambda x, t: ns.jax.jvp(functools.partial(f, ns), (x,), (t,)))(M, M),
                ROUGH.get(name, 3e-4),
            )
        yield Case(
            f"zoo per example {name}",
            lambda ns, f=f: ns.jax.vmap(ns.jax.grad(scalar(ns, functools.partial(f, ns))))(M),
            ROUGH.get(name, 3e-4),
        )
    for group in (CALLS, OPERATIONS, ERRORS):
        for name, run in group.items():
            yield Case(name, run, 3e-4, may_work=name == "ppermute part")


def _collective(text):
    return lambda ns: ns.jax.vmap(lambda x: eval(text, {"lax": ns.lax, "jnp": ns.jnp, "x": x}), axis_name="i")(M)


CALLS = {
    "two arguments": lambda ns: ns.jax.vmap(lambda x, y: x @ y, (0, None))(A, A[0].T),
    "keywords": lambda ns: ns.jax.vmap(lambda x, y: x + y)(V, y=V),
    "axis_size": lambda ns: ns.jax.vmap(lambda: ns.jnp.ones(2), axis_size=3)(),
    "axis_size wrong": lambda ns: ns.jax.vmap(lambda x: x, axis_size=3)(V),
    "size zero": lambda ns: ns.jax.vmap(lambda x: x * 2)(np.zeros((0, 3), np.float32)),
    "size one": lambda ns: ns.jax.vmap(lambda x: x.sum())(M[:1]),
    "python out": lambda ns: ns.jax.vmap(lambda x: 1)(V),
    "python float out": lambda ns: ns.jax.vmap(lambda x: {"a": 2.5, "b": None})(V),
    "weak out": lambda ns: ns.jax.vmap(lambda x: x * ns.jnp.asarray(2.0))(ns.jnp.full((3,), 1.0)),
    "matrix product": lambda ns: ns.jax.vmap(ns.jax.vmap(ns.jnp.vdot, (0, None)), (None, 1), 1)(A[0], A[0].T),
    "jit of vmap": lambda ns: ns.jax.jit(ns.jax.vmap(lambda x: ns.jnp.sin(x) @ W))(M),
    "vmap of jit": lambda ns: ns.jax.vmap(ns.jax.jit(lambda x: ns.jnp.sin(x) @ W))(M),
    "nested names": lambda ns: ns.jax.vmap(
        ns.jax.vmap(lambda x: ns.lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i"
    )(A),
    "nested name inner": lambda ns: ns.jax.vmap(
        ns.jax.vmap(lambda x: ns.lax.psum(x, "i") - x, axis_name="j"), axis_name="i"
    )(A),
    "psum": _collective("lax.psum(x, 'i')"),
    "psum of constant": _collective("lax.psum(1, 'i')"),
    "pmean": _collective("lax.pmean(x, 'i')"),
    "pmax": _collective("lax.pmax(x, 'i')"),
    "pmin": _collective("lax.pmin(x, 'i')"),
    "axis_index": _collective("lax.axis_index('i') * x"),
    "all_gather": _collective("lax.all_gather(x, 'i')"),
    "all_gather axis": _collective("lax.all_gather(x, 'i', axis=1)"),
    "all_gather tiled": _collective("lax.all_gather(x, 'i', tiled=True)"),
    "ppermute": _collective("lax.ppermute(x, 'i', [(0, 1), (1, 2), (2, 0)])"),
    "ppermute part": _collective("lax.ppermute(x, 'i', [(0, 1)])"),
    "pshuffle": _collective("lax.pshuffle(x, 'i', [2, 0, 1])"),
    "axis_size of name": _collective("x * lax.axis_size('i')"),
    "all_to_all": lambda ns: ns.jax.vmap(lambda x: ns.lax.all_to_all(x, "i", 0, 0), axis_name="i")(
        np.arange(9.0, dtype=np.float32).reshape(3, 3)
    ),
    "psum tree": _collective("lax.psum({'a': x, 'b': 1}, 'i')"),
    "name unknown": _collective("lax.psum(x, 'j')"),
    "psum grad": lambda ns: ns.jax.grad(
        lambda y: ns.jax.vmap(lambda x: ns.lax.psum(x**2, "i") * x, axis_name="i")(y).sum()
    )(V),
    "psum scatter": lambda ns: ns.jax.vmap(lambda x: ns.lax.psum_scatter(x, "i"), axis_name="i")(
        np.ones((3, 3), np.float32)
    ),
}
_MAPPED = {
    "dot": "a @ a.T",
    "dot shared": "a @ w",
    "dot general": "lax.dot_general(a, a, (((1,), (1,)), ((), ())))",
    "sum": "a.sum(1)",
    "argmax": "a.argmax(-1)",
    "cumsum": "jnp.cumsum(a, 0)",
    "sort": "jnp.sort(a, 0)",
    "argsort": "jnp.argsort(a)",
    "transpose": "a.T",
    "reshape": "a.reshape(-1)",
    "broadcast": "jnp.broadcast_to(a, (2, 3, 4))",
    "concatenate": "jnp.concatenate([a, w.T])",
    "pad": "jnp.pad(a, 1)",
    "slice": "a[1:, ::2]",
    "index": "a[i]",
    "index shared": "w[i]",
    "index both": "a[i, i]",
    "set": "a.at[i].set(0)",
    "add": "a.at[i].add(1.0)",
    "add shared": "w.at[i].add(a[0, 0])",
    "dynamic": "lax.dynamic_slice(a, (i[0], 1), (1, 2))",
    "update": "lax.dynamic_update_slice(a, a[:1] * 0, (i[0], 0))",
    "where": "jnp.where(a > 0, a, w.T)",
    "select": "lax.select(a > 0, a, -a)",
    "clamp": "lax.clamp(-1.0, a, a[0, 0])",
    "iota": "a + jnp.arange(4)",
    "conv": "lax.conv(a[None, None], w[None, None, :2, :2], (1, 1), 'SAME')",
    "window": "lax.reduce_window(a, 0.0, lax.add, (2, 2), (1, 1), 'VALID')",
    "top_k": "lax.top_k(a, 2)",
    "einsum": "jnp.einsum('ij,kj->ik', a, a)",
    "rev": "a[::-1]",
    "roll": "jnp.roll(a, i[0], 1)",
    "take": "jnp.take(a, i, axis=1)",
    "one_hot": "jnp.eye(3)[i]",
    "norm": "jnp.linalg.norm(a)",
    "cond": "lax.cond(a[0, 0] > 0, lambda: a, lambda: -a)",
    "while": "lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, a)",
    "switch": "lax.switch(i[0], [lambda: a, lambda: -a, lambda: a * 0])",
    "scan": "lax.scan(lambda c, x: (c + x, c), w[:, 0] * 0, a)",
    "random": "jax.random.normal(jax.random.key(i[0]), (2,))",
    "split": "jax.random.key_data(jax.random.split(jax.random.key(i[0])))",
    "mask": "jnp.where(a.sum(0) > 0, 1, 2)",
    "complex": "jnp.abs(a * 1j)",
    "bitcast": "lax.bitcast_convert_type(a, 'int32')",
    "unique size": "jnp.unique(i, size=3)",
    "nonzero size": "jnp.nonzero(a[0] > 0, size=4)",
    "searchsorted": "jnp.searchsorted(jnp.sort(a[0]), 0.1)",
    "median": "jnp.median(a)",
    "tril": "jnp.tril(a)",
    "diag": "jnp.diag(a)",
    "trace": "jnp.trace(a)",
    "outer": "jnp.outer(a[0], a[1])",
    "repeat": "jnp.repeat(a, 2)",
    "tile": "jnp.tile(a, 2)",
}


def _mapped(text):
    def run(ns):
        index = ns.jnp.array([[0, 2], [1, 1]])
        scope = {"lax": ns.lax, "jnp": ns.jnp, "jax": ns.jax, "w": ns.jnp.asarray(W)}
        return ns.jax.vmap(lambda a, i: eval(text, {**scope, "a": a, "i": i}))(A, index)

    return run


OPERATIONS = {f"operation {name}": _mapped(text) for name, text in _MAPPED.items()}
ERRORS = {
    "sizes differ": lambda ns: ns.jax.vmap(lambda x, y: x + y)(V, V[:2]),
    "no arguments": lambda ns: ns.jax.vmap(lambda: 1)(),
    "scalar": lambda ns: ns.jax.vmap(lambda x: x)(3.0),
    "all none": lambda ns: ns.jax.vmap(lambda x: x, in_axes=None)(V),
    "count of axes": lambda ns: ns.jax.vmap(lambda x: x, in_axes=(0, 0))(V),
    "not callable": lambda ns: ns.jax.vmap(3),
    "not an array": lambda ns: ns.jax.vmap(lambda x: x)("abc"),
    "out none of mapped": lambda ns: ns.jax.vmap(lambda x: x, out_axes=None)(V),
    "out string": lambda ns: ns.jax.vmap(lambda x: "a")(V),
    "out too many": lambda ns: ns.jax.vmap(lambda x: x, out_axes=(0, 0))(V),
    "if on mapped": lambda ns: ns.jax.vmap(lambda x: x if x > 0 else -x)(V),
    "name outside": lambda ns: ns.lax.psum(1.0, "i"),
    "index outside": lambda ns: ns.lax.axis_index("i"),
    "boolean mask mapped": lambda ns: ns.jax.vmap(lambda x: x[x > 0])(M),
    "out_axes too far": lambda ns: ns.jax.vmap(lambda x: x, out_axes=3)(M),
    "axis_size only": lambda ns: ns.jax.vmap(lambda x: x, in_axes=None, axis_size=2)(V),
}
