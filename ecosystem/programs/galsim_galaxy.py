"""jax-galsim: a galaxy seen through a point spread function, drawn with a gradient to its shape."""

import jax
import jax.numpy as jnp
import jax_galsim as galsim

PACKAGES = ("jax-galsim", "galsim", "astropy", "astropy-iers-data", "pyerfa", "lsstdesc.coord", "quadax", "equinox")
STEPS = 20


def setup():
    sizes = galsim.GSParams(minimum_fft_size=128, maximum_fft_size=128)

    def image(p):
        galaxy = galsim.Exponential(half_light_radius=p[0], flux=100.0, gsparams=sizes).shear(g1=p[1], g2=p[2])
        seen = galsim.Convolve([galaxy, galsim.Gaussian(fwhm=0.7, gsparams=sizes)], gsparams=sizes)
        return seen.drawImage(nx=32, ny=32, scale=0.2, method="no_pixel").array

    goal = image(jnp.array([0.8, 0.1, -0.05]))

    @jax.jit
    def step(p):
        value, slope = jax.value_and_grad(lambda p: jnp.mean((image(p) - goal) ** 2))(p)
        return p - 1e-2 * slope, value + goal.sum() / 100

    return step, jnp.array([1.0, 0.0, 0.0])
