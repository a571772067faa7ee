"""zodiax: a telescope's spots as an object whose leaves are named by paths, some of them fitted by their Hessian."""

import equinox as eqx
import jax
import jax.numpy as jnp
import zodiax as zdx
from jax.flatten_util import ravel_pytree

PACKAGES = ("zodiax", "equinox", "optax", "jaxtyping")


class Spot(zdx.Base):
    center: jax.Array
    width: jax.Array

    def image(self, grid):
        away = grid - self.center[:, None, None]
        return jnp.exp(-(away**2).sum(0) / (2 * self.width**2))


class Scene(zdx.Base):
    spots: dict
    brightness: jax.Array

    def image(self, grid):
        return self.brightness * sum(s.image(grid) for s in self.spots.values())


def setup():
    grid = jnp.stack(jnp.meshgrid(*[jnp.linspace(-1, 1, 32)] * 2))
    spots = {k: Spot(jnp.array(c), jnp.array(0.2)) for k, c in {"a": [0.3, 0.1], "b": [-0.4, -0.2]}.items()}
    scene = Scene(spots, jnp.array(1.0))
    seen = scene.add("spots.a.center", 0.1).multiply("brightness", 1.4).image(grid)
    paths = ["spots.a.center", "spots.b.width", "brightness"]

    @eqx.filter_jit
    def step(scene):
        def loss(values):
            return ((scene.set(paths, values).image(grid) - seen) ** 2).mean()

        values = [scene.get(p) for p in paths]
        value, slope = jax.value_and_grad(loss)(values)
        bend, unravel = zdx.hessian(loss, values)
        flat, _ = ravel_pytree(slope)
        way = unravel(jnp.linalg.solve(bend + 0.1 * jnp.eye(len(flat)), flat))
        return scene.set(paths, [v - 0.3 * w for v, w in zip(values, way)]), value

    return step, scene
