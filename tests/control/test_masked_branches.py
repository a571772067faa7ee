"""Branches taken per example: on inputs that some example took, and not at all if none did."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


def collatz(n):
    """Ends for positive numbers only."""
    after = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    return lax.while_loop(lambda s: s[0] != 1, after, (n, 0))[1]


steps = lambda n: lax.cond(n > 0, collatz, lambda n: -1, n)
WEIGHTS = jnp.arange(9.0).reshape(3, 3) / 9
ROWS = jnp.array([[1.0, 2, 3], [-1, -2, -30], [0.5, 1, 1]])
costly = lambda x, w=WEIGHTS: lax.cond(x.sum() > 0, lambda x: jnp.log(w @ x + 1).sum(), lambda x: (2 * x).sum(), x)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit])
@pytest.mark.parametrize("numbers, want", [([6, 0, 7], [8, -1, 16]), ([0, -3], [-1, -1]), ([1], [0]), ([], [])])
def test_loops_of_examples_elsewhere_end(wrap, numbers, want):
    got = wrap(gradix.vmap(steps))(jnp.array(numbers, int))
    np.testing.assert_array_equal(got, want)


def test_two_mapped_axes():
    got = gradix.vmap(gradix.vmap(steps))(jnp.array([[6, 0, 7], [0, 0, 0], [1, 2, 3]]))
    np.testing.assert_array_equal(got, [[8, -1, 16], [-1, -1, -1], [0, 1, 7]])


def test_a_branch_nobody_takes_is_not_run():
    """A loop that never ends, in a branch of any transformation."""
    forever = lambda x: lax.while_loop(lambda s: True, lambda s: s + 1, x)
    f = lambda x: lax.switch(jnp.where(x > 9, 1, 0), [lambda x: 2 * x, forever], x)
    np.testing.assert_array_equal(gradix.vmap(f)(jnp.arange(3.0)), [0, 2, 4])
    np.testing.assert_array_equal(
        gradix.jit(gradix.vmap(gradix.vmap(f)))(jnp.arange(4.0).reshape(2, 2)), [[0, 2], [4, 6]]
    )
    y, t = gradix.vmap(lambda x: gradix.jvp(f, (x,), (1.0,)))(jnp.arange(3.0))
    np.testing.assert_array_equal([y, t], [[0, 2, 4], [2, 2, 2]])


def test_values_and_derivatives_are_those_of_single_examples():
    np.testing.assert_allclose(gradix.vmap(costly)(ROWS), [costly(x) for x in ROWS], rtol=1e-6)
    slopes = gradix.vmap(gradix.grad(costly))(ROWS)
    np.testing.assert_allclose(slopes, [gradix.grad(costly)(x) for x in ROWS], rtol=1e-6)
    total = lambda w: gradix.vmap(lambda x: costly(x, w))(ROWS).sum()
    single = sum([gradix.grad(lambda w: costly(x, w))(WEIGHTS) for x in ROWS])
    np.testing.assert_allclose(gradix.grad(total)(WEIGHTS), single, rtol=1e-5)
    np.testing.assert_allclose(gradix.jit(gradix.grad(total))(WEIGHTS), single, rtol=1e-5)


def test_operands_of_any_dtype():
    keys = gradix.random.split(gradix.random.key(0), 3)
    spun = lambda k: lax.fori_loop(0, 3, lambda i, k: gradix.random.split(k)[0], k)
    f = lambda k, b: lax.cond(b, spun, lambda k: k, k)
    mask = jnp.array([True, False, True])
    for i, k in enumerate(gradix.vmap(f)(keys, mask)):
        assert (k == f(keys[i], mask[i])).all()


def test_cheap_branches_are_selected_only():
    text = str(gradix.make_jaxpr(gradix.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)))(jnp.ones(3)))
    assert "cond[" not in text and "select_n" in text
    assert "cond[" in str(gradix.make_jaxpr(gradix.vmap(costly))(ROWS))
