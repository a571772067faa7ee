"""Collectives of values that no vmap maps, within programs: the axis is in scope all the same."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


@gradix.custom_jvp
def total(x):
    return lax.psum(x, "i")


total.defjvp(lambda primals, tangents: (total(*primals), lax.psum(tangents[0], "i")))


@gradix.custom_vjp
def mean(x):
    return lax.pmean(x, "i")


mean.defvjp(lambda x: (mean(x), None), lambda _, ct: (ct,))

PROGRAMS = {
    "psum": (lambda x: lax.psum(x, "i"), [8.0] * 4),
    "pmean": (lambda x: lax.pmean(x, "i"), [2.0] * 4),
    "pmax": (lambda x: lax.pmax(x, "i"), [2.0] * 4),
    "axis_index": (lambda x: lax.axis_index("i"), range(4)),
    "axis_size": (lambda x: lax.axis_size("i"), [4] * 4),
    "all_gather": (lambda x: lax.all_gather(x, "i"), np.full((4, 4), 2.0)),
    "custom_jvp": (total, [8.0] * 4),
    "custom_vjp": (mean, [2.0] * 4),
    "inner jit": (lambda x: gradix.jit(lambda y: lax.psum(y, "i") + 1)(x), [9.0] * 4),
    "scan": (lambda x: lax.scan(lambda c, _: (lax.psum(c, "i"), None), x, None, 2)[0], [32.0] * 4),
    "cond": (lambda x: lax.cond(x > 1, lambda: lax.psum(x, "i"), lambda: x), [8.0] * 4),
}
WRAPPERS = {
    "plain": lambda f: f,
    "jit": gradix.jit,
    "checkpoint": gradix.checkpoint,
    "jit of jit": lambda f: gradix.jit(gradix.jit(f)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_collectives_of_unmapped_values(name, wrapper):
    f, want = PROGRAMS[name]
    f = WRAPPERS[wrapper](f)
    mapped = jnp.ones(4)
    for _ in range(2):  # the second call finds the trace of the first
        np.testing.assert_array_equal(gradix.vmap(lambda _: f(2.0), axis_name="i")(mapped), want)
        np.testing.assert_array_equal(gradix.vmap(f, in_axes=None, axis_size=4, axis_name="i")(2.0), want)
        np.testing.assert_array_equal(gradix.jit(gradix.vmap(lambda _: f(2.0), axis_name="i"))(mapped), want)
    with pytest.raises(NameError, match="unbound axis name"):
        f(2.0)
