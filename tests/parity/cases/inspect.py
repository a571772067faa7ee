"""What programs are typed as: avals of jaxprs, eval_shape, trees, dtypes of everything without running it."""

import functools

import numpy as np

from tests.parity.case import Case, np_dtype, sample
from tests.parity.cases.control import BODIES
from tests.parity.cases.zoo import ZOO, V

TYPED = (
    "x + 1",
    "x + 1.5",
    "x * True",
    "x / 2",
    "x // 2",
    "x ** 2",
    "x ** 2.0",
    "x > 0",
    "-x",
    "abs(x)",
    "x.sum()",
    "x.mean()",
    "x.prod(0)",
    "x.max()",
    "x.any()",
    "x.argmax()",
    "jnp.sin(x)",
    "jnp.sqrt(x)",
    "jnp.round(x)",
    "jnp.floor(x)",
    "jnp.cumsum(x)",
    "x @ x",
    "jnp.outer(x, x)",
    "jnp.where(x > 0, x, 1)",
    "jnp.where(x > 0, x, 1.5)",
    "jnp.concatenate([x, jnp.ones(2)])",
    "jnp.stack([x, jnp.arange(4)])",
    "x[0]",
    "x[None]",
    "x.astype(float)",
    "jnp.zeros_like(x)",
    "jnp.full_like(x, 2)",
    "jnp.arange(x.shape[0])",
    "jnp.std(x)",
    "jnp.median(x)",
    "jnp.clip(x, 0, 1)",
    "jnp.maximum(x, 1.0)",
    "jnp.equal(x, 2)",
    "x & 1",
    "~x",
    "x << 1",
    "jnp.power(2, x)",
    "2 - x",
    "2.0 * x",
    "jnp.linspace(0, x[0], 3)",
    "jnp.dot(x, 2)",
    "jnp.exp2(x)",
    "jnp.real(x)",
    "jnp.angle(x)",
    "jnp.isnan(x)",
    "jnp.sort(x)",
    "x.at[0].set(1)",
    "x.at[0].add(1.5)",
    "jnp.einsum('i,i', x, x)",
    "jnp.linalg.norm(x)",
    "jnp.average(x)",
    "jnp.var(x)",
    "lax.add(x, x)",
    "jnp.logaddexp(x, x)",
    "jnp.arctan2(x, x)",
    "divmod(x, 2)",
    "x % 2.5",
    "jnp.sign(x)",
    "jnp.count_nonzero(x)",
    "jnp.diff(x)",
    "jnp.convolve(x, x)",
    "jnp.nan_to_num(x)",
    "jnp.reciprocal(x)",
    "x.real",
    "jnp.square(x)",
    "jnp.trunc(x)",
)
DTYPES = ("bool", "int8", "int32", "uint16", "float16", "bfloat16", "float32", "complex64")


def cases():
    for text in TYPED:
        for dtype in DTYPES:
            yield Case(
                f"{dtype} {text}",
                lambda ns, t=text, d=dtype: _shape_of(ns, t, ns.jax.ShapeDtypeStruct((4,), np_dtype(d))),
            )
        for value in (1, 2.5):
            yield Case(f"weak {value} {text}", lambda ns, t=text, v=value: _shape_of(ns, t, ns.jnp.full((4,), v)))
    for name, f in (ZOO | BODIES).items():
        yield Case(f"avals {name}", lambda ns, f=f: _avals(ns, functools.partial(f, ns)))
        yield Case(f"eval_shape {name}", lambda ns, f=f: ns.jax.eval_shape(functools.partial(f, ns), V))
    for name, run in FORMS.items():
        yield Case(name, run)


def _shape_of(ns, text, x):
    return ns.jax.eval_shape(lambda x: eval(text, {"x": x, "jnp": ns.jnp, "lax": ns.lax}), x)


def _avals(ns, f):
    closed, shapes = ns.jax.make_jaxpr(f, return_shape=True)(V)
    return [str(aval) for aval in closed.in_avals], [_aval(aval) for aval in closed.out_avals], shapes


def _aval(aval):
    return str(aval.dtype), aval.shape, aval.weak_type


def _struct(ns, *args, **kwargs):
    return ns.jax.ShapeDtypeStruct(*args, **kwargs)


