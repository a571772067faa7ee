"""penzai: named axes, layers as trees that are inspected and patched, and a training step."""

import jax
import jax.numpy as jnp
import optax
from penzai import pz

PACKAGES = ("penzai", "treescope", "ordered-set", "optax", "chex", "toolz", "typing_extensions")


def setup():
    from penzai.models import simple_mlp

    model = simple_mlp.MLP.from_config(name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[4, 16, 16, 2])
    x = pz.nx.wrap(jax.random.normal(jax.random.key(1), (32, 4)), "batch", "features")
    goal = pz.nx.nmap(jnp.sin)(x)[{"features": pz.slice[:2]}]
    model = pz.select(model).at_instances_of(pz.nn.Elementwise).apply(lambda layer: pz.nn.Elementwise(jax.nn.gelu))
    params, rest = pz.unbind_params(model)[1], pz.unbind_params(model)[0]
    frozen = [p.freeze() for p in params]
    optimizer = optax.adam(1e-2)

    def loss(values):
        out = pz.bind_variables(rest, values)(x)
        return ((out - goal) ** 2).untag("batch", "features").mean().unwrap()

    @jax.jit
    def step(state):
        values, opt = state
        value, grads = jax.value_and_grad(loss)(values)
        updates, opt = optimizer.update(grads, opt)
        return (optax.apply_updates(values, updates), opt), value

    return step, (frozen, optimizer.init(frozen))
