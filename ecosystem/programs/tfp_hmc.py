"""TensorFlow Probability's jax substrate: joint distributions, bijectors and Hamiltonian Monte Carlo."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
PACKAGES = ("tfp-nightly", "dm-tree", "decorator", "cloudpickle", "gast", "six", "wrapt", "attrs", "absl-py")
STEPS = 3


def setup():
    x = jnp.linspace(-1, 1, 20)
    y = 0.5 + 2 * x + 0.1 * jnp.sin(9 * x)
    model = tfd.JointDistributionSequential(
        [
            tfd.Normal(0.0, 2.0),
            tfd.Normal(0.0, 2.0),
            tfd.HalfNormal(1.0),
            lambda s, b, a: tfd.Independent(tfd.Normal(a + b * x, s[..., None] if jnp.ndim(s) else s), 1),
        ]
    )

    def target(a, b, s):
        return model.log_prob(a, b, s, y)

    @jax.jit
    def step(key):
        key, now = jax.random.split(key)
        hmc = tfp.mcmc.TransformedTransitionKernel(
            tfp.mcmc.HamiltonianMonteCarlo(target, step_size=0.02, num_leapfrog_steps=5),
            [tfb.Identity(), tfb.Identity(), tfb.Softplus()],
        )
        samples = tfp.mcmc.sample_chain(
            60,
            [jnp.float32(0), jnp.float32(0), jnp.float32(1)],
            kernel=hmc,
            num_burnin_steps=40,
            trace_fn=None,
            seed=now,
        )
        return key, sum(s.mean() for s in samples)

    return step, jax.random.PRNGKey(0)
