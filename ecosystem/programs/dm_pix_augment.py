"""dm_pix: random augmentation of a batch of images, and measures of similarity."""

import dm_pix as pix
import jax
import jax.numpy as jnp

PACKAGES = ("dm-pix", "chex", "toolz")


def setup():
    images = jax.random.uniform(jax.random.key(0), (4, 24, 24, 3))

    def augment(key, image):
        keys = jax.random.split(key, 5)
        image = pix.random_flip_left_right(keys[0], image)
        image = pix.random_brightness(keys[1], image, 0.2)
        image = pix.random_contrast(keys[2], image, 0.8, 1.2)
        image = pix.random_hue(keys[3], image, 0.1)
        image = pix.gaussian_blur(image, 1.0, 3)
        image = pix.rotate(image, 0.3)
        return pix.resize_with_crop_or_pad(image, 20, 20)

    @jax.jit
    def step(key):
        key, now = jax.random.split(key)
        out = jax.vmap(augment)(jax.random.split(now, 4), images)
        near = pix.ssim(out, images[:, 2:22, 2:22]).mean() + 0.01 * pix.psnr(out, images[:, 2:22, 2:22]).mean()
        return key, near + pix.rgb_to_hsv(jnp.clip(out, 0, 1)).mean()

    return step, jax.random.key(1)
