"""flashbax: transitions added to a buffer of trajectories and one with priorities, and sampled."""

import flashbax
import jax
import jax.numpy as jnp

PACKAGES = ("flashbax", "chex", "toolz", "absl-py", "typing_extensions")


def setup():
    plain = flashbax.make_item_buffer(max_length=1000, min_length=2, sample_batch_size=32)
    ranked = flashbax.make_prioritised_flat_buffer(
        max_length=1024, min_length=2, sample_batch_size=32, priority_exponent=0.6
    )
    item = {"seen": jnp.zeros(4), "action": jnp.int32(0), "reward": jnp.float32(0)}

    @jax.jit
    def step(carry):
        first, second, key, seen = carry
        key, *keys = jax.random.split(key, 4)
        item = {"seen": seen, "action": jnp.argmax(seen).astype(jnp.int32), "reward": seen.sum()}
        first, second = plain.add(first, item), ranked.add(second, item)
        batch, found = plain.sample(first, keys[0]).experience, ranked.sample(second, keys[1])
        wrong = jnp.abs(found.experience.first["reward"] - found.experience.second["reward"]) + 0.1
        second = ranked.set_priorities(second, found.indices, wrong)
        seen = 0.9 * seen + jax.random.normal(keys[2], (4,))
        return (first, second, key, seen), batch["reward"].mean() + wrong.mean()

    states = plain.init(item), ranked.init(item)
    first, second = states
    for _ in range(2):
        first, second = plain.add(first, item), ranked.add(second, item)
    return step, (first, second, jax.random.key(0), jnp.ones(4))
