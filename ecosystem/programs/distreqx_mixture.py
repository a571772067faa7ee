"""distreqx: a mixture of Gaussians and a bijected normal, fitted and sampled as equinox modules."""

import equinox as eqx
import jax
import jax.numpy as jnp
from distreqx import bijectors, distributions

PACKAGES = ("distreqx", "ihoop", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    x = jnp.concatenate([jax.random.normal(jax.random.key(n), (100,)) * 0.5 + 2 * n for n in range(3)])

    def made(p):
        weights = distributions.Categorical(logits=p["logits"])
        parts = eqx.filter_vmap(distributions.Normal)(p["loc"], jnp.exp(p["scale"]))
        squashed = distributions.Transformed(
            distributions.Normal(p["loc"][0], jnp.float32(1)),
            bijectors.Chain([bijectors.Tanh(), bijectors.ScalarAffine(jnp.float32(0), jnp.float32(0.5))]),
        )
        return distributions.MixtureSameFamily(weights, parts), squashed

    def loss(p):
        mixture, squashed = made(p)
        return -jax.vmap(mixture.log_prob)(x).mean() - squashed.log_prob(jnp.float32(0.1))

    @jax.jit
    def step(state):
        p, key = state
        key, own = jax.random.split(key)
        value, slope = jax.value_and_grad(loss)(p)
        drawn = jax.vmap(made(p)[1].sample)(jax.random.split(own, 16))
        return (jax.tree.map(lambda a, b: a - 0.1 * b, p, slope), key), value + drawn.mean()

    start = {"logits": jnp.zeros(3), "loc": jnp.array([0.0, 1.0, 3.0]), "scale": jnp.zeros(3)}
    return step, (start, jax.random.key(0))
