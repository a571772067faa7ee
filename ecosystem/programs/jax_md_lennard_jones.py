"""jax-md: atoms that attract and repel in a periodic box, with neighbour lists and a thermostat."""

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, simulate, space

PACKAGES = (
    "jax-md",
    "e3nn-jax",
    "jraph",
    "flax",
    "dm-haiku",
    "optax",
    "chex",
    "toolz",
    "ml-collections",
    "absl-py",
    "sympy",
    "mpmath",
    "attrs",
    "jmp",
    "tabulate",
    "msgpack",
    "rich",
    "pyyaml",
    "treescope",
    "orbax-checkpoint",
    "tensorstore",
    "einops",
    "ordered-set",
)
STEPS = 20


def setup():
    box = 6.0
    displacement, shift = space.periodic(box)
    neighbors, potential = energy.lennard_jones_neighbor_list(displacement, box, r_cutoff=2.5, dr_threshold=0.5)
    grid = jnp.stack(jnp.meshgrid(jnp.arange(5), jnp.arange(5), jnp.arange(5), indexing="ij"), -1).reshape(-1, 3) * 1.2
    start = grid + 0.02 * jax.random.normal(jax.random.key(0), grid.shape)
    near = neighbors.allocate(start)
    init, apply = simulate.nvt_nose_hoover(potential, shift, 1e-3, 0.5)
    relax, descend = minimize.fire_descent(potential, shift)
    relaxed = relax(start, neighbor=near)
    for _ in range(3):
        relaxed = jax.jit(descend)(relaxed, neighbor=near)

    @jax.jit
    def step(carried):
        state, near = carried

        def one(_, both):
            state, near = both
            near = near.update(state.position)
            return apply(state, neighbor=near), near

        state, near = jax.lax.fori_loop(0, 10, one, (state, near))
        return (state, near), potential(state.position, neighbor=near)

    return step, (init(jax.random.key(1), relaxed.position, neighbor=near), near)
