"""Functions given to loops and branches see what they captured as it is at each call."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

xs = jnp.arange(3.0)


def programs(read):
    """Calls of one function object, which adds what `read` gives."""

    def body(carry, x):
        return carry + read(), x

    def turn(carry):
        return carry[0] + 1, carry[1] + read()

    def more(x):
        return x + read()

    saved = gradix.checkpoint(more)
    return {
        "scan": lambda: lax.scan(body, 0.0, xs)[0] / 3,
        "while": lambda: lax.while_loop(lambda c: c[0] < 1, turn, (0, 0.0))[1],
        "fori": lambda: lax.fori_loop(0, 1, lambda i, x: more(x), 0.0),
        "cond": lambda: lax.cond(True, more, more, 0.0),
        "switch": lambda: lax.switch(1, [more, more], 0.0),
        "map": lambda: lax.map(more, jnp.zeros(1))[0],
        "checkpoint": lambda: saved(0.0),
        "jaxpr": lambda: gradix.core.eval_jaxpr(*(lambda c: (c.jaxpr, c.consts))(gradix.make_jaxpr(more)(0.0)), 0.0)[0],
        "grad": lambda: gradix.grad(lambda x: lax.scan(lambda c, _: (c * read(), None), x, None, length=1)[0])(1.0),
    }


@pytest.mark.parametrize("name", programs(lambda: 0.0))
def test_contents_that_changed(name):
    state = {"step": 0.0}
    run = programs(lambda: state["step"])[name]
    for step in (0.0, 1.0, 2.5):
        state["step"] = step
        np.testing.assert_allclose(run(), step)


@pytest.mark.parametrize("name", programs(lambda: 0.0))
def test_traced_values_of_two_programs(name):
    cell = [None]
    run = programs(lambda: cell[0])[name]

    def program(w):
        cell[0] = w
        return run()

    for w in (1.0, 2.0):
        np.testing.assert_allclose(gradix.jit(program)(w), w)
        np.testing.assert_allclose(gradix.vmap(program)(jnp.array([w, 3.0])), [w, 3.0])


WRAPS = {"eager": lambda f: f, "jit": gradix.jit, "vmap": gradix.vmap, "grad": gradix.value_and_grad}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", programs(lambda: 0.0))
def test_references_that_hold_one_array(name, wrap):
    def run(x):
        y = 2 * x
        one, other = gradix.new_ref(y), gradix.new_ref(y)
        return programs(lambda: one[...] + other[...] + y)[name]()

    x = jnp.ones(1) if wrap == "vmap" else 1.0
    for found, want in zip(gradix.tree.leaves(WRAPS[wrap](run)(x)), (6.0, 6.0)):
        np.testing.assert_allclose(found, want)
