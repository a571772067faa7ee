"""hj-reachability: the value function of a pursuit, a Hamilton-Jacobi equation on a grid of three dimensions."""

import hj_reachability as hj
import jax
import jax.numpy as jnp
import numpy as np

PACKAGES = ("hj-reachability", "flax", "msgpack")
STEPS = 8


def setup():
    dynamics = hj.systems.Air3d()
    domain = hj.sets.Box(np.array([-6.0, -10.0, 0.0]), np.array([20.0, 10.0, 2 * np.pi]))
    grid = hj.Grid.from_lattice_parameters_and_boundary_conditions(domain, (21, 18, 16), periodic_dims=2)
    settings = hj.SolverSettings.with_accuracy("high")
    start = jnp.linalg.norm(grid.states[..., :2], axis=-1) - 5

    @jax.jit
    def step(state):
        time, values = state
        values = hj.step(settings, dynamics, grid, time, values, time - 0.05, progress_bar=False)
        return (time - 0.05, values), values.mean() + grid.grad_values(values).mean()

    return step, (jnp.float32(0), start)
