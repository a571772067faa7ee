"""check_grads passes what is right, and names what is wrong."""

from functools import partial

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.test_util import check_grads, check_jvp, check_vjp


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev"), "rev"])
@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x: jnp.sin(x) * x, (0.5,)),
        (lambda x, y: {"p": x @ y, "q": (jnp.exp(x).sum(), 3)}, (jnp.ones((2, 3)), jnp.arange(3.0))),
        (lambda p, n: p["a"] ** n, ({"a": jnp.array([0.5, 1.5])}, 3)),
        (lambda z: jnp.abs(z * z).sum(), (jnp.array([1.0 + 2j, 0.5 - 1j]),)),
        (lambda x: gradix.lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=3), (0.4,)),
    ],
)
def test_right_derivatives_pass(f, args, modes):
    check_grads(f, args, order=2, modes=modes)
    with gradix.enable_x64(True):
        check_grads(f, args, order=3, modes=modes, rtol=1e-4, atol=1e-4)


def wrong(forward, factor=1.1):
    if forward:
        f = gradix.custom_jvp(jnp.sin)
        f.defjvp(lambda p, t: (jnp.sin(p[0]), factor * jnp.cos(p[0]) * t[0]))
    else:
        f = gradix.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (factor * jnp.cos(x) * ct,))
    return f


@pytest.mark.x32
def test_wrong_derivatives_are_named():
    x = jnp.array([0.3, 0.6])
    with pytest.raises(AssertionError, match="forward mode: tangent"):
        check_grads(wrong(True), (x,), 1, modes=("fwd",))
    with pytest.raises(AssertionError, match="reverse mode: cotangent"):
        check_grads(wrong(False), (x,), 1, modes=("rev",))
    with pytest.raises(AssertionError, match=r"forward mode: tangent \['b'\]"):
        check_grads(lambda x: {"a": x, "b": wrong(True)(x)}, (x,), 1)
    check_grads(wrong(True, 1.0001), (x,), 1)


def test_a_wrong_second_derivative_is_found_at_order_two():
    f = gradix.custom_jvp(lambda x: x**3)
    cut = gradix.lax.stop_gradient
    f.defjvp(lambda p, t: (f(p[0]), 3 * cut(p[0]) ** 2 * t[0]))
    check_grads(f, (0.7,), 1)
    with pytest.raises(AssertionError, match="forward mode of forward mode: tangent"):
        check_grads(f, (0.7,), 2, modes=("fwd",))


def test_a_jump_has_no_slope():
    with pytest.raises(AssertionError):
        check_grads(lambda x: jnp.floor(x), (1.0,), 1)


def test_a_jump_near_by_is_stepped_around():
    stairs = lambda x: jnp.where(x < 0.502, x**2, 5 + x**2)  # noqa: E731
    check_grads(stairs, (0.5,), 1)
    with pytest.raises(AssertionError):
        check_grads(stairs, (0.5,), 1, eps=0.01)


@pytest.mark.parametrize("dtype, x", [("float32", 5000.0), ("float32", 3.0), ("bfloat16", 1.5), ("float16", 1.5)])
def test_a_derivative_that_is_wrongly_zero_is_found(dtype, x):
    """Steps too small to move the argument would agree with it."""
    x = jnp.asarray(x, dtype)
    for modes in ("fwd", "rev"):
        with pytest.raises(AssertionError):
            check_grads(lambda x: gradix.lax.stop_gradient(x) ** 2, (x,), 1, modes=modes)


def test_given_derivatives():
    check_jvp(jnp.sin, partial(gradix.jvp, jnp.sin), (0.5,))
    check_vjp(jnp.sin, partial(gradix.vjp, jnp.sin), (0.5,))
    with pytest.raises(AssertionError, match="mine: tangent"):
        check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), t[0]), (0.5,), err_msg="mine")
    with pytest.raises(AssertionError, match="value"):
        check_vjp(jnp.sin, partial(gradix.vjp, jnp.cos), (0.5,))


def test_tolerances_and_steps():
    f, x = wrong(True, 1.01), np.float32(0.3)
    check_grads(f, (x,), 1, modes=("fwd",), rtol=0.05, atol=0)
    with pytest.raises(AssertionError):
        check_grads(f, (x,), 1, modes=("fwd",), rtol=1e-3, atol=0)
    with pytest.raises(AssertionError):
        check_grads(jnp.sin, (x,), 1, eps=2.0)
    check_grads(lambda x: x.astype("float32") ** 2, (jnp.ones(2, "bfloat16"),), 1)


def test_unknown_mode():
    with pytest.raises(ValueError, match="'forward'"):
        check_grads(jnp.sin, (1.0,), 1, modes=("forward",))
    with pytest.raises(TypeError, match="is not an array"):
        check_grads(jnp.sin, ("a",), 1)


def test_tolerances_by_dtype_hold_for_reverse_mode():
    """A pairing of float32 values is computed in float64, and is compared as float32 values are."""

    def steep(x):
        return jnp.prod(x) + 0.03 * jnp.sin(400.0 * x).sum()

    x = jnp.linspace(0.5, 1.5, 6, dtype="float32")
    loose = {np.float32: 1e3, np.float64: 1e-9}
    check_grads(steep, (x,), order=1, modes=["rev"], atol=loose, rtol=loose)
    with pytest.raises(AssertionError):
        check_grads(steep, (x,), order=1, modes=["rev"], atol={np.float32: 1e-7}, rtol={np.float32: 1e-7})


def test_small_arguments_beside_large_ones():
    """A step that suits 0.01 is tried, though it is few roundings of 100."""
    check_grads(gradix.nn.log1mexp, (jnp.array([1e-2, 1.0, 1e2]),), order=1, atol=1e-3, rtol=1e-3)


def test_infinite_values_do_not_change():
    """Where a window holds no element, its extreme is infinite before a step and behind it."""

    def extremes(x):
        return gradix.lax.reduce_window(x, -np.inf, gradix.lax.max, (2,), (1,), [(2, 3)])

    assert np.isinf(extremes(jnp.ones(3))).any()
    check_grads(extremes, (jnp.array([1.0, 3.0, 2.0]),), 2, rtol=1e-2, atol=1e-2)
    for other in (np.nan, -np.inf):  # what is no number, or becomes infinite within a step, is no derivative
        with pytest.raises(AssertionError):
            check_grads(lambda x: jnp.where(x > 2.0, x, other), (jnp.float32(2.0),), 1, modes=("fwd",))
