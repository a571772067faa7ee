"""dynamax: a hidden Markov model by EM, and a linear Gaussian state space model smoothed, also in parallel."""

import jax
import jax.numpy as jnp
import jax.random as jr
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM, lgssm_smoother
from dynamax.linear_gaussian_ssm.parallel_inference import lgssm_smoother as parallel_smoother

PACKAGES = (
    "dynamax",
    "tfp-nightly",
    "dm-tree",
    "decorator",
    "cloudpickle",
    "gast",
    "six",
    "wrapt",
    "optax",
    "jaxtyping",
    "fastprogress==1.0.3",
)
STEPS = 20


def setup():
    hmm = GaussianHMM(3, 2)
    params, props = hmm.initialize(jr.key(0), method="prior")
    _, seen = hmm.sample(params, jr.key(1), 200)
    params, _ = hmm.initialize(jr.key(2), method="prior")
    lgssm = LinearGaussianSSM(2, 1)
    linear, _ = lgssm.initialize(jr.key(3))
    _, path = lgssm.sample(linear, jr.key(4), 100)

    @jax.jit
    def step(carry):
        params, state = carry
        stats, likelihood = hmm.e_step(params, seen)
        params, state = hmm.m_step(params, props, jax.tree.map(lambda a: a[None], stats), state)
        smoothed = lgssm_smoother(linear, path).smoothed_means
        other = parallel_smoother(linear, path).smoothed_means
        return (params, state), likelihood / 200 + smoothed.mean() + jnp.abs(other).mean()

    return step, (params, hmm.initialize_m_step_state(params, props))
