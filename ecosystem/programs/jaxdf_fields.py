"""jaxdf: a nonlinear operator on a field of Fourier series, and the field by its gradient."""

import jax
import jax.numpy as jnp
from jaxdf import FourierSeries, operator, operators as jops
from jaxdf.geometry import Domain

PACKAGES = ("jaxdf", "beartype", "plum-dispatch", "equinox", "jaxtyping")


def setup():
    domain = Domain((24, 24), (1.0, 1.0))

    @operator
    def bent(u, *, params=None):
        parts = jops.diag_jacobian(jops.gradient(u))
        return 0.5 * jops.sum_over_dims(parts) + jops.compose(u)(jnp.sin)

    seen = bent(FourierSeries(_bump(0.2), domain)).on_grid

    @jax.jit
    def step(values):
        def loss(values):
            return jnp.abs(bent(FourierSeries(values, domain)).on_grid - seen).mean()

        value, slope = jax.value_and_grad(loss)(values)
        return values - 0.1 * slope, value

    return step, _bump(0.3)


def _bump(width):
    x = jnp.linspace(-1, 1, 24)
    return jnp.exp(-(x[:, None] ** 2 + x**2) / width)[..., None]
