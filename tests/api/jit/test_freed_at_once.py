"""What a jitted function captures, and its programs, are freed with the function, without the garbage collector."""

import gc
import weakref

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = jnp.ones(8, "float32")


def named(a):
    def add(x):
        return x + a

    return gradix.jit(add)


FUNCTIONS = {
    "lambda": lambda a: gradix.jit(lambda x: x + a),
    "function": named,
    "gradient": lambda a: gradix.jit(gradix.grad(lambda x: (x * a).sum())),
    "donated": lambda a: gradix.jit(lambda x: x * a, donate_argnums=0),
    "on a device": lambda a: gradix.jit(lambda x: x * a, device=gradix.devices()[0]),
    "open sizes": lambda a: gradix.jit(lambda x: x + a[0], symbolic="n"),
    "scan": lambda a: gradix.jit(lambda x: lax.scan(lambda c, _: (c + a, None), x, None, 3)[0]),
    "nested": lambda a: gradix.jit(lambda x: gradix.jit(lambda y: y * a)(x) + 1),
    "compiled by hand": lambda a: gradix.jit(lambda x: x + a).lower(X).compile(),
}


@pytest.mark.x32
@pytest.mark.parametrize(
    "given",
    [jnp.array, lambda x: gradix.device_put(x, gradix.devices()[0]), np.array],
    ids=["array", "committed", "NumPy's"],
)
@pytest.mark.parametrize("calls", [1, 20])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_captured_arrays(kind, calls, given):
    FUNCTIONS[kind](jnp.zeros(8))(given(np.ones(8, "float32")))  # loads what is loaded once
    gc.collect()
    gc.disable()
    try:
        a = jnp.arange(8.0) + 0
        alive, f = weakref.ref(a), FUNCTIONS[kind](a)
        for _ in range(calls):
            f(given(np.ones(8, "float32")))
        del a, f
        assert alive() is None
    finally:
        gc.enable()


def test_a_signature_that_was_taken_apart_runs_again():
    def double(x):
        return 2 * x

    f = gradix.jit(double)
    assert f(X)[0] == 2
    lowered = f.lower(X)
    (traced,) = f._cache.values()
    traced.take_apart()
    traced.take_apart()
    assert f(X)[0] == 2 and f.stats().traces == 1 and f.stats().compiles + f.stats().loads == 1
    del f, double
    gc.collect()
    assert lowered.compile()(X)[0] == 2
