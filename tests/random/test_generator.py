"""Generators with a state: explicit in every transformation, and never the same numbers twice."""
import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp, random
from gradix.experimental import random as stateful


def _distinct(values) -> bool:
    flat = np.asarray(values).ravel()
    return len(np.unique(flat)) == flat.size


TRANSFORMED = {
    "eager": lambda rng: [rng.uniform() for _ in range(4)],
    "jit": lambda rng: gradix.jit(lambda: (rng.uniform(), rng.uniform()))() + (gradix.jit(lambda: rng.uniform((2,)))(),),
    "scan": lambda rng: lax.scan(lambda c, _: (c, rng.uniform((2,))), 0, None, length=4)[1],
    "fori": lambda rng: lax.fori_loop(0, 5, lambda i, x: x.at[i].set(rng.uniform()), jnp.zeros(5)),
    "vmap": lambda rng: gradix.vmap(lambda i: rng.uniform() + 0 * i)(jnp.arange(8.0)),
    "vmap twice": lambda rng: gradix.vmap(lambda i: gradix.vmap(lambda j: rng.uniform() + 0 * j)(jnp.arange(3.0)))(jnp.arange(4)),
    "two draws of each example": lambda rng: gradix.vmap(lambda i: (rng.uniform() + 0 * i, rng.uniform() + 0 * i))(jnp.arange(4.0)),
    "jit in vmap": lambda rng: gradix.vmap(lambda i: gradix.jit(lambda: rng.uniform((2,)))())(jnp.arange(4)),
    "vmap in jit": lambda rng: gradix.jit(gradix.vmap(lambda i: rng.uniform() + 0 * i))(jnp.arange(4.0)),
    "scan in vmap": lambda rng: gradix.vmap(lambda i: lax.scan(lambda c, _: (c, rng.uniform()), 0, None, length=3)[1])(jnp.arange(4)),
    "branch in vmap": lambda rng: gradix.vmap(
        lambda i: lax.cond(i > 1, lambda: rng.uniform(), lambda: -rng.uniform()) + rng.uniform())(jnp.arange(4)),
    "chunks": lambda rng: gradix.vmap(lambda i: rng.uniform() + 0 * i, chunk_size=2)(jnp.arange(8.0)),
    "grad": lambda rng: [gradix.grad(gradix.jit(lambda x: x * rng.uniform()))(1.0) for _ in range(3)],
    "vmap of grad": lambda rng: gradix.vmap(gradix.grad(lambda x: x * rng.uniform()))(jnp.arange(3.0)),
    "argument": lambda rng: [gradix.jit(lambda g: g.uniform())(rng), rng.uniform(), gradix.jit(lambda g: g.uniform())(rng)],
    "argument mapped over": lambda rng: gradix.jit(
        lambda g: gradix.vmap(lambda i: g.uniform() + 0 * i)(jnp.arange(4.0)))(rng),
    "split": lambda rng: gradix.vmap(lambda g: (g.uniform(), g.uniform()))(rng.split(3)),
    "spawned": lambda rng: [g.uniform() for g in (rng, *rng.spawn(3))],
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_no_two_draws_are_the_same(name):
    first = random.Generator(0)
    drawn = np.concatenate([np.ravel(x) for x in gradix.tree.leaves(TRANSFORMED[name](first))])
    again = np.concatenate([np.ravel(x) for x in gradix.tree.leaves(TRANSFORMED[name](random.Generator(0)))])
    np.testing.assert_array_equal(drawn, again)
    assert _distinct([*drawn.tolist(), float(first.uniform())]), drawn


def test_gradient_of_a_recomputed_draw_uses_the_numbers_of_the_value():
    rng = random.Generator(3)
    value, slope = gradix.value_and_grad(gradix.checkpoint(lambda x: jnp.sin(x * rng.normal())))(0.0)
    z = random.Generator(3).normal()
    assert float(value) == 0.0 and np.isclose(slope, z)


def test_methods_are_the_samplers():
    rng, same = random.Generator(5), random.Generator(5)
    np.testing.assert_array_equal(rng.gamma(2.0, (3,)), random.gamma(same.key(), 2.0, (3,)))
    np.testing.assert_array_equal(rng.permutation(jnp.arange(5)), random.permutation(same.key(), jnp.arange(5)))
    assert rng.normal.__doc__ and "key" not in str(__import__("inspect").signature(random.Generator.normal))
    samplers = {n for n in dir(random) if callable(getattr(random, n)) and not n.startswith("_")}
    about_keys = {"Generator", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"}
    assert samplers - about_keys <= set(dir(random.Generator))


def test_a_split_generator_draws_only_under_vmap():
    with pytest.raises(ValueError, match="vmap"):
        random.Generator(0).split(2).uniform()


@pytest.mark.parity
def test_stateful_generator_draws_what_jax_draws():
    jax = pytest.importorskip("jax")
    from jax.experimental import random as theirs
    a, b = stateful.stateful_rng(7), theirs.stateful_rng(7)
    for draw in (lambda r: r.uniform(), lambda r: r.normal(1.0, 2.0, (3,)), lambda r: r.integers(0, 10, (4,)),
                 lambda r: r.random(2), lambda r: r.uniform(np.zeros(2, "f4"), 3.0), lambda r: r.spawn(2)[1].uniform()):
        np.testing.assert_allclose(draw(a), draw(b), rtol=1e-6)
    np.testing.assert_array_equal(random.key_data(a.key((2,))), jax.random.key_data(b.key((2,))))
    mapped = gradix.vmap(lambda r: r.uniform())(a.split(3)), jax.vmap(lambda r: r.uniform())(b.split(3))
    np.testing.assert_array_equal(*mapped)


def test_a_stateful_generator_is_made_of_key_and_count():
    rng = stateful.stateful_rng(3)
    rng.random()
    copy = stateful.StatefulPRNG(rng._base_key, rng._counter)
    assert float(copy.random()) == float(rng.random())
