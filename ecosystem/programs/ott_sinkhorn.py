"""ott: the regularized transport between two clouds of points, and its gradient by implicit differentiation."""

import jax
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn

PACKAGES = ("ott-jax", "jaxopt", "lineax", "equinox", "jaxtyping", "wadler-lindig", "optax", "chex", "toolz", "absl-py")


def setup():
    x = jax.random.normal(jax.random.key(0), (64, 3))
    y = jax.random.normal(jax.random.key(1), (80, 3)) + 1
    solver = sinkhorn.Sinkhorn(threshold=1e-3, max_iterations=200)

    def cost(x):
        return solver(linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.5))).reg_ot_cost

    @jax.jit
    def step(x):
        value, slope = jax.value_and_grad(cost)(x)
        return x - 0.5 * slope, value

    return step, x
