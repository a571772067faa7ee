"""jaxlie: the poses of a chain estimated from relative measurements by Gauss-Newton on the manifold of SE(3)."""

import jax
import jax.numpy as jnp
import jaxlie

PACKAGES = ("jaxlie", "jax-dataclasses", "tyro", "typing_extensions", "docstring-parser", "typeguard", "shtab", "rich")


def setup():
    count = 12
    twists = 0.3 * jax.random.normal(jax.random.key(0), (count, 6))
    measured = jaxlie.SE3.exp(twists)

    def error(poses):
        between = jaxlie.SE3(poses.wxyz_xyz[:-1]).inverse() @ jaxlie.SE3(poses.wxyz_xyz[1:])
        ties = (jaxlie.SE3(measured.wxyz_xyz[:-1]).inverse() @ between).log().ravel()
        return jnp.concatenate([ties, poses.log()[0]])

    @jax.jit
    def step(poses):
        def moved(delta):
            return error(jaxlie.manifold.rplus(poses, delta.reshape(count, 6)))

        zero = jnp.zeros(count * 6)
        residual, matrix = moved(zero), jax.jacfwd(moved)(zero)
        delta = jnp.linalg.solve(matrix.T @ matrix + 1e-3 * jnp.eye(count * 6), -matrix.T @ residual)
        poses = jaxlie.manifold.rplus(poses, 0.3 * delta.reshape(count, 6))
        slope = jaxlie.manifold.grad(lambda p: jnp.sum(error(p) ** 2))(poses)
        return poses, jnp.sum(residual**2) + jnp.abs(slope).sum()

    return step, jaxlie.SE3.exp(0.1 * jax.random.normal(jax.random.key(1), (count, 6)))
