"""The programs whose lowered text is kept: one of each kind of operation, transformation and control flow."""

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, random

V = np.ones(4, np.float32)
M = np.ones((3, 4), np.float32)
W = np.ones((4, 3), np.float32)
I = np.array([2, 0, 2], np.int32)
C = np.ones(3, np.complex64)
H = np.ones((2, 3), "float16")
N = np.arange(6, dtype=np.int32).reshape(2, 3)
IMAGE, KERNEL = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)


@gradix.jit
def helper(x):
    return jnp.sin(x) * x


@gradix.custom_jvp
def ruled(x):
    return jnp.log1p(jnp.exp(x))


ruled.defjvp(lambda xs, ts: (ruled(*xs), nn.sigmoid(xs[0]) * ts[0]))


@gradix.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))


def loss(w, x):
    h = jnp.tanh(x @ w)
    return ((h @ w.T - x) ** 2).mean()


def total(f):
    return lambda *args: jnp.sum(f(*args) ** 2)


def scanned(c, xs):
    return lax.scan(lambda c, x: (jnp.sin(c) * x, c + x), c, xs)


def counted(x):
    return lax.while_loop(lambda c: (c[0] < 5) & (c[1].sum() < 100), lambda c: (c[0] + 1, c[1] * 2), (0, x))


