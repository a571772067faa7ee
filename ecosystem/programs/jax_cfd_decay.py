"""jax-cfd: decaying turbulence by finite volumes, several steps under scan."""

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd

PACKAGES = ("jax-cfd", "tree-math", "einops", "gin-config", "absl-py", "scipy")
STEPS = 20


def setup():
    grid = cfd.grids.Grid((64, 64), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
    velocity = cfd.initial_conditions.filtered_velocity_field(jax.random.key(0), grid, maximum_velocity=7.0)
    move = cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=1e-3, dt=2e-3, grid=grid)
    step = jax.jit(cfd.funcutils.repeated(move, steps=10))

    def advance(velocity):
        velocity = step(velocity)
        return velocity, sum(jnp.mean(u.data**2) for u in velocity)

    return advance, velocity
