"""qdax: MAP-Elites on Rastrigin's function, some generations a step."""

import functools

import jax
import jax.numpy as jnp
from qdax.core.containers.mapelites_repertoire import compute_euclidean_centroids
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.map_elites import MAPElites
from qdax.utils.metrics import default_qd_metrics

PACKAGES = (
    "qdax",
    "brax",
    "flax",
    "chex",
    "toolz",
    "jumanji",
    "scikit-learn",
    "joblib",
    "jinja2",
    "absl-py",
    "esquilax",
    "dm-env",
    "gymnasium",
    "farama-notifications",
    "threadpoolctl",
    "huggingface_hub",
    "requests",
    "tqdm",
    "narwhals",
)
STEPS = 20


def setup():
    def score(x, key):
        fitness = -jnp.sum(x**2 - 10 * jnp.cos(2 * jnp.pi * x) + 10, axis=-1)
        return fitness, x[:, :2], {}

    emitter = MixingEmitter(
        mutation_fn=None,
        variation_fn=functools.partial(isoline_variation, iso_sigma=0.05, line_sigma=0.1, minval=-1, maxval=1),
        variation_percentage=1.0,
        batch_size=32,
    )
    elites = MAPElites(score, emitter, functools.partial(default_qd_metrics, qd_offset=100.0))
    centroids = compute_euclidean_centroids(grid_shape=(10, 10), minval=-1, maxval=1)
    first = jax.random.uniform(jax.random.key(0), (32, 6), minval=-1, maxval=1)
    repertoire, state, _ = elites.init(first, centroids, jax.random.key(1))

    @jax.jit
    def step(carry):
        (repertoire, state, key), metrics = jax.lax.scan(elites.scan_update, carry, length=5)
        return (repertoire, state, key), metrics["max_fitness"].mean() + 0.01 * metrics["coverage"].mean()

    return step, (repertoire, state, jax.random.key(2))
