"""Functions to transform: from float32[4] to an array, smooth where they are evaluated."""

import numpy as np

from tests.parity.case import sample

V = sample("float32", (4,), 140, 0.3, 1.7)
T = sample("float32", (4,), 141, -1, 1)
M = sample("float32", (3, 4), 142, 0.3, 1.7)
W = sample("float32", (4, 3), 143, -1, 1)
I = np.array([2, 0, 2], np.int32)


def _custom_jvp(ns, x):
    @ns.jax.custom_jvp
    def f(x):
        return ns.jnp.sin(x) * 2

    f.defjvp(lambda primals, tangents: (f(primals[0]), 3 * ns.jnp.cos(primals[0]) * tangents[0]))
    return f(x)


def _custom_vjp(ns, x):
    @ns.jax.custom_vjp
    def f(x, y):
        return x * ns.jnp.exp(y)

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct * 2 * res[1], ct * ns.jnp.cos(res[0])))
    return f(x, x * 0.5)


def _mlp(ns, x):
    h = ns.jnp.tanh(x @ W)
    return ns.nn.log_softmax(h @ W.T[:, :3])


def _normalised(ns, x):
    return (x - x.mean()) / ns.jnp.sqrt(x.var() + 1e-3)


ZOO = {
    "identity": lambda ns, x: x,
    "constant": lambda ns, x: ns.jnp.ones(3),
    "polynomial": lambda ns, x: 3 * x**3 - 2 * x**2 + x - 7,
    "sin cos": lambda ns, x: ns.jnp.sin(x) * ns.jnp.cos(x),
    "exp log": lambda ns, x: ns.jnp.exp(-x) + ns.jnp.log(x),
    "tanh chain": lambda ns, x: ns.jnp.tanh(ns.jnp.tanh(ns.jnp.tanh(x))),
    "quotient": lambda ns, x: (x + 1) / (x * x + 2),
    "power": lambda ns, x: x**2.5 + 2.0**x,
    "power of itself": lambda ns, x: x**x,
    "sqrt rsqrt": lambda ns, x: ns.jnp.sqrt(x) + ns.lax.rsqrt(x),
    "logistic": lambda ns, x: ns.nn.sigmoid(x) * ns.nn.softplus(x),
    "arc": lambda ns, x: ns.jnp.arctan(x) + ns.jnp.arctan2(x, 2.0) + ns.jnp.arcsin(x / 2),
    "hyperbolic": lambda ns, x: ns.jnp.sinh(x) - ns.jnp.cosh(x) + ns.jnp.arcsinh(x),
    "abs max": lambda ns, x: ns.jnp.abs(x - 1) + ns.jnp.maximum(x, 1.0) + ns.jnp.minimum(x, 0.9),
    "where": lambda ns, x: ns.jnp.where(x > 1, x * x, ns.jnp.sin(x)),
    "clip": lambda ns, x: ns.jnp.clip(x, 0.5, 1.2) * x,
    "sum": lambda ns, x: x.sum() * x,
    "mean var": _normalised,
    "prod": lambda ns, x: ns.jnp.prod(x),
    "max": lambda ns, x: x.max() + x.min() * x.argmax(),
    "logsumexp": lambda ns, x: ns.nn.logsumexp(x * 3),
    "softmax": lambda ns, x: ns.nn.softmax(x),
    "norm": lambda ns, x: ns.jnp.linalg.norm(x) * x,
    "cumsum": lambda ns, x: ns.jnp.cumsum(x) * ns.jnp.cumprod(x),
    "sort": lambda ns, x: ns.jnp.sort(x) * ns.jnp.arange(4.0),
    "matvec": lambda ns, x: x @ W,
    "matmul": lambda ns, x: (ns.jnp.outer(x, x) @ W).ravel(),
    "einsum": lambda ns, x: ns.jnp.einsum("i,ij,k->jk", x, W, x),
    "index": lambda ns, x: x[1:3] * x[-1] + x[::-2],
    "gather": lambda ns, x: x[I] * x[0],
    "scatter set": lambda ns, x: x.at[1].set(x[0] * x[2]),
    "scatter add": lambda ns, x: ns.jnp.zeros(4).at[I].add(x[:3] ** 2),
    "dynamic slice": lambda ns, x: ns.lax.dynamic_slice(x * x, ((x > 1).sum() % 2,), (2,)),
    "dynamic update": lambda ns, x: ns.lax.dynamic_update_slice(x, x[:2] ** 2, (1,)),
    "reshape transpose": lambda ns, x: (x.reshape(2, 2).T * x.reshape(2, 2)).ravel(),
    "concatenate pad": lambda ns, x: ns.jnp.pad(ns.jnp.concatenate([x, x * x]), (1, 2)),
    "stack roll": lambda ns, x: ns.jnp.stack([x, ns.jnp.roll(x, 1)]) * x,
    "broadcast": lambda ns, x: x[:, None] * x[None, :] + 1,
    "mlp": _mlp,
    "stop gradient": lambda ns, x: ns.lax.stop_gradient(x) * x,
    "custom jvp": _custom_jvp,
    "custom vjp": _custom_vjp,
    "jit inside": lambda ns, x: ns.jax.jit(lambda y: ns.jnp.sin(y) * y)(x) + x,
    "remat inside": lambda ns, x: ns.jax.checkpoint(lambda y: ns.jnp.sin(ns.jnp.sin(y)))(x),
    "grad inside": lambda ns, x: ns.jax.grad(lambda y: (y**3).sum())(x) * x,
    "vmap inside": lambda ns, x: ns.jax.vmap(lambda y: ns.jnp.sin(y) * x.sum())(x),
    "scan": lambda ns, x: ns.lax.scan(lambda c, v: (c * v + 0.1, c), 1.0, x)[1],
    "complex": lambda ns, x: ns.jnp.abs(ns.jnp.exp(1j * x) + x) + ns.jnp.real((x + 2j) ** 2),
    "window": lambda ns, x: ns.lax.reduce_window(x, 0.0, ns.lax.add, (2,), (1,), "VALID") * x[:3],
    "convolution": lambda ns, x: ns.jnp.convolve(x, np.array([1, 2, -1], np.float32)),
    "mixed dtypes": lambda ns, x: (x.astype("bfloat16") * 2).astype("float32") + ns.jnp.arange(4),
    "casting to int": lambda ns, x: x * x.astype("int32") + ns.jnp.round(x),
}
# Reverse mode only: forward mode of a function with its own reverse rule is an error.
NO_FORWARD = {"custom vjp"}
ROUGH = {"mixed dtypes": 2e-2}


def scalar(ns, f):
    """f's outputs as one number, weighted so that no two elements are alike."""

    def g(x):
        y = ns.jnp.ravel(f(x))
        return ns.jnp.sum(y * (ns.jnp.arange(y.shape[0]) + 1) / 2)

    return g