PROGRAMS = {
    # elementwise
    "arithmetic": (lambda x: (3 * x**3 - x / 2 + 1, -x, x % 2, x // 2), V),
    "functions": (
        lambda x: (jnp.sin(x), jnp.exp(x), jnp.log1p(x), jnp.tanh(x), jnp.sqrt(x), lax.rsqrt(x), jnp.cbrt(x)),
        V,
    ),
    "integers": (lambda n: (n + 1, n // 2, n % 3, n << 1, ~n, n & 6, abs(n)), N),
    "comparison": (lambda x: (x > 1, x == 2, jnp.isnan(x), jnp.where(x > 0, x, -x), jnp.clip(x, 0, 1)), V),
    "complex": (lambda z: (z * 1j, jnp.exp(z), jnp.abs(z), z.real, z.conj()), C),
    "half precision": (lambda h: (h * 2, jnp.exp(h), h.sum(), h @ h.T), H),
    "casts": (lambda x: (x.astype(int), x.astype(bool), x.astype("bfloat16"), x.view("int32")), V),
    "erf": (lambda x: (lax.erf(x), nn.gelu(x, approximate=False)), V),
    "power": (lambda x: (x**2, x**-3, x**0.5, 2.0**x, x**x), V),
    "numbers": (lambda x: (x * 0.1, x + np.inf, x * -0.0, x + 1e-30, x * np.float16(2)), V),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.mean(), jnp.prod(x, 0), jnp.any(x > 0, 1), jnp.var(x)), M),
    "argmax": (lambda x: (jnp.argmax(x), jnp.argmin(x, 1)), M),
    "softmax": (lambda x: (nn.softmax(x), nn.logsumexp(x, 0)), M),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1, reverse=True)), M),
    # moving
    "reshape": (lambda x: (x.reshape(2, 6), x.ravel(), x.T, x[None], jnp.squeeze(x[:1], 0)), M),
    "slice": (lambda x: (x[1:], x[:, ::-2], x[-1], x[..., 1:3]), M),
    "join": (lambda x: (jnp.concatenate([x, x]), jnp.stack([x, x], 1), jnp.pad(x, 1), jnp.tile(x, 2)), V),
    "roll": (lambda x: (jnp.roll(x, 1), jnp.flip(x), jnp.repeat(x, 2)), V),
    "gather": (lambda x: (x[I], x[I, I], jnp.take(x, I, 1)), M),
    "scatter": (lambda x: (x.at[I].set(1), x.at[I].add(x[:3]), x.at[1, 2].multiply(3), x.at[0].max(2)), M),
    "dynamic slice": (
        lambda x, i: (lax.dynamic_slice(x, (i,), (2,)), lax.dynamic_update_slice(x, x[:2], (i,)), x[i]),
        V,
        1,
    ),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x), lax.top_k(x, 2)), M),
    "iota": (lambda x: (jnp.arange(4) * x, jnp.eye(3), jnp.linspace(0, 1, 3)), V),
    # contractions
    "dot": (lambda x, w: (x @ w, x @ x[0], jnp.dot(x[0], x[1])), M, W),
    "einsum": (lambda x, w: (jnp.einsum("ij,jk->ki", x, w), jnp.einsum("ij,ij->i", x, x)), M, W),
    "batched matmul": (lambda x: jnp.matmul(x[None], x.T[None]), M),
    "convolution": (lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME"), IMAGE, KERNEL),
    "pooling": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), IMAGE),
    # random numbers
    "random bits": (lambda n: random.bits(random.key(n), (4,)), 0),
    "random normal": (lambda k: random.normal(k, (2, 2)), random.key(0)),
    "random split": (lambda k: random.split(k, 3), random.key(0)),
    # programs inside
    "jit": (lambda x: helper(x) + helper(x + 1), V),
    "jit of two types": (lambda x, m: (helper(x), helper(m)), V, M),
    "constants": (lambda x: x + np.arange(4.0, dtype=np.float32), V),
    "unused arguments": (lambda x, y, z: y + 1, V, V, V),
    "keyword arguments": (lambda p: {"b": p["a"] + 1, "a": p["b"]}, {"b": V, "a": V}),
    "scan": (scanned, 1.0, V),
    "scan in reverse": (lambda c, xs: lax.scan(lambda c, x: (c * x, c), c, xs, reverse=True, unroll=2), V[0], V),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * i + x, x), V),
    "while_loop": (counted, V),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), True, V),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x), 1, V),
    "map": (lambda x: lax.map(lambda r: r.sum() * r, x), M),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), V),
    "custom_jvp": (ruled, V),
    "custom_vjp": (lambda x: clipped(x) * 2, V),
    "barrier": (lambda x: lax.optimization_barrier(x) + 1, V),
    "stop_gradient": (lambda x: lax.stop_gradient(x) * x, V),
    "custom_linear_solve": (
        lambda a, b: lax.custom_linear_solve(lambda x: a * x, b, lambda f, b: b / a, symmetric=True),
        V,
        V,
    ),
    # transformations
    "grad of an MLP": (gradix.grad(loss), W, M),
    "value_and_grad of custom_jvp": (gradix.value_and_grad(total(ruled)), V),
    "grad of custom_vjp": (gradix.grad(total(clipped)), V),
    "grad of jit": (gradix.grad(total(helper)), V),
    "grad of scan": (gradix.grad(lambda c, xs: scanned(c, xs)[0]), 1.0, V),
    "grad of cond": (gradix.grad(lambda x: lax.cond(x[0] > 0, lambda x: jnp.sin(x).sum(), jnp.prod, x)), V),
    "grad of checkpoint": (gradix.grad(gradix.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), V),
    "grad of gather and scatter": (gradix.grad(lambda x: (x[I] * x.at[I].add(1)[:3]).sum()), M),
    "jvp": (lambda x: gradix.jvp(lambda x: jnp.tanh(x) * x, (x,), (x,)), V),
    "hessian": (gradix.hessian(lambda x: jnp.sum(x**3) * x[0]), V),
    "jacobian": (gradix.jacobian(lambda x: jnp.sin(x[:2]) * x[2]), V),
    "vmap": (gradix.vmap(lambda x, w: jnp.tanh(w.T @ x), (0, None)), M, W),
    "vmap of grad": (gradix.vmap(gradix.grad(lambda x: jnp.prod(x) ** 2)), M),
    "vmap of cond": (gradix.vmap(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)), M),
    "vmap of while_loop": (gradix.vmap(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)), V),
    "vmap of scan": (gradix.vmap(scanned, (None, 0)), 1.0, M),
    "vmap with psum": (gradix.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i"), M),
    "vmap of gather": (gradix.vmap(lambda x, i: x[i], (0, None)), M, I),
    "vmap of random": (gradix.vmap(lambda k: random.uniform(k, (2,))), random.split(random.key(0), 3)),
}
