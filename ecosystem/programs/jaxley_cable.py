"""jaxley: a branched neuron with Hodgkin-Huxley channels, a stimulus, and the gradient to its conductance."""

import jax
import jax.numpy as jnp
import jaxley as jx
from jaxley.channels import HH

PACKAGES = ("jaxley", "tridiax", "networkx", "pandas", "matplotlib", "python-dateutil", "pillow", "pyparsing", "cycler")
STEPS = 10


def setup():
    branch = jx.Branch(jx.Compartment(), ncomp=2)
    cell = jx.Cell(branch, parents=[-1, 0, 0])
    cell.insert(HH())
    cell.branch(0).loc(0.0).stimulate(jx.step_current(i_delay=0.5, i_dur=1.0, i_amp=0.1, delta_t=0.025, t_max=5.0))
    cell.branch(1).loc(0.0).record(verbose=False)
    cell.make_trainable("HH_gNa", verbose=False)

    @jax.jit
    def step(params):
        def loss(params):
            return jnp.mean(jx.integrate(cell, params=params, delta_t=0.025)) / 70

        value, slope = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, slope), value

    return step, cell.get_parameters()
