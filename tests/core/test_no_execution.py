"""`no_tracing` and `no_execution`: what they refuse, and what they let through."""

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


def test_no_tracing_lets_through_what_is_traced_already():
    f = gradix.jit(lambda x: x + 1)
    x = jnp.ones(3)
    f(x)
    with gradix.no_tracing():
        assert f(x).tolist() == [2.0, 2.0, 2.0]
        for trace in (
            lambda: f(jnp.ones(2)),
            lambda: gradix.jit(lambda x: x * 2)(x),
            lambda: gradix.make_jaxpr(f)(1.0),
            lambda: gradix.eval_shape(lambda x: x, x),
            lambda: lax.scan(lambda c, x: (c, x), 0.0, x),
        ):
            with pytest.raises(RuntimeError, match="no_tracing is set"):
                trace()
    assert f(jnp.ones(2)).tolist() == [2.0, 2.0]


def test_no_execution_refuses_programs_and_operations():
    f = gradix.jit(lambda x: x + 1)
    x = jnp.ones(3)
    for _ in range(5):
        f(x)
    ref = gradix.new_ref(x)
    with gradix.no_execution():
        for run in (
            lambda: f(x),
            lambda: x + 1,
            lambda: x[0],
            lambda: gradix.grad(lambda x: (x * x).sum())(x),
            lambda: gradix.vmap(lambda x: x + 1)(x),
            lambda: lax.cond(True, jnp.sin, jnp.cos, 1.0),
            lambda: ref[...],
        ):
            with pytest.raises(RuntimeError, match="no_execution is set"):
                run()
        assert "add" in str(gradix.make_jaxpr(lambda x: x + 1)(x))
        assert gradix.eval_shape(f, x).shape == (3,)
        f.lower(x).compile()
    assert f(x).tolist() == [2.0, 2.0, 2.0]
    assert gradix.grad(lambda x: x * x)(3.0) == 6.0


def test_the_option_holds_until_it_is_set_back():
    gradix.config.update("jax_no_execution", True)
    try:
        with pytest.raises(RuntimeError, match="no_execution is set"):
            jnp.ones(3) + 1
        with gradix.no_execution(False):
            assert (jnp.ones(1) + 1).tolist() == [2.0]
        with pytest.raises(RuntimeError, match="no_execution is set"):
            jnp.ones(3) + 1
    finally:
        gradix.config.update("jax_no_execution", False)
    assert (jnp.ones(1) + 1).tolist() == [2.0]