X = sample("float32", (2, 3), 180)
FORMS = {
    "struct": lambda ns: _struct(ns, (2, 3), "float32"),
    "struct equal": lambda ns: _struct(ns, (2,), "int8") == _struct(ns, (2,), np.int8),
    "struct repr": lambda ns: repr(_struct(ns, (2, 3), "float32")),
    "struct no dtype": lambda ns: _struct(ns, (2, 3)),
    "struct wrong": lambda ns: _struct(ns, (2, 3), None),
    "struct ndim size": lambda ns: (
        _struct(ns, (2, 3), "int8").ndim,
        _struct(ns, (2, 3), "int8").size,
        len(_struct(ns, (2, 3), "int8")),
    ),
    "typeof": lambda ns: str(ns.jax.typeof(ns.jnp.ones((2, 3)))),
    "typeof scalar": lambda ns: str(ns.jax.typeof(1.0)),
    "typeof numpy": lambda ns: str(ns.jax.typeof(np.arange(3))),
    "eval_shape tree": lambda ns: ns.jax.eval_shape(lambda d: {"y": d["a"] @ d["a"].T, "n": 1}, {"a": X}),
    "eval_shape error": lambda ns: ns.jax.eval_shape(lambda x: x @ x, X),
    "eval_shape not array": lambda ns: ns.jax.eval_shape(lambda x: x, "a"),
    "eval_shape of grad": lambda ns: ns.jax.eval_shape(ns.jax.grad(lambda x: x.sum()), X),
    "eval_shape of vmap": lambda ns: ns.jax.eval_shape(ns.jax.vmap(lambda x: x.sum()), X),
    "eval_shape large": lambda ns: ns.jax.eval_shape(lambda: ns.jnp.zeros((10**6, 10**6))),
    "make_jaxpr static": lambda ns: len(ns.jax.make_jaxpr(lambda n, x: x * n, static_argnums=0)(3, X).in_avals),
    "make_jaxpr tree": lambda ns: [str(a) for a in ns.jax.make_jaxpr(lambda d: d)({"a": X, "b": 1.5}).out_avals],
    "make_jaxpr of key": lambda ns: [str(a) for a in ns.jax.make_jaxpr(ns.random.split)(ns.random.key(0)).out_avals],
    "make_jaxpr axis_env": lambda ns: str(
        ns.jax.make_jaxpr(lambda x: ns.lax.psum(x, "i"), axis_env=[("i", 4)])(X).out_avals[0]
    ),
    "make_jaxpr error": lambda ns: ns.jax.make_jaxpr(3),
    "consts": lambda ns: len(ns.jax.make_jaxpr(lambda x: x + ns.jnp.asarray(X))(X).consts),
    "number of eqns": lambda ns: len(ns.jax.make_jaxpr(lambda x: ns.lax.sin(x) * 2 + 1)(X).eqns),
    "primitive names": lambda ns: [
        e.primitive.name for e in ns.jax.make_jaxpr(lambda x: ns.lax.neg(ns.lax.exp(x)) + x)(X).eqns
    ],
    "repr array": lambda ns: repr(ns.jnp.arange(3)),
    "repr weak": lambda ns: repr(ns.jnp.asarray(1.0)),
    "repr matrix": lambda ns: repr(ns.jnp.ones((2, 2))),
    "repr bool": lambda ns: repr(ns.jnp.array([True])),
    "repr bf16": lambda ns: repr(ns.jnp.ones(2, "bfloat16")),
    "str array": lambda ns: str(ns.jnp.arange(3)),
    "repr empty": lambda ns: repr(ns.jnp.zeros((0, 2))),
    "repr complex": lambda ns: repr(ns.jnp.array([1j])),
    "repr long": lambda ns: repr(ns.jnp.arange(2000)),
    "format": lambda ns: f"{ns.jnp.asarray(1.5):.3f}",
    "str scalar": lambda ns: str(ns.jnp.float32(2)),
    "repr scalar int": lambda ns: repr(ns.jnp.int8(2)),
    "scalar types": lambda ns: [
        ns.jnp.float32(1),
        ns.jnp.int8(2.7),
        ns.jnp.bool_(1),
        ns.jnp.complex64(1),
        ns.jnp.bfloat16(3),
    ],
    "dtype names": lambda ns: [str(ns.jnp.dtype(t)) for t in (float, int, bool, complex, "f4", np.int16)],
    "isinstance": lambda ns: [isinstance(v, ns.jax.Array) for v in (ns.jnp.ones(2), np.ones(2), 1.0)],
    "isinstance traced": lambda ns: ns.jax.jit(lambda x: int(isinstance(x, ns.jax.Array)))(X),
    "tree map": lambda ns: ns.jax.tree.map(lambda a, b: a + b, {"a": (1, 2), "b": None}, {"a": (3, 4), "b": None}),
    "tree map mismatch": lambda ns: ns.jax.tree.map(lambda a, b: a + b, {"a": 1}, {"b": 1}),
    "tree leaves": lambda ns: ns.jax.tree.leaves({"b": 1, "a": [2, (3,)], "c": None}),
    "tree structure": lambda ns: str(ns.jax.tree.structure({"b": 1, "a": [2, (3,)], "c": None})),
    "tree reduce": lambda ns: ns.jax.tree.reduce(lambda a, b: a + b, [1, (2, 3)]),
    "tree transpose": lambda ns: ns.jax.tree.transpose(
        ns.jax.tree.structure([0, 0]), ns.jax.tree.structure({"a": 0}), [{"a": 1}, {"a": 2}]
    ),
    "tree all": lambda ns: ns.jax.tree.all([True, (1, 0)]),
    "tree is_leaf": lambda ns: ns.jax.tree.leaves([(1, 2), 3], is_leaf=lambda v: isinstance(v, tuple)),
    "tree map with path": lambda ns: ns.tree_util.tree_map_with_path(
        lambda p, v: ns.tree_util.keystr(p) + str(v), {"a": [1, 2]}
    ),
    "named scope": lambda ns: _scoped(ns),
}


def _scoped(ns):
    with ns.jax.named_scope("part"):
        return ns.jnp.asarray(X) + 1
