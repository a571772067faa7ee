"""`lax.dce_sink`: what is given counts as used, under every transformation."""

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax


def f(x):
    lax.dce_sink({"a": jnp.sin(x), "b": x * 3})
    return x * 2


def primitives(closed):
    return [e.primitive.name for e in closed.jaxpr.eqns]


def test_what_is_given_stays():
    x = jnp.arange(3.0)
    assert {"sin", "dce_sink"} <= set(primitives(gradix.make_jaxpr(f)(x)))
    assert "sine" in gradix.jit(f).lower(x).as_text()
    assert "sine" not in gradix.jit(lambda x: (jnp.sin(x), x * 2)[1]).lower(x).as_text()


def test_transformations_pass_it_by():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(f(x), x * 2)
    np.testing.assert_array_equal(gradix.jit(f)(x), x * 2)
    np.testing.assert_array_equal(gradix.vmap(f)(x), x * 2)
    np.testing.assert_array_equal(gradix.grad(lambda x: f(x).sum())(x), [2, 2, 2])
    np.testing.assert_array_equal(gradix.jit(gradix.grad(lambda x: f(x).sum()))(x), [2, 2, 2])
    assert gradix.jvp(f, (x,), (x,))[1].tolist() == [0, 2, 4]
    out, _ = lax.scan(lambda c, v: (f(c), None), jnp.float32(1), x)
    assert float(out) == 8
    assert float(lax.cond(x[0] > 1, f, lambda v: v, x)[2]) == 2
    assert "dce_sink" in str(gradix.make_jaxpr(gradix.vmap(f))(x)) and "dce_sink" in str(
        gradix.make_jaxpr(gradix.jit(f))(x)
    )
