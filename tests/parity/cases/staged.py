"""jit: the zoo compiled, arguments of every kind, closures, nesting, and errors."""

import functools

import numpy as np

from tests.parity.case import Case, sample
from tests.parity.cases.zoo import ROUGH, ZOO, M, V, W, scalar

A = sample("int32", (3,), 160)


def cases():
    for name, f in ZOO.items():
        yield Case(f"eager {name}", lambda ns, f=f: f(ns, ns.jnp.asarray(V)), ROUGH.get(name, 3e-4))
        yield Case(f"jit {name}", lambda ns, f=f: ns.jax.jit(functools.partial(f, ns))(V), ROUGH.get(name, 3e-4))
        yield Case(f"jit twice {name}", lambda ns, f=f: _twice(ns, f), ROUGH.get(name, 3e-4))
        yield Case(
            f"jit grad {name}",
            lambda ns, f=f: ns.jax.jit(ns.jax.value_and_grad(scalar(ns, functools.partial(f, ns))))(V),
            ROUGH.get(name, 3e-4),
        )
    for value in (
        1,
        2.5,
        True,
        1j,
        np.float32(2),
        np.int8(3),
        np.arange(3),
        np.arange(3.0),
        [1, 2.0],
        (1, {"a": 2.5}),
        None,
        {"a": V},
        "text",
        [None],
        np.zeros((0, 2)),
        {},
        object,
        b"x",
        np.array(["a"]),
        2**40,
        np.float64(1.5),
        {1: 2, "a": 3},
    ):
        shown = f"{type(value).__name__} {value}" if not isinstance(value, type) else "a class"
        yield Case(f"identity of {shown}", lambda ns, v=value: ns.jax.jit(lambda x: x)(v))
        yield Case(
            f"plus one of {shown}", lambda ns, v=value: ns.jax.jit(lambda x: ns.jax.tree.map(lambda y: y + 1, x))(v)
        )
        yield Case(f"returns {shown}", lambda ns, v=value: ns.jax.jit(lambda x: (x, v))(V))
    for group in (CALLS, ERRORS):
        for name, run in group.items():
            yield Case(name, run, 3e-4)


def _twice(ns, f):
    g = ns.jax.jit(functools.partial(f, ns))
    g(V * 2)
    return g(ns.jnp.asarray(V)), g(V * 0.5 + 0.2)


def _counted(ns, calls, **options):
    """How often the function was traced over the calls, and the last answer."""
    traces = []

    def f(x, n=1):
        traces.append(1)
        return x * n

    g = ns.jax.jit(f, **options)
    out = [g(*args) for args in calls][-1]
    return len(traces), out


CALLS = {
    "static argnum": lambda ns: ns.jax.jit(lambda x, n: x.reshape(n), static_argnums=1)(V, (2, 2)),
    "static argname": lambda ns: ns.jax.jit(lambda x, n: x * n, static_argnames="n")(V, n=3),
    "static argname positional": lambda ns: ns.jax.jit(lambda x, n: x if n else -x, static_argnames=("n",))(V, False),
    "static negative": lambda ns: ns.jax.jit(lambda x, n: x * len(n), static_argnums=-1)(V, "abc"),
    "static function": lambda ns: ns.jax.jit(lambda f, x: f(x), static_argnums=0)(ns.jnp.sin, V),
    "default argument": lambda ns: ns.jax.jit(lambda x, n=2: x * n)(V),
    "keyword": lambda ns: ns.jax.jit(lambda x, *, scale: x * scale)(V, scale=2.0),
    "star": lambda ns: ns.jax.jit(lambda *xs, **kw: sum(xs) + kw["a"])(V, V, a=V),
    "donate": lambda ns: ns.jax.jit(lambda x: x + 1, donate_argnums=0)(ns.jnp.arange(3.0)),
    "keep_unused": lambda ns: ns.jax.jit(lambda x, y: x, keep_unused=True)(V, A),
    "inline": lambda ns: ns.jax.jit(lambda x: ns.jax.jit(ns.jnp.sin, inline=True)(x))(V),
    "closure": lambda ns: ns.jax.jit(lambda x: x @ ns.jnp.asarray(W))(V),
    "nested": lambda ns: ns.jax.jit(lambda x: ns.jax.jit(lambda y: y + x)(x) * 2)(V),
    "decorator options": lambda ns: ns.jax.jit(static_argnums=(1,))(lambda x, n: x**n)(V, 2),
    "traced once": lambda ns: _counted(ns, [(V,), (V,), (V + 1,)]),
    "traced per shape": lambda ns: _counted(ns, [(V,), (V[:2],), (V,)]),
    "traced per dtype": lambda ns: _counted(ns, [(A,), (V[:3],), (A,)]),
    "traced per weak type": lambda ns: _counted(ns, [(1.0,), (np.float32(1),), (2.0,)]),
    "python scalars share": lambda ns: _counted(ns, [(1.0,), (2.0,), (3.5,)]),
    "traced per static": lambda ns: _counted(ns, [(V, 1), (V, 2), (V, 1)], static_argnums=1),
    "aliased output": lambda ns: ns.jax.jit(lambda x: (x, x, x + 0))(V),
    "no output": lambda ns: ns.jax.jit(lambda x: None)(V),
    "empty tuple": lambda ns: ns.jax.jit(lambda: ())(),
    "constant output": lambda ns: ns.jax.jit(lambda: 1)(),
    "weak output": lambda ns: ns.jax.jit(lambda x: x + 1)(1.0),
    "weak kept": lambda ns: ns.jax.jit(lambda x: x * 2)(3),
    "numpy output": lambda ns: ns.jax.jit(lambda: np.arange(3.0))(),
    "dead code": lambda ns: ns.jax.jit(lambda x: [ns.jnp.sin(x), x * 2][1])(V),
    "bool output": lambda ns: ns.jax.jit(lambda x: (x > 1, ~(x > 1)))(V),
    "int8 wraps": lambda ns: ns.jax.jit(lambda x: x * 100)(np.array([1, 2, 3], np.int8)),
    "x64 off": lambda ns: ns.jax.jit(lambda x: x)(np.arange(3.0)),
    "disable_jit": lambda ns: _disabled(ns),
    "large chain": lambda ns: ns.jax.jit(lambda x: functools.reduce(lambda a, i: ns.jnp.sin(a) + i, range(50), x))(V),
    "many outputs": lambda ns: ns.jax.jit(lambda x: [x + i for i in range(30)])(V[:1]),
    "named tuple": lambda ns: type(ns.jax.jit(lambda p: p)(_point()(1, 2))).__name__,
    "ensure_compile_time_eval": lambda ns: _compile_time(ns),
    "block": lambda ns: ns.jax.block_until_ready(ns.jax.jit(lambda x: x + 1)(V)),
    "device_put": lambda ns: ns.jax.device_put({"a": V, "b": 1}),
    "device_get": lambda ns: ns.jax.device_get({"a": ns.jnp.asarray(V), "b": 1}),
    "closure_convert": lambda ns: ns.jax.closure_convert(lambda x: x * 2, ns.jnp.asarray(V))[0](ns.jnp.asarray(V)),
    "pure_callback": lambda ns: ns.jax.jit(
        lambda x: ns.jax.pure_callback(np.sin, ns.jax.ShapeDtypeStruct((4,), "float32"), x)
    )(V),
    "lower compile": lambda ns: ns.jax.jit(lambda x: x * 2).lower(V).compile()(V),
    "lower out_info": lambda ns: ns.jax.jit(lambda x: {"a": x * 2}).lower(V).out_info["a"].shape,
}


