"""A part of the cases with 64-bit types enabled."""

import numpy as np

from tests.parity.case import Case, Host, Weak, call, sample
from tests.parity.cases.zoo import NO_FORWARD, ZOO, scalar

UNARY = "abs negative sign sin exp log1p sqrt floor round isnan square tanh invert conj arctan expm1 cbrt".split()
BINARY = (
    "add subtract multiply divide floor_divide remainder power maximum less equal arctan2 bitwise_and "
    "logical_or logaddexp left_shift"
).split()
DTYPES = (
    "bool",
    "int8",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def cases():
    for name in UNARY:
        for dtype in ("int64", "uint64", "float64", "complex128"):
            yield call(f"jnp.{name}", sample(dtype, (3,), 190, 0.1, 2))
        yield call(f"jnp.{name}", 1)
        yield call(f"jnp.{name}", 0.5)
    for name in BINARY:
        for left, right in (
            ("int64", "float32"),
            ("int64", "int64"),
            ("uint64", "int64"),
            ("float64", "float64"),
            ("float32", "float64"),
            ("complex64", "float64"),
        ):
            yield call(f"jnp.{name}", sample(left, (3,), 191, 1, 3), sample(right, (3,), 192, 1, 3))
        for other in (2, 2.5, Host(np.float64(2)), Host(np.float32(2)), Weak(2.0), Weak(2)):
            yield call(f"jnp.{name}", sample("int32", (2,), 193, 1, 3), other, rtol=3e-6)
            yield call(f"jnp.{name}", sample("float32", (2,), 193, 1, 3), other, rtol=3e-6)
    for left in DTYPES:
        for right in DTYPES:
            yield Case(f"promote {left} {right}", lambda ns, p=(left, right): str(ns.jnp.promote_types(*p)))
    for name in ("sum", "prod", "mean", "max", "argmax", "std", "cumsum", "any"):
        for dtype in ("int32", "int64", "float32", "float64", "bool", "uint8", "complex128"):
            yield call(f"jnp.{name}", sample(dtype, (2, 3), 194))
    for dtype in ("uint8", "uint32", "uint64", "int64"):
        yield call("jnp.trace", sample(dtype, (2, 2), 194))
    for value in (
        1,
        2.5,
        1j,
        [1, 2],
        [1.0, 2],
        True,
        2**40,
        Host(np.arange(3)),
        Host(np.float64(1)),
        Host(np.float32(1)),
    ):
        yield call("jnp.asarray", value)
        yield call("jnp.full", (2,), value if not isinstance(value, list) else 3)
    yield from functions()


def functions():
    x = sample("float64", (4,), 195, 0.3, 1.7)
    for name, f in ZOO.items():
        if name not in ("mixed dtypes", "mlp", "matvec", "matmul", "einsum", "convolution"):
            yield Case(f"grad {name}", lambda ns, f=f: ns.jax.grad(scalar(ns, lambda v: f(ns, v)))(x), 1e-10)
            if name not in NO_FORWARD:
                yield Case(
                    f"jvp jit {name}",
                    lambda ns, f=f: ns.jax.jvp(ns.jax.jit(lambda v: f(ns, v)), (x,), (x[::-1].copy(),)),
                    1e-10,
                )
    for text in (
        "r.normal(k, (3,))",
        "r.uniform(k, (3,))",
        "r.randint(k, (3,), 0, 100)",
        "r.bits(k, (3,), 'uint64')",
        "r.permutation(k, 5)",
        "r.uniform(k, (3,), 'float32')",
        "r.randint(k, (3,), 0, 2**40, 'int64')",
        "r.exponential(k, (2,))",
        "r.categorical(k, jnp.zeros(3))",
    ):
        yield Case(text, lambda ns, t=text: eval(t, {"r": ns.random, "jnp": ns.jnp, "k": ns.random.key(3)}), 1e-9)
    for text in (
        "jnp.arange(3)",
        "jnp.arange(3.0)",
        "jnp.zeros(2)",
        "jnp.eye(2)",
        "jnp.linspace(0, 1, 3)",
        "jnp.ones(2, int)",
        "jnp.array(1.5)",
        "jnp.argsort(jnp.ones(2))",
        "jnp.nonzero(jnp.ones(2))",
        "jnp.ones(2, 'float64') * jnp.float32(2)",
        "lax.iota('int64', 3)",
        "jnp.indices((2, 2))",
        "jnp.searchsorted(jnp.arange(3), 1)",
        "jnp.unique(jnp.array([2, 1, 2]), return_counts=True)",
        "jnp.shape(jnp.ones(2))",
        "lax.top_k(jnp.arange(3.0), 2)",
        "jnp.bincount(jnp.array([1, 1]))",
        "jnp.arange(5)[jnp.array([1, 2])]",
        "jnp.arange(5).at[jnp.int64(2)].set(9)",
        "lax.dynamic_slice(jnp.arange(5), (2,), (2,))",
        "jnp.array([1, 2]).astype(float)",
        "jnp.asarray(np.float64(1)).dtype.name",
        "jnp.array([2**62, 2**62]).sum()",
        "jnp.float64(1) / 3",
        "jnp.array(2**63, 'uint64') + jnp.uint64(5)",
        "lax.fori_loop(0, 5, lambda i, c: c + i, 0)",
        "lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0))",
        "jnp.bitwise_count(jnp.int64(-1))",
        "lax.add(jnp.ones(2), jnp.ones(2, 'float32'))",
        "lax.bitcast_convert_type(jnp.ones(2), 'int64')",
        "jnp.array([1e300]).astype('float32')",
    ):
        yield Case(text, lambda ns, t=text: eval(t, {"lax": ns.lax, "jnp": ns.jnp, "np": np}))
