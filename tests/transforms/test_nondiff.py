"""grad over arguments that hold more than floats."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

P = {"w": jnp.ones(2), "steps": 3, "name": "layer", "none": None, "f": jnp.sin, "n": np.arange(2), "b": 2.0}


def loss(p, x=1.0):
    assert type(p["steps"]) is int and p["name"] == "layer" and p["f"] is jnp.sin
    return (p["w"] ** p["steps"]).sum() * p["b"] * x


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: lambda p: gradix.jit(lambda w: f({**p, "w": w}))(p["w"])])
def test_other_leaves_are_skipped(wrap):
    g = wrap(gradix.grad(loss, nondiff="skip"))(P)
    np.testing.assert_allclose(g["w"], [6, 6])
    np.testing.assert_allclose(g["b"], 2)
    assert all(g[k] is None for k in ("steps", "name", "none", "f", "n"))


def test_several_arguments_and_auxiliary_data():
    (value, aux), (gx, gp) = gradix.value_and_grad(
        lambda p, x: (loss(p, x), "aux"), argnums=(1, -2), has_aux=True, nondiff="skip"
    )(P, 2.0)
    assert value == 8 and aux == "aux" and gx == 4 and gp["b"] == 4 and gp["name"] is None
    g, aux = gradix.grad(lambda p, *, x: (loss(p, x), 1), has_aux=True, nondiff="skip")(P, x=1.0)
    assert aux == 1 and g["b"] == 2


def test_errors():
    with pytest.raises(TypeError, match="scalar-output"):
        gradix.grad(lambda p: p["w"], nondiff="skip")(P)
    with pytest.raises(ValueError, match="nondiff must be 'error' or 'skip', got 'no'"):
        gradix.grad(loss, nondiff="no")
    with pytest.raises(TypeError, match="at least 3 positional"):
        gradix.grad(loss, argnums=2, nondiff="skip")(P, 1.0)
    with pytest.raises(TypeError):
        gradix.grad(loss)(P)
