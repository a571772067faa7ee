"""Keys of XLA's own generators, rbg and unsafe_rbg: words, derived keys, draws, and keys moved about in programs."""

import itertools

import numpy as np

from tests.parity.case import Case

IMPLS = ("rbg", "unsafe_rbg")
SEEDS = (0, 42, -1)
# name -> call text with `k` a key and `impl` its generator's name, relative tolerance (0 for bit for bit)
KEYS = {
    "key": "r.key_data(k)",
    "PRNGKey": "r.PRNGKey(7, impl=impl)",
    "split": "r.key_data(r.split(k))",
    "split shape": "r.key_data(r.split(k, (2, 3)))",
    "split of split": "r.key_data(r.split(r.split(k)[1], 3))",
    "split none": "r.key_data(r.split(k, 0))",
    "fold_in": "r.key_data(r.fold_in(k, 7))",
    "fold_in big": "r.key_data(r.fold_in(k, 2**32 - 1))",
    "vmap split": "jax.vmap(lambda q: r.key_data(r.split(q)))(r.split(k, 3))",
    "vmap vmap split": "jax.vmap(jax.vmap(lambda q: r.key_data(r.split(q, 3)), in_axes=1))(r.split(k, (2, 3, 2)))",
    "vmap fold_in data": "jax.vmap(lambda i: r.key_data(r.fold_in(k, i)))(d)",
    "vmap fold_in keys": "jax.vmap(lambda q: r.key_data(r.fold_in(q, 5)))(r.split(k, 3))",
    "vmap fold_in both": "r.key_data(jax.vmap(r.fold_in)(r.split(k, 3), d))",
    "vmap fold_in table": "r.key_data(jax.vmap(jax.vmap(r.fold_in, (0, None)), (None, 0))(r.split(k, 2), d))",
    "vmap seeds": "r.key_data(jax.vmap(lambda s: r.key(s, impl=impl))(jnp.arange(3)))",
    "wrap": "r.key_data(r.wrap_key_data(r.key_data(k), impl=impl))",
    "clone": "r.key_data(r.clone(k))",
    "jit": "jax.jit(lambda q: r.key_data(r.fold_in(r.split(q)[1], 3)))(k)",
    "index": "r.key_data(r.split(k, (3, 2))[::-1, 1])",
    "take": "r.key_data(r.split(k, 4)[jnp.array([3, 0])])",
    "fill": "r.key_data(jnp.take(r.split(k, 2), jnp.array([0, 5]), mode='fill'))",
    "set": "r.key_data(r.split(k, 3).at[1].set(k))",
    "where": "r.key_data(jnp.where(jnp.array([True, False]), r.split(k), r.split(k)[::-1]))",
    "join": "r.key_data(jnp.concatenate([r.split(k), jnp.stack([k])]).reshape(3, 1).T)",
    "zeros": "r.key_data(jnp.zeros_like(r.split(k)))",
    "full": "r.key_data(jnp.full_like(k, 3))",
    "cond": "jax.jit(lambda b, q: r.key_data(lax.cond(b, lambda q: q, lambda q: r.split(q)[1], q)))(False, k)",
    "equal": "[k == k, k != k, r.split(k, 3) == r.split(k, 3)[::-1], jax.jit(lambda a, b: a != b)(r.split(k), k)]",
    "unlike": "[r.split(k) == k, jax.vmap(lambda a: a == k)(r.split(k))]",
    "dtype": "[str(k.dtype), k.dtype.itemsize, k.nbytes, str(r.key_dtype(impl)), str(r.key_impl(k))]",
    "repr": "[repr(k), repr(r.split(k, (2, 2)))]",
}
DRAWS = {
    "bits": ("r.bits(k, (2, 5))", 0),
    "bits 8": ("r.bits(k, (7,), 'uint8')", 0),
    "bits 16": ("r.bits(k, (7,), 'uint16')", 0),
    "bits scalar": ("r.bits(k)", 0),
    "bits none": ("r.bits(k, (0, 3))", 0),
    "bits long": ("r.bits(k, (3001,))[::100]", 0),
    "vmap bits": ("jax.vmap(lambda q: r.bits(q, (3,)))(r.split(k, 3))", 0),
    "vmap vmap bits": ("jax.vmap(jax.vmap(lambda q: r.bits(q, (3,)), in_axes=1))(r.split(k, (2, 3, 2)))", 0),
    "uniform": ("r.uniform(k, (3,))", 0),
    "uniform range": ("r.uniform(k, (3,), minval=-2, maxval=5)", 1e-6),
    "uniform bf16": ("r.uniform(k, (3,), 'bfloat16')", 0),
    "normal": ("r.normal(k, (3,))", 3e-6),
    "normal complex": ("r.normal(k, (3,), 'complex64')", 3e-6),
    "vmap normal": ("jax.vmap(lambda q: r.normal(q, (2,)))(r.split(k, 3))", 3e-6),
    "randint": ("r.randint(k, (5,), 0, 10)", 0),
    "randint u8": ("r.randint(k, (5,), 0, 256, 'uint8')", 0),
    "jit randint": ("jax.jit(lambda q: r.randint(q, (5,), -3, 2**31 - 1))(k)", 0),
    "vmap randint": ("jax.vmap(lambda q: r.randint(q, (5,), 0, 10))(r.split(k, 3))", 0),
    "permutation": ("r.permutation(k, 7)", 0),
    "permutation rows": ("r.permutation(k, jnp.arange(12).reshape(4, 3), independent=True)", 0),
    "vmap permutation": ("jax.vmap(lambda q: r.permutation(q, 7))(r.split(k, 3))", 0),
    "choice": ("r.choice(k, 9, (4,), replace=False)", 0),
    "bernoulli": ("r.bernoulli(k, 0.4, (9,))", 0),
    "categorical": ("r.categorical(k, jnp.log(jnp.array([0.2, 0.5, 0.3])), shape=(5,))", 0),
    "truncated_normal": ("r.truncated_normal(k, -1.0, 2.0, (3,))", 1e-5),
    "gamma": ("r.gamma(k, 2.5, (3,))", 1e-4),
    "loggamma": ("r.loggamma(k, jnp.array([0.3, 2.0]))", 1e-4),
    "beta": ("r.beta(k, 3.0, 2.0, (2,))", 1e-4),
    "dirichlet": ("r.dirichlet(k, jnp.ones(3))", 1e-4),
    "binomial": ("r.binomial(k, 10.0, 0.3, (3,))", 0),
    "multinomial": ("r.multinomial(k, 5.0, jnp.ones(3) / 3)", 0),
    "orthogonal": ("r.orthogonal(k, 2)", 1e-4),
    "scan": ("lax.scan(lambda c, q: (r.split(c)[0], r.uniform(q)), k, r.split(k, 4))[1]", 0),
    "loop": ("r.uniform(lax.fori_loop(0, 3, lambda i, q: r.split(q)[0], k))", 0),
    "constant": ("jax.jit(lambda: r.uniform(k, (2,)))()", 0),
}
DEFAULTS = {
    "default key": "[r.key_data(r.key(3)), str(r.key(3).dtype), str(r.key_dtype())]",
    "default PRNGKey": "[r.PRNGKey(3), str(r.key_impl(r.PRNGKey(3)))]",
    "default raw draw": "r.uniform(r.PRNGKey(3), (2,))",
    "default raw split": "[r.split(r.PRNGKey(3)), r.fold_in(r.PRNGKey(3), 1)]",
    "default raw vmap": "jax.vmap(r.uniform)(r.split(r.PRNGKey(3), 3))",
    "default wrap": "r.key_data(r.wrap_key_data(r.PRNGKey(3)))",
    "default two words": "r.uniform(jnp.zeros(2, 'uint32'))",
}
ERRORS = (
    "r.uniform(r.key_data(k))",
    "r.wrap_key_data(r.key_data(k))",
    "r.wrap_key_data(jnp.zeros(2, 'uint32'), impl=impl)",
    "r.wrap_key_data(jnp.zeros(4, 'int32'), impl=impl)",
    "r.key_impl(r.key_data(k))",
    "k == r.key(0)",
    "jnp.stack([k, r.key(0)])",
    "jnp.where(True, k, r.key(0))",
    "r.key(0, impl='fry')",
    "r.key(0, impl='urbg')",
    "r.uniform(r.split(k))",
    "k + k",
    "k < k",
    "np.asarray(k)",
    "jnp.sin(k)",
)


def _call(ns, text, impl, seed):
    scope = {
        "r": ns.random,
        "jnp": ns.jnp,
        "jax": ns.jax,
        "lax": ns.lax,
        "np": np,
        "impl": impl,
        "k": ns.random.key(seed, impl=impl),
        "d": np.array([7, 8, 9], np.uint32),
    }
    return eval(text, scope)


def _default(ns, text, impl):
    with ns.jax.default_prng_impl(impl):
        return _call(ns, text, impl, 0)


def cases():
    texts = {**{name: (text, 0) for name, text in KEYS.items()}, **DRAWS}
    for (name, (text, rtol)), impl in itertools.product(texts.items(), IMPLS):
        seed = SEEDS[len(text) % len(SEEDS)]
        yield Case(f"{name} {impl} seed {seed}", lambda ns, t=text, i=impl, s=seed: _call(ns, t, i, s), rtol)
    for (name, text), impl in itertools.product(DEFAULTS.items(), IMPLS):
        yield Case(f"{name} {impl}", lambda ns, t=text, i=impl: _default(ns, t, i), 0)
    for text, impl in itertools.product(ERRORS, IMPLS):
        yield Case(f"{text} {impl}", lambda ns, t=text, i=impl: _call(ns, t, i, 0))
