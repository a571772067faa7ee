"""Random numbers: the same key gives the same bits."""

import itertools

import numpy as np

from tests.parity.case import Case, sample

SEEDS = (0, 1, 42, -1, 2**31 - 1, 2**32 + 5, 123456789)
SHAPES = ((), (3,), (2, 3), (0,), (1,), (7,))
# name, call text with `k` the key and `s` a shape, relative tolerance (0 for bit for bit)
DRAWS = {
    "bits": ("r.bits(k, s)", 0),
    "bits 8": ("r.bits(k, s, 'uint8')", 0),
    "bits 16": ("r.bits(k, s, 'uint16')", 0),
    "uniform": ("r.uniform(k, s)", 0),
    "uniform range": ("r.uniform(k, s, minval=-2, maxval=5)", 1e-6),
    "uniform f16": ("r.uniform(k, s, 'float16')", 0),
    "uniform bf16": ("r.uniform(k, s, 'bfloat16')", 0),
    "normal": ("r.normal(k, s)", 3e-6),
    "normal bf16": ("r.normal(k, s, 'bfloat16')", None),
    "normal complex": ("r.normal(k, s, 'complex64')", 3e-6),
    "randint": ("r.randint(k, s, 0, 10)", 0),
    "randint wide": ("r.randint(k, s, -2**31, 2**31 - 1)", 0),
    "randint u8": ("r.randint(k, s, 0, 256, 'uint8')", 0),
    "randint i16": ("r.randint(k, s, -5, 5, 'int16')", 0),
    "randint empty": ("r.randint(k, s, 5, 5)", 0),
    "bernoulli": ("r.bernoulli(k, shape=s)", 0),
    "bernoulli 0.2": ("r.bernoulli(k, 0.2, s)", 0),
    "exponential": ("r.exponential(k, s)", 1e-5),
    "gumbel": ("r.gumbel(k, s)", 1e-5),
    "laplace": ("r.laplace(k, s)", 1e-5),
    "logistic": ("r.logistic(k, s)", 1e-5),
    "cauchy": ("r.cauchy(k, s)", 1e-4),
    "truncated_normal": ("r.truncated_normal(k, -1.0, 2.0, s)", 1e-5),
    "rademacher": ("r.rademacher(k, s)", 0),
    "split": ("r.key_data(r.split(k, s or 2))", 0),
    "rayleigh": ("r.rayleigh(k, 2.0, s)", 1e-5),
    "maxwell": ("r.maxwell(k, s)", 1e-5),
    "pareto": ("r.pareto(k, 2.0, s)", 1e-5),
    "geometric": ("r.geometric(k, 0.3, s)", 0),
    "weibull": ("r.weibull_min(k, 1.0, 2.0, s)", 1e-5),
    "choice": ("r.choice(k, 9, s)", 0),
    "choice p": ("r.choice(k, 3, s, p=p)", 0),
    "categorical": ("r.categorical(k, jnp.log(p), shape=s)", 0),
    "lognormal": ("r.lognormal(k, 0.5, s)", 1e-5),
}
OTHERS = {
    "fold_in 0": ("r.key_data(r.fold_in(k, 0))", 0),
    "fold_in big": ("r.key_data(r.fold_in(k, 2**32 - 1))", 0),
    "fold_in negative": ("r.key_data(r.fold_in(k, -1))", 0),
    "key_data": ("r.key_data(k)", 0),
    "split pair": ("r.key_data(jnp.stack(r.split(k)))", 0),
    "permutation n": ("r.permutation(k, 7)", 0),
    "permutation": ("r.permutation(k, v)", 0),
    "permutation rows": ("r.permutation(k, m)", 0),
    "permutation axis": ("r.permutation(k, m, axis=1)", 0),
    "permutation independent": ("r.permutation(k, m, axis=1, independent=True)", 0),
    "choice array": ("r.choice(k, v, (4,))", 0),
    "choice no replacement": ("r.choice(k, v, (3,), replace=False)", 0),
    "choice p no replacement": ("r.choice(k, 3, (2,), replace=False, p=p)", 0),
    "choice rows": ("r.choice(k, m, (2,), axis=1)", 0),
    "categorical rows": ("r.categorical(k, m)", 0),
    "categorical axis": ("r.categorical(k, m, axis=0)", 0),
    "categorical shape": ("r.categorical(k, m, shape=(5, 3))", 0),
    "bernoulli array": ("r.bernoulli(k, p)", 0),
    "dirichlet": ("r.dirichlet(k, p * 3)", 1e-4),
    "gamma": ("r.gamma(k, 2.5, (3,))", 1e-4),
    "beta": ("r.beta(k, 2.0, 3.0, (3,))", 1e-4),
    "poisson": ("r.poisson(k, 3.0, (4,))", 0),
    "chisquare": ("r.chisquare(k, 3.0, shape=(2,))", 1e-4),
    "t": ("r.t(k, 3.0, (2,))", 1e-4),
    "loggamma": ("r.loggamma(k, 2.0, (3,))", 1e-4),
    "double_sided_maxwell": ("r.double_sided_maxwell(k, 0.0, 1.0, (2,))", 1e-4),
    "ball": ("r.ball(k, 3)", 1e-4),
    "randint arrays": ("r.randint(k, (3,), jnp.array([0, 5, 10]), jnp.array([5, 10, 11]))", 0),
    "uniform bounds": ("r.uniform(k, (3,), minval=jnp.arange(3.0), maxval=9.0)", 1e-6),
    "jit": ("jax.jit(lambda q: r.normal(q, (3,)))(k)", 3e-6),
    "vmap": ("jax.vmap(lambda q: r.uniform(q, (2,)))(r.split(k, 3))", 0),
    "fold_in vmap": ("jax.vmap(lambda i: r.uniform(r.fold_in(k, i)))(jnp.arange(3))", 0),
    "wrap": ("r.uniform(r.wrap_key_data(r.key_data(k)))", 0),
    "clone": ("r.uniform(r.clone(k))", 0),
    "reshape": ("r.key_data(r.split(k, 4).reshape(2, 2)[1, 0])", 0),
    "scan": ("lax.scan(lambda c, _: (r.split(c)[0], r.uniform(c)), k, None, length=4)[1]", 0),
    "truncated arrays": ("r.truncated_normal(k, jnp.array([-1.0, 0.0]), 1.0)", 1e-5),
    "initializer glorot": ("nn.initializers.glorot_normal()(k, (3, 4))", 1e-5),
    "initializer he": ("nn.initializers.he_uniform()(k, (3, 4))", 1e-5),
    "initializer normal": ("nn.initializers.normal(0.1)(k, (3,))", 1e-5),
    "initializer truncated": ("nn.initializers.lecun_normal()(k, (2, 3, 4))", 1e-5),
    "key dtype": ("str(k.dtype)", 0),
    "key shape": ("r.split(k, (2, 3)).shape", 0),
    "key impl": ("str(r.key_impl(k))", 0),
    "long": ("r.bits(k, (1000,))[::37]", 0),
    "randint long": ("r.randint(k, (200,), 0, 1000)[::11]", 0),
    "uniform grad": ("jax.grad(lambda a: (r.uniform(k, (3,)) * a).sum())(2.0)", 1e-5),
    "normal grad": ("jax.grad(lambda a: (r.normal(k, (3,)) * a).sum())(2.0)", 1e-5),
    "weibull arrays": ("r.weibull_min(k, p, jnp.array([[1.5], [2.0]]), (3,))", 1e-5),
    "weibull wide": ("r.weibull_min(k, p, 2, (3,), 'float16')", 4e-3),
    "weibull whole": ("r.weibull_min(k, jnp.arange(1, 4), 2, (3,), 'float16')", 4e-3),
    "maxwell arrays": ("r.double_sided_maxwell(k, p, jnp.array([[1.5], [2.0]]), (2,))", 1e-4),
    "maxwell no shape": ("r.double_sided_maxwell(k, p, 2.0)", 1e-4),
    "maxwell wide": ("r.double_sided_maxwell(k, 1, p, (2,), 'float16')", 4e-3),
    "multivariate half": ("r.multivariate_normal(k, jnp.zeros(2), jnp.eye(2), (3,), 'float16')", 4e-3),
    "multivariate mixed": (
        "r.multivariate_normal(k, jnp.zeros(2, 'bfloat16'), jnp.eye(2, dtype='float16'), (3,))",
        1e-4,
    ),
    "multivariate whole": ("r.multivariate_normal(k, jnp.zeros(2, int), jnp.eye(2, dtype=int), (3,))", 1e-4),
    "poisson mapped": ("jax.vmap(lambda l: r.poisson(k, l, (3,)))(jnp.array([2.0, 30.0]))", 0),
    "binomial mapped": ("jax.vmap(lambda q: r.binomial(k, 20.0, q, (3,)))(p)", 0),
    "t half": ("r.t(k, jnp.ones(2, int), dtype='float16').dtype", 0),
    "multivariate": ("r.multivariate_normal(k, jnp.zeros(2), jnp.eye(2))", 1e-4),
}
ERRORS = (
    "r.uniform(0)",
    "r.beta(k, p, 1.0, dtype='float16')",
    "r.t(k, p, dtype='bfloat16')",
    "r.wald(k, p.astype('complex64'))",
    "r.triangular(k, -1.0, p, 2.0, dtype='float16')",
    "r.multivariate_normal(k, jnp.zeros(2, complex), jnp.eye(2))",
    "r.weibull_min(k, p, 1.0, (2,))",
    "r.uniform(jnp.zeros(2))",
    "r.uniform(jnp.zeros((3,), 'uint32'))",
    "r.uniform(k2)",
    "r.split('a')",
    "r.uniform(k, (-1,))",
    "r.uniform(k, (2,), 'int32')",
    "r.randint(k, (2,), 0, 5, 'float32')",
    "r.bits(k, (2,), 'int32')",
    "r.normal(k, (2,), 'int8')",
    "k + 1",
    "k * k",
    "r.bernoulli(k, 'a')",
    "r.choice(k, 3, (5,), replace=False)",
    "r.choice(k, m, p=p)",
    "r.choice(k, 0, (2,))",
    "r.permutation(k, v, axis=3)",
    "r.categorical(k, m, shape=(2,))",
    "r.key(0.5)",
    "r.key('a')",
    "r.PRNGKey(0.5)",
    "r.key(0, impl='nonsense')",
    "r.key(np.arange(2))",
    "r.fold_in(k, 0.5)",
    "r.fold_in(k2, 0)",
    "r.split(k, 0)",
    "r.split(k, -1)",
    "r.uniform(k, 2.5)",
    "r.uniform(k, 'a')",
    "r.randint(k, (2,), 0.5, 2)",
    "r.truncated_normal(k, 0, 1)",
    "jnp.sin(k)",
    "np.asarray(k)",
    "bool(k)",
    "r.key_data(3)",
    "r.wrap_key_data(jnp.zeros(2))",
    "r.wrap_key_data(jnp.zeros(3, 'uint32'))",
    "k.astype('uint32')",
    "k == k",
    "jnp.stack([k, k]).shape",
    "k[0]",
    "r.gamma(k, 'a')",
    "jnp.where(True, k, k).shape",
    "jax.grad(lambda q: r.uniform(q))(k)",
    "r.uniform(k, (2,), minval='a')",
    "r.normal(k, shape=(2, 'a'))",
    "jnp.zeros(2, k.dtype).shape",
)


