"""augmax: a batch of images turned, warped, cropped and recoloured with their masks."""

import augmax
import jax
import jax.numpy as jnp

PACKAGES = ("augmax", "einops")


def setup():
    chain = augmax.Chain(
        augmax.HorizontalFlip(),
        augmax.Rotate((-20, 20)),
        augmax.Warp(strength=3, coarseness=16),
        augmax.RandomSizedCrop(width=24, height=24, zoom_range=(1.0, 2.0)),
        augmax.ColorJitter(),
        augmax.RandomGamma(),
        augmax.Normalize(),
        augmax.Solarization(p=0.2),
        input_types=[augmax.InputType.IMAGE, augmax.InputType.MASK],
    )
    images = jax.random.uniform(jax.random.key(0), (8, 32, 32, 3))
    masks = (images[..., 0] > 0.5).astype(jnp.int32)

    @jax.jit
    def step(key):
        key, own = jax.random.split(key)
        image, mask = jax.vmap(chain)(jax.random.split(own, 8), [images, masks])
        return key, image.mean() + mask.mean()

    return step, jax.random.PRNGKey(0)
