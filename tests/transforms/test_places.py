"""Every staged equation knows the user's line it comes from, also after transformations."""

import gradix
import gradix.numpy as jnp


def lines(jaxpr) -> set:
    return {eqn.source.line for eqn in jaxpr.eqns}


def f(x):
    y = jnp.sin(x)  # first
    return jnp.sum(y * x)  # second


FIRST = f.__code__.co_firstlineno + 1


def test_equations_of_a_traced_function():
    assert [e.source.line for e in gradix.make_jaxpr(f)(jnp.ones(3)).eqns] == [FIRST, FIRST + 1, FIRST + 1]


def test_derivatives_keep_the_line_they_come_from():
    x = jnp.ones(3)
    assert lines(gradix.make_jaxpr(gradix.vmap(f))(jnp.ones((2, 3)))) == {FIRST, FIRST + 1}
    backward = gradix.make_jaxpr(gradix.grad(f))(x)
    cosines = [e for e in backward.eqns if e.primitive.name == "cos"]
    assert [e.source.line for e in cosines] == [FIRST]
    last = [e for e in backward.eqns if e.primitive.name == "mul"][-1]
    assert last.source.line in (FIRST, FIRST + 1)


def test_functions_traced_inside_keep_their_own_lines():
    def outer(x):
        return gradix.jit(f)(x) + 1.0

    (eqn,) = [e for e in gradix.make_jaxpr(gradix.grad(outer))(jnp.ones(3)).eqns if e.primitive.name == "jit"][:1]
    assert FIRST in lines(eqn.params["jaxpr"])