def _scope(ns, seed, raw):
    key = ns.random.PRNGKey(seed) if raw else ns.random.key(seed)
    return {
        "r": ns.random,
        "jnp": ns.jnp,
        "jax": ns.jax,
        "lax": ns.lax,
        "nn": ns.nn,
        "np": np,
        "k": key,
        "p": ns.jnp.array([0.2, 0.5, 0.3]),
        "v": ns.jnp.arange(10, 16),
        "m": ns.jnp.asarray(sample("float32", (3, 4), 170)),
    }


def cases():
    for number, ((name, (text, rtol)), shape) in enumerate(itertools.product(DRAWS.items(), SHAPES)):
        seed = SEEDS[number % len(SEEDS)]
        yield Case(
            f"{name} {shape} seed {seed}",
            lambda ns, t=text, s=shape, seed=seed, n=number: eval(t, {**_scope(ns, seed, n % 3 == 0), "s": s}),
            rtol,
        )
    for (name, (text, rtol)), seed in itertools.product(OTHERS.items(), (0, 42)):
        yield Case(f"{name} seed {seed}", lambda ns, t=text, seed=seed: eval(t, _scope(ns, seed, False)), rtol)
    for seed in SEEDS + (0.5, np.int32(7), np.uint32(2**32 - 1), True):
        yield Case(f"key {seed!r}", lambda ns, seed=seed: ns.random.key_data(ns.random.key(seed)), 0)
        yield Case(f"PRNGKey {seed!r}", lambda ns, seed=seed: ns.random.PRNGKey(seed), 0)
    for text in ERRORS:
        yield Case(
            text, lambda ns, t=text: eval(t, {**_scope(ns, 0, False), "k2": ns.random.split(ns.random.key(0), 3)})
        )
