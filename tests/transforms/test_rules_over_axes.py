"""Functions with derivative rules that communicate over a mapped axis, on values that are not mapped."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


@gradix.custom_jvp
def forward(x):
    return lax.psum(x, "n")


forward.defjvp(lambda primals, tangents: (lax.psum(primals[0], "n"), 5 * tangents[0]))


@gradix.custom_vjp
def reverse(x):
    return lax.psum(x, "n")


reverse.defvjp(lambda x: (lax.psum(x, "n"), None), lambda _, ct: (5 * ct,))


@pytest.mark.parametrize("function", [forward, reverse])
def test_results_that_depend_on_no_example_are_not_mapped(function):
    closed = gradix.make_jaxpr(function, axis_env=[("n", 4)])(1.0)

    def staged(x):
        return gradix.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    over = dict(axis_name="n", in_axes=(0, None))
    assert float(gradix.vmap(lambda _, x: staged(x), **over, out_axes=None)(jnp.arange(4.0), 2.0)) == 8.0
    slopes = gradix.vmap(lambda _, x: gradix.grad(staged)(x), **over)(jnp.arange(4.0), 2.0)
    np.testing.assert_array_equal(slopes, [5.0] * 4)
    np.testing.assert_array_equal(gradix.vmap(staged, axis_name="n")(jnp.arange(4.0)), [6.0] * 4)


def test_arguments_by_name_after_others_that_are_left_out():
    @gradix.custom_jvp
    def scaled(x, shift=1.0, factor=2.0, *, exact=False):
        return x * factor + shift

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), 7 * tangents[0]))
    assert float(scaled(3.0, factor=4.0)) == 13.0
    assert float(gradix.grad(lambda x: scaled(x, factor=4.0))(3.0)) == 7.0
    with pytest.raises(TypeError, match="keyword-only arguments \\['exact'\\]"):
        scaled(3.0, exact=True)
