"""evosax: CMA-ES and a natural evolution strategy on Rosenbrock's function, some generations a step."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, Open_ES

PACKAGES = ("evosax", "flax", "optax", "chex", "toolz", "absl-py", "typing_extensions")
STEPS = 5  # later ones differ by a percent on JAX, too, when the start moves by 1e-7


def setup():
    start = jnp.zeros(8)
    strategies = [CMA_ES(population_size=16, solution=start), Open_ES(population_size=16, solution=start)]

    def rosenbrock(x):
        return jnp.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)

    def evolve(strategy, state, key):
        params = strategy.default_params

        def generation(state, key):
            asked, told = jax.random.split(key)
            population, state = strategy.ask(asked, state, params)
            fitness = jax.vmap(rosenbrock)(population)
            state, _ = strategy.tell(told, population, fitness, state, params)
            return state, jnp.log1p(fitness.min())

        return jax.lax.scan(generation, state, jax.random.split(key, 5))

    @jax.jit
    def step(carry):
        states, key = carry
        key, *keys = jax.random.split(key, 3)
        found = [evolve(s, state, k) for s, state, k in zip(strategies, states, keys)]
        return ([state for state, _ in found], key), sum(best.mean() for _, best in found)

    states = [s.init(jax.random.key(i), start, s.default_params) for i, s in enumerate(strategies)]
    return step, (states, jax.random.key(7))
