"""netket: the ground state of an Ising chain by a variational Monte Carlo, sampled by Metropolis."""

import jax.numpy as jnp
import netket as nk

PACKAGES = (
    "netket",
    "flax",
    "optax",
    "numba",
    "llvmlite",
    "igraph",
    "texttable",
    "plum-dispatch",
    "beartype",
    "equinox",
    "orjson",
    "sparse",
    "rich",
    "tqdm",
)


def setup():
    graph = nk.graph.Chain(12)
    space = nk.hilbert.Spin(0.5, graph.n_nodes)
    energy = nk.operator.IsingJax(space, graph, h=1.0)
    model = nk.models.RBM(alpha=1, param_dtype=float)
    sampler = nk.sampler.MetropolisLocal(space, n_chains=16)
    state = nk.vqs.MCState(sampler, model, n_samples=256, seed=0, sampler_seed=1)
    driver = nk.VMC(
        energy, nk.optimizer.Sgd(0.05), variational_state=state, preconditioner=nk.optimizer.SR(diag_shift=0.1)
    )

    def step(driver):
        driver.run(1, out=None, show_progress=False)
        return driver, jnp.real(driver.energy.mean)

    return step, driver
