"""Rules of custom derivatives that read values which a `vmap` inside of the derivative maps."""

import pytest

import gradix
import gradix.numpy as jnp

ROWS = jnp.arange(3.0)


def _jvp(x, z):
    g = gradix.custom_jvp(lambda y: x * y)
    g.defjvp(lambda primals, tangents: (x * primals[0], x * tangents[0]))
    return g(z)


def _vjp(x, z):
    g = gradix.custom_vjp(lambda y: x * y)
    g.defvjp(lambda y: (x * y, x), lambda res, ct: (ct * res,))
    return g(z)


def _vjp_of_both(x, z):
    g = gradix.custom_vjp(lambda y, w: x * y * w)
    g.defvjp(lambda y, w: (x * y * w, (x, y, w)), lambda res, ct: (ct * res[0] * res[2], ct * res[0] * res[1]))
    return g(z, x + z)


def _vjp_by_residual(x, z):
    g = gradix.custom_vjp(lambda y: 2 * y)
    g.defvjp(lambda y: (2 * y, x), lambda res, ct: (ct * res,))
    return g(z)


def _summed(rule):
    return lambda z: gradix.vmap(lambda x: rule(x, z))(ROWS).sum()


@pytest.mark.parametrize("rule, want", [(_jvp, 3), (_vjp, 3), (_vjp_of_both, 23), (_vjp_by_residual, 3)])
@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit], ids=["eager", "jitted"])
def test_gradients_around_a_vmap(rule, want, transform):
    assert transform(gradix.grad(_summed(rule)))(3.0) == want
    assert transform(gradix.vmap(gradix.grad(_summed(rule))))(jnp.array([3.0, 3.0])).tolist() == [want, want]


def test_forward_mode_and_second_derivatives():
    assert gradix.jvp(_summed(_jvp), (3.0,), (1.0,)) == (9, 3) and gradix.hessian(_summed(_jvp))(3.0) == 0
    assert gradix.grad(gradix.grad(_summed(_vjp_of_both)))(3.0) == 6


def test_symbolic_zeros():
    def ruled(x, z):
        g = gradix.custom_jvp(lambda y, w: x * y * w)
        zero = gradix.custom_derivatives.SymbolicZero

        def rule(primals, tangents):
            (y, w), (ty, tw) = primals, tangents
            assert isinstance(tw, zero)
            return x * y * w, x * ty * w

        g.defjvp(rule, symbolic_zeros=True)
        return g(z, 5.0)

    assert gradix.grad(_summed(ruled))(2.0) == 15


def test_a_captured_value_with_a_derivative_is_refused():
    def outer(z):
        return gradix.vmap(lambda x: _vjp(x * z, z))(ROWS).sum()

    with pytest.raises(gradix.errors.UnexpectedTracerError, match="closes over"):
        gradix.grad(outer)(3.0)


def test_bwd_checks_can_be_switched_off():
    f = gradix.custom_vjp(lambda x: x.sum())
    f.defvjp(lambda x: (x.sum(), None), lambda res, ct: (jnp.ones(3),))
    with pytest.raises(ValueError, match="cotangent of the shape"):
        gradix.grad(f)(jnp.ones(4))
    gradix.config.update("jax_disable_bwd_checks", True)
    try:
        assert gradix.grad(f)(jnp.ones(4)).shape == (3,)
    finally:
        gradix.config.update("jax_disable_bwd_checks", False)


def test_a_symbolic_zero_of_another_shape():
    zero = gradix.custom_derivatives.SymbolicZero(gradix.core.ShapedArray((3,), jnp.dtype("float32")))
    f = gradix.custom_vjp(lambda x, y: x.sum() + y)
    f.defvjp(lambda x, y: (x.value.sum() + y.value, None), lambda res, ct: (zero, ct), symbolic_zeros=True)
    with pytest.raises(ValueError, match="symbolic zero of shape"):
        gradix.grad(f)(jnp.ones(4), 1.0)
