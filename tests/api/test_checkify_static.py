"""Arguments of checked functions that are no arrays."""

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix.experimental import checkify


def chosen(x, keep, name="twice"):
    checkify.check(x > 0, "not positive")
    if keep:
        return x
    return x * (2 if name == "twice" else 3)


def test_bools_and_objects_stay_as_they_are():
    checked = checkify.checkify(chosen)
    for args, want in (((1.0, True), 1), ((1.0, False), 2), ((1.0, False, "thrice"), 3), ((1.0, False, None), 3)):
        error, out = checked(*args)
        assert error.get() is None and out == want
    assert "not positive" in checked(-1.0, True)[0].get()
    error, out = gradix.jit(checked, static_argnums=(1, 2))(jnp.float32(2), False, "thrice")
    assert error.get() is None and out == 6


def test_zeros_of_the_dtype_of_no_derivative():
    assert jnp.zeros((), gradix.dtypes.float0).dtype == gradix.dtypes.float0
    assert jnp.zeros((2,), gradix.dtypes.float0).shape == (2,)


def test_derivative_rules_are_given_through_custom_vmap():
    f = gradix.custom_batching.custom_vmap(gradix.custom_jvp(jnp.sin))
    f.def_vmap(lambda size, batched, x: (jnp.sin(x), batched[0]))
    f.defjvp(lambda xs, ts: (jnp.sin(xs[0]), 5 * ts[0]))
    assert gradix.grad(f)(1.0) == 5
    assert not hasattr(gradix.custom_batching.custom_vmap(jnp.sin), "defjvp")


def test_an_int_is_a_size_and_a_static_argument_of_a_jitted_function():
    def first(x, n, by=1):
        checkify.check(x[0] > 0, f"the first of {n} must be positive")
        return by * x[:n] / x[0]

    x = np.arange(1, 4, dtype=np.float32)
    wraps = [
        lambda f: f,
        lambda f: gradix.jit(f, static_argnums=1),
        lambda f: gradix.jit(f, static_argnames=("n", "by")),
    ]
    for wrap in wraps:
        checked = checkify.checkify(wrap(first), errors=checkify.user_checks | checkify.div_checks)
        for error, y in (checked(x, 2), checked(x, n=2), checked(x, 2, by=3)):
            assert error.get() is None and y.shape == (2,)
        error, y = checked(x - 1, 1)
        assert "the first of 1 must be positive" in error.get() and y.shape == (1,)
    error, _ = gradix.jit(checkify.checkify(first, errors=checkify.div_checks), static_argnums=1)(x - 1, 2)
    assert "division by zero" in error.get()
    error, y = checkify.checkify(lambda x, n: x / n, errors=checkify.div_checks)(x, 0)
    assert "division by zero" in error.get()
