"""Weak references to arrays live as long as the array, and no longer."""

import gc
import weakref

import numpy as np
import pytest

import gradix as gx
from gradix import jit, numpy as jnp, random

MADE = {
    "a computed array": lambda: jnp.arange(3) + 1,
    "a result of jit": lambda: jit(lambda x: x * 2)(jnp.arange(5.0)),
    "an array of a number": lambda: jnp.array(7),
    "asarray of a number": lambda: jnp.asarray(3.25),
    "asarray of a number, of a dtype": lambda: jnp.asarray(3, "float16"),
    "a scalar of a dtype": lambda: jnp.float32(2.5),
    "an array of NumPy": lambda: jnp.asarray(np.ones(4)),
    "an array put on a device": lambda: gx.device_put(np.ones(3)),
    "a number put on a device": lambda: gx.device_put(1.0),
    "a constant array": lambda: jnp.zeros((2, 2)),
    "a row": lambda: jnp.ones((4, 4))[1],
    "a key": lambda: random.key(5),
    "keys": lambda: random.split(random.key(0)),
    "a gradient": lambda: gx.grad(lambda x: (x**2).sum())(jnp.ones(3)),
    "a ref": lambda: gx.new_ref(jnp.ones(2)),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_dies_with_the_array(make):
    made = make()
    reference = weakref.ref(made)
    assert reference() is made
    del made
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    "use",
    [lambda x: jnp.sin(x) + x @ x, gx.grad(lambda x: (x**2).sum()), jit(lambda x: x + 1)],
    ids=["operations", "grad", "jit"],
)
def test_no_operation_keeps_what_it_was_given(use):
    gone, x = [], jnp.arange(3.0) * 2
    weakref.finalize(x, gone.append, True)
    out = use(x)
    del x
    gc.collect()
    assert gone and out is not None


def test_a_number_given_away_leaves_the_number():
    x = jnp.asarray(12.5)
    x.delete()
    assert jnp.asarray(12.5) == 12.5 and jnp.add(12.5, 0.0) == 12.5
