"""esquilax: agents in a square that steer by the mean direction of those near them."""

import esquilax
import jax
import jax.numpy as jnp

PACKAGES = ("esquilax", "chex", "jax-tqdm", "tqdm")


def setup():
    def direction(_, mine, theirs):
        return jnp.stack([jnp.cos(theirs), jnp.sin(theirs)])

    steer = esquilax.transforms.spatial(
        direction, reduction=esquilax.reductions.add(shape=(2,)), include_self=True, i_range=0.15
    )

    @esquilax.transforms.amap
    def move(speed, state):
        place, heading = state
        return (place + speed * jnp.stack([jnp.cos(heading), jnp.sin(heading)])) % 1.0

    @jax.jit
    def step(state):
        places, headings = state
        mean = steer(None, headings, headings, pos=places)
        headings = headings + 0.1 * jnp.sin(jnp.arctan2(mean[:, 1], mean[:, 0]) - headings)
        places = move(0.01, (places, headings))
        return (places, headings), headings.std() + places.mean()

    keys = jax.random.split(jax.random.key(0))
    return step, (jax.random.uniform(keys[0], (60, 2)), 6 * jax.random.uniform(keys[1], (60,)))