def _point():
    import collections

    return collections.namedtuple("Point", "x y")


def _disabled(ns):
    with ns.jax.disable_jit():
        return ns.jax.jit(lambda x: x * 2 if x[0] > 0 else x)(ns.jnp.asarray(V))


def _compile_time(ns):
    def f(x):
        with ns.jax.ensure_compile_time_eval():
            n = int(ns.jnp.sum(ns.jnp.arange(3)))
        return x * n

    return ns.jax.jit(f)(V)


def _leak(ns):
    kept = []
    ns.jax.jit(lambda x: kept.append(x))(V)
    return kept[0] + 1


def _leak_grad(ns):
    kept = []
    ns.jax.jit(ns.jax.grad(lambda x: (kept.append(x), x.sum())[1]))(V)
    return ns.jnp.sin(kept[0])


def _deleted(ns):
    x = ns.jnp.arange(3.0)
    x.delete()
    return x + 1


ERRORS = {
    "not callable": lambda ns: ns.jax.jit(3),
    "static out of range": lambda ns: ns.jax.jit(lambda x: x, static_argnums=3)(V),
    "static name unknown": lambda ns: ns.jax.jit(lambda x: x, static_argnames="n")(V),
    "static and donated": lambda ns: ns.jax.jit(lambda x, y: x, static_argnums=0, donate_argnums=0)(1, V),
    "donate out of range": lambda ns: ns.jax.jit(lambda x: x, donate_argnums=4)(V),
    "wrong arguments": lambda ns: ns.jax.jit(lambda x: x)(V, V),
    "missing arguments": lambda ns: ns.jax.jit(lambda x, y: x)(V),
    "leaked": _leak,
    "leaked from grad": _leak_grad,
    "deleted": _deleted,
    "raises inside": lambda ns: ns.jax.jit(lambda x: [][1])(V),
    "error type kept": lambda ns: ns.jax.jit(lambda x: {}["a"])(V),
    "shape error inside": lambda ns: ns.jax.jit(lambda x: x + M[:, :3])(V),
    "mutation": lambda ns: ns.jax.jit(lambda x: x.__setitem__(0, 1))(V),
    "mutation eager": lambda ns: ns.jnp.asarray(V).__setitem__(0, 1),
    "iteration over dict of strings": lambda ns: ns.jax.jit(lambda d: d)({"a": "b"}),
    "keys not comparable": lambda ns: ns.jax.jit(lambda d: d)({1: V, "a": V}),
    "lower wrong": lambda ns: ns.jax.jit(lambda x: x * 2).lower(V).compile()(V[:2]),
    "block string": lambda ns: ns.jax.device_put("a"),
    "hash of tracer": lambda ns: ns.jax.jit(lambda x: {x: 1})(V),
    "hash of array": lambda ns: {ns.jnp.asarray(V): 1},
    "bool of array": lambda ns: bool(ns.jnp.asarray(V)),
    "bool of empty": lambda ns: bool(ns.jnp.zeros(0)),
    "int of array": lambda ns: int(ns.jnp.asarray(V)),
    "iterate scalar": lambda ns: list(ns.jnp.asarray(1.0)),
    "len of scalar": lambda ns: len(ns.jnp.asarray(1.0)),
    "index with float": lambda ns: [1, 2][ns.jnp.asarray(1.0)],
}
