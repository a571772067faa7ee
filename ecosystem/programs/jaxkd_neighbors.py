"""jaxkd: a tree of points that drift towards their neighbours, and their clusters."""

import jax
import jaxkd

PACKAGES = ("jaxkd",)


def setup():
    points = jax.random.normal(jax.random.key(0), (500, 3))

    @jax.jit
    def step(points):
        tree = jaxkd.build_tree(points)
        near, distances = jaxkd.query_neighbors(tree, points, k=6)
        counts = jaxkd.count_neighbors(tree, points, r=0.3)
        points = points + 0.05 * (points[near].mean(1) - points)
        return points, distances.mean() + 0.01 * counts.mean()

    return step, points
