"""Functions of jit, and what transforms them, many deep inside of each other."""

import sys

import pytest

import gradix
import gradix.numpy as jnp

DEPTH = 200


def nested(depth):
    function = jnp.sin
    for _ in range(depth):
        function = gradix.jit(lambda x, inner=function: inner(x) * 1.01)
    return function


TRANSFORMED = {
    "called": lambda f: f,
    "grad": gradix.grad,
    "grad in jit": lambda f: gradix.jit(gradix.grad(f)),
    "grad of grad": lambda f: gradix.grad(gradix.grad(f)),
    "vmap": lambda f: lambda x: gradix.vmap(f)(x[None])[0],
    "jvp": lambda f: lambda x: gradix.jvp(f, (x,), (x,))[1],
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_many_functions_inside_of_each_other(name):
    limit, x = sys.getrecursionlimit(), jnp.float32(0.5)
    wanted = TRANSFORMED[name](lambda x: jnp.sin(x) * 1.01**DEPTH)(x)
    assert abs(float(TRANSFORMED[name](nested(DEPTH))(x)) / float(wanted) - 1) < 1e-4
    assert sys.getrecursionlimit() == limit


def test_a_function_that_calls_itself_forever_is_told():
    @gradix.jit
    def factorial(n):
        return jnp.where(n <= 1, 1, n * factorial(n - 1))

    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError, match="factorial is traced inside of .* lax.while_loop"):
        factorial(3)
    assert sys.getrecursionlimit() == limit


def test_calls_inside_of_calls_end_in_place():
    text = nested(DEPTH).lower(jnp.float32(1.0)).as_text()
    assert text.count("func.func private") == 60
