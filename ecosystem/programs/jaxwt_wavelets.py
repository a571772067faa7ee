"""jaxwt: signals and images in wavelets, packets and back, denoised by a learned threshold."""

import jax
import jax.numpy as jnp
import jaxwt
import pywt

PACKAGES = ("jaxwt", "PyWavelets")


def setup():
    t = jnp.linspace(0, 1, 256)
    clean = jnp.sin(12 * t) + (t > 0.5)
    noisy = clean + 0.2 * jax.random.normal(jax.random.key(0), t.shape)
    image = jax.random.normal(jax.random.key(1), (1, 32, 32))

    def shrunk(x, threshold):
        return jnp.sign(x) * jax.nn.relu(jnp.abs(x) - threshold)

    def loss(threshold):
        rough, *details = jaxwt.wavedec(noisy, "db4", mode="reflect", level=4)
        back = jaxwt.waverec([rough, *[shrunk(d, threshold) for d in details]], "db4")
        return jnp.mean((back.squeeze()[:256] - clean) ** 2)

    @jax.jit
    def step(threshold):
        value, slope = jax.value_and_grad(loss)(threshold)
        rough, *details = jaxwt.wavedec2(image, pywt.Wavelet("haar"), level=2)
        packets = jaxwt.WaveletPacket(noisy[None], pywt.Wavelet("db2"), mode="reflect", max_level=3)
        extra = jnp.abs(rough).mean() + jnp.abs(details[-1][0]).mean() + jnp.abs(packets["aad"]).mean()
        return threshold - 0.5 * slope, value + 0.01 * extra

    return step, jnp.float32(0.1)
