"""Functions of sets are differentiable whether the size of the result is given or found from the values."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

OTHER = jnp.array([1.0, 2.0, 7.0])
# What is computed, and the size of the result.
FUNCTIONS = {
    "unique": (jnp.unique, 4),
    "unique along an axis": (lambda x, **kw: jnp.unique(x[:, None] * jnp.array([1.0, 2.0]), axis=0, **kw), 4),
    "unique with places": (lambda x, **kw: jnp.unique(x, True, True, True, **kw)[0], 4),
    "unique_values": (jnp.unique_values, 4),
    "unique_all": (lambda x, **kw: jnp.unique_all(x, **kw).values, 4),
    "unique_counts": (lambda x, **kw: jnp.unique_counts(x, **kw).values, 4),
    "unique_inverse": (lambda x, **kw: jnp.unique_inverse(x, **kw).values, 4),
    "union1d": (lambda x, **kw: jnp.union1d(x, OTHER, **kw), 5),
    "union1d, second": (lambda x, **kw: jnp.union1d(OTHER, x, **kw), 5),
    "intersect1d": (lambda x, **kw: jnp.intersect1d(x, OTHER, **kw), 2),
    "setdiff1d": (lambda x, **kw: jnp.setdiff1d(x, OTHER, **kw), 2),
    "setxor1d": (lambda x, **kw: jnp.setxor1d(x, OTHER, **kw), 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_derivative_goes_to_the_first_of_equal_values(name, dtype):
    f, size = FUNCTIONS[name]
    x = jnp.array([3.0, 1.0, 1.0, 2.0, 5.0], dtype)

    def total(x, **kw):
        values = f(x, **kw)
        return (values * jnp.arange(1, values.size + 1, dtype=dtype).reshape(values.shape)).sum()

    with_size = gradix.grad(lambda x: total(x, size=size))(x)
    assert with_size.any()
    np.testing.assert_array_equal(gradix.grad(total)(x), with_size)
    t = jnp.ones_like(x)
    for a, b in zip(gradix.jvp(f, (x,), (t,)), gradix.jvp(lambda x: f(x, size=size), (x,), (t,))):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(gradix.vjp(f, x)[0], f(x))
