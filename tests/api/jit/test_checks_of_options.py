"""The checks that options ask for, around every kind of signature of a jitted function: they combine with its options."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, random
from gradix._base import config
from gradix.errors import KeyReuseError

DEVICE = gradix.devices()[0]
OPTIONS = {
    "plain": {},
    "check": {"check": "index"},
    "donated": {"donate_argnums": 0},
    "on a device": {"device": DEVICE},
    "of open sizes": {"symbolic": "n"},
}


def given(x, name):
    return gradix.device_put(x, DEVICE) if name == "on a device" else x


@pytest.mark.parametrize("name", OPTIONS)
def test_nan_is_told(name):
    f = gradix.jit(lambda x: jnp.log(x) * 2, **OPTIONS[name])
    with config.Setting("jax_debug_nans", "")(True):
        for _ in range(5):  # code is generated for a frequent signature
            np.testing.assert_allclose(f(given(jnp.ones(3), name)), np.zeros(3))
        with pytest.raises(FloatingPointError, match="nan"):
            f(given(-jnp.ones(3), name))
    assert np.isnan(f(given(-jnp.ones(3), name))).all()


@pytest.mark.parametrize("name", [n for n in OPTIONS if n != "of open sizes"])
def test_a_key_that_is_used_twice_is_told(name):
    f = gradix.jit(lambda x, key: x + random.normal(key, x.shape), **OPTIONS[name])
    with config.Setting("jax_debug_key_reuse", "")(True):
        key = random.key(0)
        f(given(jnp.ones(3), name), key)
        with pytest.raises(KeyReuseError):
            f(given(jnp.ones(3), name), key)
        f(given(jnp.ones(3), name), random.key(1))


def test_both_at_once():
    f = gradix.jit(lambda x, key: jnp.log(x) + random.normal(key, x.shape))
    with config.Setting("jax_debug_key_reuse", "")(True), config.Setting("jax_debug_nans", "")(True):
        f(jnp.ones(3), random.key(0))
        with pytest.raises(FloatingPointError):
            f(-jnp.ones(3), random.key(1))
        key = random.key(2)
        f(jnp.ones(3), key)
        with pytest.raises(KeyReuseError):
            f(jnp.ones(3), key)


# -- indices under vmap ---------------------------------------------------------------------------------


X, ROWS = jnp.arange(3.0), jnp.arange(12.0).reshape(4, 3)
MAPPED = {
    "index": (lambda i: X[i], [0, 9], "index 9 .* in example 1 of a vmap"),
    "two indices": (lambda i: ROWS[i, 0], [0, 3, 4], "index 4 .* axis 0 .* in example 2 of a vmap"),
    "slice": (lambda i: lax.dynamic_slice(X, (i,), (2,)), [1, 2], "index 2 .* in example 1 of a vmap"),
    "update": (lambda i: lax.dynamic_update_slice(X, jnp.ones(2), (i,)), [0, 2], "index 2 .* in example 1"),
    "in a loop": (
        lambda i: lax.scan(lambda c, j: (c, X[i + j]), 0.0, jnp.arange(2))[1],
        [0, 2],
        "index 3 .* in example 1 of a vmap",
    ),
    "in a derivative": (lambda i: gradix.grad(lambda x: x[i] ** 2)(X), [0, 9], "index 9 .* in example 1 of a vmap"),
    "of rows of their own": (lambda i: ROWS.at[i, 1].set(0.0), [0, 4], "index 4"),
}


@pytest.mark.parametrize("name", MAPPED)
def test_an_index_out_of_bounds_under_vmap_is_found(name):
    f, numbers, words = MAPPED[name]
    mapped = gradix.vmap(f)
    with pytest.raises(IndexError, match=words):
        gradix.jit(mapped, check="index")(jnp.array(numbers))
    inside = jnp.zeros_like(jnp.array(numbers))
    for a, b in zip(gradix.tree.leaves(gradix.jit(mapped, check="index")(inside)), gradix.tree.leaves(mapped(inside))):
        np.testing.assert_array_equal(a, b)


def test_the_example_of_nested_maps_is_named():
    f = gradix.vmap(gradix.vmap(lambda i: X[i]))
    with pytest.raises(IndexError, match="index 5 .* in example 1, 0 of a vmap"):
        gradix.jit(f, check="index")(jnp.array([[0, 2], [5, 1]]))


def test_a_mode_that_clips_is_no_error_and_the_text_of_programs_is_as_before():
    f = gradix.vmap(lambda i: X.at[jnp.stack([i, i])].get(mode="clip"))
    np.testing.assert_array_equal(gradix.jit(f, check="index")(jnp.array([0, 9])), [[0, 0], [2, 2]])
    for index in (lambda i: i, lambda i: (..., i)):
        g = gradix.jit(lambda i: X.at[index(i)].get(mode="clip"), check="index")  # noqa: B023
        assert [float(g(i)) for i in (1, 9, -1, -9)] == [1.0, 2.0, 2.0, 0.0]
    rows = gradix.jit(lambda i: X[:, None].at[i, 0].get(mode="clip"), check="index")
    assert float(rows(9)) == 2.0
    taken = gradix.jit(lambda i: jnp.take(X, i, mode="clip"), check="index")
    assert float(taken(9)) == 2.0
    with pytest.raises(IndexError, match="index 9"):
        gradix.jit(lambda i: X.at[i].get(), check="index")(9)
    assert "mode=GatherScatterMode.CLIP\n" in str(gradix.make_jaxpr(gradix.vmap(lambda i: X[i]))(jnp.array([0, 9])))


def test_an_option_asks_for_checks_in_all_functions():
    with config.Setting("gradix_check", "")("index,nan"):
        f, own = gradix.jit(lambda i: X[i]), gradix.jit(lambda i: X[i], check="user")
        with pytest.raises(IndexError, match="index 7"):
            f(7)
        assert float(own(7)) == 2.0
        with pytest.raises(FloatingPointError, match="log"):
            gradix.jit(jnp.log)(-1.0)
    with config.Setting("gradix_check", "")("nam"), pytest.raises(ValueError, match="check must name kinds of errors"):
        gradix.jit(jnp.log)
    assert float(gradix.jit(lambda i: X[i])(7)) == 2.0
