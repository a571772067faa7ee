"""Linear functions with transposes of the user's."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.custom_derivatives import linear_call


def scaled(x, r=3.0):
    """Its transpose is told to be seven times the cotangent, which shows where it is used."""
    return linear_call(lambda r, x: x * r, lambda r, ct: ct * 7, r, x)


def test_each_transformation():
    assert scaled(2.0) == 6 and gradix.jit(scaled)(2.0) == 6
    assert gradix.jvp(scaled, (2.0,), (1.0,)) == (6, 3)
    assert gradix.grad(scaled)(2.0) == 7 and gradix.jit(gradix.grad(scaled))(2.0) == 7
    assert gradix.linear_transpose(scaled, 1.0)(2.0) == (14,)
    twice = gradix.linear_transpose(lambda y: gradix.linear_transpose(scaled, 1.0)(y)[0], 1.0)
    assert twice(2.0) == (6,)  # the transpose of the transpose is the function
    np.testing.assert_array_equal(gradix.vmap(scaled)(jnp.arange(3.0)), [0, 3, 6])
    np.testing.assert_array_equal(gradix.vmap(gradix.grad(scaled))(jnp.arange(3.0)), [7, 7, 7])
    np.testing.assert_array_equal(gradix.vmap(scaled, (None, 0))(2.0, jnp.arange(3.0)), [0, 2, 4])


def test_trees_and_second_order():
    def f(x):
        return linear_call(lambda r, v: (v[0] * r, v[1]), lambda r, ct: (ct[0] * 7, ct[1]), 3.0, (x, x * 2))

    assert gradix.vjp(f, 1.0)[1]((1.0, 1.0)) == (9,)

    def g(x):
        return gradix.grad(lambda y: scaled(y) ** 2)(x)  # 7 · 2 · 3x

    assert g(1.0) == 42 and gradix.grad(g)(1.0) == 3 * 2 * 7  # back through the transpose, then the function


def test_what_it_refuses():
    with pytest.raises(NotImplementedError, match="with respect to its residuals"):
        gradix.grad(lambda r: scaled(2.0, r))(1.0)
    with pytest.raises(TypeError, match="transpose output pytree structure"):
        linear_call(lambda r, x: x, lambda r, ct: (ct, ct), 1.0, 2.0)
    with pytest.raises(TypeError, match=r"float\d\d\[2\] as the cotangent of leaf 0"):
        linear_call(lambda r, x: x, lambda r, ct: jnp.ones(2), 1.0, 2.0)
    with pytest.raises(TypeError, match="residual_args"):
        linear_call(lambda r, x: x, lambda r, ct: ct, "r", 2.0)
