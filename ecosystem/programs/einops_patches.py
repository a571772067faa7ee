"""einops: a vision transformer's patches, and reductions, under jit and grad."""

import einops
import jax
import jax.numpy as jnp

PACKAGES = ("einops",)


def setup():
    w = jax.random.normal(jax.random.key(0), (3 * 16, 8)) * 0.1

    def patches(x, w):
        x = einops.rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
        x = einops.einsum(x, w, "b n i, i o -> b n o")
        return einops.reduce(x, "b n (o k) -> b o", "mean", k=2) + einops.repeat(
            x.mean((0, 1, 2)), "-> b o", b=x.shape[0], o=4
        )

    @jax.jit
    def step(x):
        value, g = jax.value_and_grad(lambda x: jnp.sum(jnp.sin(patches(x, w))))(x)
        return x + 0.1 * g, value

    return step, jax.random.normal(jax.random.key(1), (2, 16, 16, 3))
