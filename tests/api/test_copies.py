"""Functions that promise a copy: it has memory of its own under every transformation, also when the original is donated."""

import copy

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

COPIES = {
    "copy": jnp.copy,
    "array": jnp.array,
    "array, copy": lambda x: jnp.array(x, copy=True),
    "asarray, copy": lambda x: jnp.asarray(x, copy=True),
    "astype, copy": lambda x: jnp.astype(x, x.dtype, copy=True),
    "reshape, copy": lambda x: jnp.reshape(x, x.shape, copy=True),
    "from_dlpack, copy": lambda x: jnp.from_dlpack(x, copy=True),
    "the method copy": lambda x: x.copy(),
    "the method astype": lambda x: x.astype(x.dtype, copy=True),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
}
WAYS = {
    "eager": lambda f: f,
    "jit": gradix.jit,
    "vmap": gradix.vmap,
    "jit of vmap": lambda f: gradix.jit(gradix.vmap(f)),
    "primal of jvp": lambda f: lambda x: gradix.jvp(f, (x,), (x,))[0],
    "tangent of jvp": lambda f: lambda x: gradix.jvp(f, (jnp.ones_like(x),), (x,))[1],
    "vjp": lambda f: lambda x: gradix.vjp(f, x)[0],
    "linearize": lambda f: lambda x: gradix.linearize(f, x)[0],
    "checkpoint": gradix.checkpoint,
}
# copy.copy of a traced value, which is no array with memory, is the value.
TRACED = ("eager", "jit", "jit of vmap")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_outlives_its_donated_original(name, way):
    if name.startswith("copy.") and way not in TRACED:
        return
    spent = gradix.jit(lambda x: x * 2, donate_argnums=0)
    for n in (3, 40_000):
        x = jnp.arange(float(n)) + 1
        y = WAYS[way](COPIES[name])(x)
        assert y is not x
        spent(x)
        assert x.is_deleted()
        np.testing.assert_array_equal(y, np.arange(1, n + 1))


def test_copies_are_equations_that_derivatives_and_maps_keep():
    assert str(gradix.make_jaxpr(jnp.copy)(1.0)).count("copy") == 1
    assert gradix.grad(lambda x: jnp.sum(jnp.array(x) ** 2))(jnp.ones(2)).tolist() == [2, 2]
    assert gradix.vmap(gradix.grad(lambda x: jnp.copy(x) ** 2))(jnp.arange(3.0)).tolist() == [0, 2, 4]
