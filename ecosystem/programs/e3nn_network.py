"""e3nn-jax: tensor products and spherical harmonics in a function that is equivariant under rotations."""

import e3nn_jax as e3nn
import jax

PACKAGES = ("e3nn-jax", "jraph", "sympy", "mpmath", "attrs")


def setup():
    key = jax.random.key(0)
    points = jax.random.normal(key, (6, 3))
    weights = jax.random.normal(key, (4,))

    def feature(x, w):
        y = e3nn.spherical_harmonics("0e + 1o + 2e", x, normalize=True)
        z = e3nn.tensor_product(y, e3nn.IrrepsArray("1o", x)).filter("0e + 1o + 2e").regroup()
        norms = e3nn.norm(z).array
        return (norms[..., :4] @ w).sum() + e3nn.gate(
            e3nn.concatenate([y.filter("0e"), y.filter("0e"), y.filter("1o")])
        ).array.sum()

    turned = e3nn.rand_matrix(key, ())

    @jax.jit
    def step(x):
        value, g = jax.value_and_grad(lambda x: feature(x, weights))(x)
        return x @ turned.T - 0.01 * g, value

    return step, points
