"""Rules of users that push branches and loops forward, differentiated in reverse."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

PROGRAMS = {
    "cond": lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: x * x, x),
    "switch": lambda x: lax.switch((x.sum() > 0).astype("int32") + 1, [jnp.cos, jnp.sin, jnp.exp], x),
    "scan": lambda x: lax.scan(lambda c, s: (jnp.sin(c) * s, c * s), x, jnp.arange(3.0))[1].sum(0),
    "fixed fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x),
    "jit of cond": gradix.jit(lambda x: lax.cond(x.sum() > 0, lambda x: (x.sum(), x * x), lambda x: (x[0], x), x)[1]),
    "cond in scan": lambda x: lax.scan(lambda c, i: (lax.cond(i > 1, jnp.sin, jnp.exp, c), c), x, jnp.arange(3))[0],
}
PUSHED = {
    "jvp": lambda f: lambda xs, ts: gradix.jvp(f, xs, ts),
    "jvp of jit": lambda f: lambda xs, ts: gradix.jvp(gradix.jit(f), xs, ts),
    "jit of jvp": lambda f: gradix.jit(lambda xs, ts: gradix.jvp(f, xs, ts)),
    "jvp in vmap": lambda f: lambda xs, ts: mapped(f, xs[0][None], ts[0][None]),
}


def mapped(f, x, t):
    y, dy = gradix.vmap(lambda x, t: gradix.jvp(f, (x,), (t,)))(x, t)
    return y[0], dy[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("pushed", PUSHED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_of_a_rule_that_pushes_a_program_forward(name, pushed):
    f = PROGRAMS[name]
    g = gradix.custom_jvp(f)
    g.defjvp(PUSHED[pushed](f))
    x = jnp.array([0.4, 0.7])
    loss = lambda f: lambda x: (f(x) ** 2).sum()
    want = gradix.grad(loss(f))(x)
    for h in (gradix.grad(loss(g)), gradix.jit(gradix.grad(loss(g))), gradix.jit(gradix.grad(loss(gradix.jit(g))))):
        np.testing.assert_allclose(h(x), want, rtol=1e-5)
    twice = gradix.jit(gradix.jacrev(gradix.grad(loss(g))))(x)
    np.testing.assert_allclose(twice, gradix.jacfwd(gradix.grad(loss(f)))(x), rtol=1e-4, atol=1e-5)
