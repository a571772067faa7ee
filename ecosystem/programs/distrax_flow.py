"""distrax: a normalizing flow of masked couplings fitted by likelihood, beside mixtures and divergences."""

import distrax
import jax
import jax.numpy as jnp
import optax

PACKAGES = (
    "distrax",
    "chex",
    "tfp-nightly",
    "optax",
    "toolz",
    "dm-tree",
    "decorator",
    "cloudpickle",
    "gast",
    "six",
    "wrapt",
)


def flow(params):
    layers = []
    for i, p in enumerate(params):

        def conditioner(x, p=p):
            return jnp.tanh(x @ p["a"]) @ p["b"]

        def bijector(t):
            return distrax.ScalarAffine(shift=t[..., :2], log_scale=0.5 * jnp.tanh(t[..., 2:]))

        layers.append(
            distrax.MaskedCoupling(mask=jnp.arange(2) % 2 == i % 2, conditioner=conditioner, bijector=bijector)
        )
    base = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers)))


def setup():
    key = jax.random.key(0)
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.MultivariateNormalDiag(jnp.array([[-1.0, 0.0], [1.0, 1.0]]), jnp.full((2, 2), 0.4)),
    )
    data = mixture.sample(seed=key, sample_shape=128)
    keys = jax.random.split(key, 4)
    params = [{"a": 0.5 * jax.random.normal(k, (2, 16)), "b": 0.1 * jax.random.normal(k, (16, 4))} for k in keys]
    optimizer = optax.adam(1e-2)

    def loss(params):
        prior = distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(params[0]["b"].mean(), 1.0))
        return -flow(params).log_prob(data).mean() + 1e-3 * prior

    @jax.jit
    def step(state):
        params, opt = state
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt = optimizer.update(grads, opt)
        return (optax.apply_updates(params, updates), opt), value

    return step, (params, optimizer.init(params))
