"""Arguments of checked functions that are no arrays."""

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
