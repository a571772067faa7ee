"""numpyro: a hierarchical model sampled by NUTS, and another fitted by stochastic variational inference."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

PACKAGES = ("numpyro", "multipledispatch", "tqdm")
STEPS = 3
# of means over draws: after some dozen steps of NUTS, rounding decides which way a trajectory goes
TOLERANCE = 0.05
EFFECTS = jnp.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = jnp.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def schools():
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Normal(mu + tau * z, ERRORS), obs=EFFECTS)


def setup():
    mcmc = MCMC(NUTS(schools), num_warmup=100, num_samples=100, progress_bar=False)
    svi = SVI(schools, AutoNormal(schools), numpyro.optim.Adam(0.05), Trace_ELBO())

    def step(key):
        key, a, b = jax.random.split(key, 3)
        mcmc.run(a)
        fitted = svi.run(b, 100, progress_bar=False)
        return key, mcmc.get_samples()["mu"].mean() + fitted.losses[-20:].mean()

    return step, jax.random.PRNGKey(0)
