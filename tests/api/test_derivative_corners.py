"""Derivatives where rules, types and structures are unusual."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.test_util import check_grads

X = jnp.arange(3, dtype="float32")


def _with_cotangent(dtype, shape=(3,)):
    @gradix.custom_vjp
    def f(x):
        return 2 * x

    f.defvjp(lambda x: (f(x), None), lambda res, ct: (jnp.ones(shape, dtype),))
    return lambda x: f(x).sum()


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "bool"])
def test_cotangents_of_another_type_are_converted(dtype, wrap):
    for given in ("float32", "bfloat16"):
        got = wrap(gradix.grad(_with_cotangent(dtype)))(X.astype(given))
        assert got.dtype == given and got.tolist() == [1.0] * 3


@pytest.mark.parametrize("dtype, shape", [("complex64", (3,)), ("float32", (1,)), ("float32", ()), ("float32", (4,))])
def test_cotangents_that_fit_nowhere(dtype, shape):
    with pytest.raises(ValueError, match="Custom VJP bwd rule"):
        gradix.grad(_with_cotangent(dtype, shape))(X)


@pytest.mark.x32
def test_tolerances_by_dtype():
    x = jnp.arange(3, dtype=jnp.bfloat16) / 4
    check_grads(jnp.sin, (x,), 1, atol={jnp.bfloat16: 0.2, "float32": 0.0}, rtol={"bfloat16": 0.2})
    with pytest.raises(AssertionError):
        check_grads(jnp.sin, (X,), 1, atol={"float32": 0.0}, rtol={"float32": 0.0})


def test_jacobians_in_64_bits():
    with gradix.enable_x64(True):
        a, b = jnp.arange(1.0, 4), jnp.ones(2)

        def f(a, b):
            return (a**2).sum() * b

        for transform in (gradix.jacfwd, gradix.jacrev, gradix.hessian):
            want = transform(f, argnums=(0, 1))(a, b)
            got = gradix.jit(transform(f, argnums=(0, 1)))(a, b)
            assert all(
                gradix.tree.leaves(gradix.tree.map(lambda g, w: g.dtype == w.dtype and np.allclose(g, w), got, want))
            )


def test_what_all_branches_hand_on_is_not_mapped():
    def choose(x, y):
        return lax.cond(x > 1, lambda x, y: (x, y), lambda x, y: (-x, y), x, y)

    got, kept = gradix.vmap(choose, in_axes=(0, None), out_axes=(0, None))(X, 5.0)
    assert got.tolist() == [0.0, -1.0, 2.0] and kept == 5
    with pytest.raises(ValueError, match="out_axes is None"):
        gradix.vmap(choose, in_axes=(0, None), out_axes=None)(X, 5.0)


def test_static_functions_that_reach_traced_arrays():
    class Model:
        def __init__(self, weight):
            self.weight = weight

        def __hash__(self):
            return hash(self.weight)

        def __eq__(self, other):
            return bool(self.weight == other.weight)

    @gradix.jit
    def outer(x):
        model = Model(x)
        functions = (lambda y: y + model.weight, lambda y: y * model.weight)
        return gradix.jit(lambda y, fs: fs[1](fs[0](y)), static_argnums=1)(x, functions)

    assert outer(2.0) == 8 and gradix.grad(outer)(2.0) == 8
