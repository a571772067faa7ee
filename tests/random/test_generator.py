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
    "jit": lambda rng: (
        gradix.jit(lambda: (rng.uniform(), rng.uniform()))() + (gradix.jit(lambda: rng.uniform((2,)))(),)
    ),
    "scan": lambda rng: lax.scan(lambda c, _: (c, rng.uniform((2,))), 0, None, length=4)[1],
    "fori": lambda rng: lax.fori_loop(0, 5, lambda i, x: x.at[i].set(rng.uniform()), jnp.zeros(5)),
    "vmap": lambda rng: gradix.vmap(lambda i: rng.uniform() + 0 * i)(jnp.arange(8.0)),
    "vmap twice": lambda rng: gradix.vmap(lambda i: gradix.vmap(lambda j: rng.uniform() + 0 * j)(jnp.arange(3.0)))(
        jnp.arange(4)
    ),
    "two draws of each example": lambda rng: gradix.vmap(lambda i: (rng.uniform() + 0 * i, rng.uniform() + 0 * i))(
        jnp.arange(4.0)
    ),
    "jit in vmap": lambda rng: gradix.vmap(lambda i: gradix.jit(lambda: rng.uniform((2,)))())(jnp.arange(4)),
    "vmap in jit": lambda rng: gradix.jit(gradix.vmap(lambda i: rng.uniform() + 0 * i))(jnp.arange(4.0)),
    "scan in vmap": lambda rng: gradix.vmap(lambda i: lax.scan(lambda c, _: (c, rng.uniform()), 0, None, length=3)[1])(
        jnp.arange(4)
    ),
    "branch in vmap": lambda rng: gradix.vmap(
        lambda i: lax.cond(i > 1, lambda: rng.uniform(), lambda: -rng.uniform()) + rng.uniform()
    )(jnp.arange(4)),
    "chunks": lambda rng: gradix.vmap(lambda i: rng.uniform() + 0 * i, chunk_size=2)(jnp.arange(8.0)),
    "grad": lambda rng: [gradix.grad(gradix.jit(lambda x: x * rng.uniform()))(1.0) for _ in range(3)],
    "vmap of grad": lambda rng: gradix.vmap(gradix.grad(lambda x: x * rng.uniform()))(jnp.arange(3.0)),
    "argument": lambda rng: [
        gradix.jit(lambda g: g.uniform())(rng),
        rng.uniform(),
        gradix.jit(lambda g: g.uniform())(rng),
    ],
    "argument mapped over": lambda rng: gradix.jit(
        lambda g: gradix.vmap(lambda i: g.uniform() + 0 * i)(jnp.arange(4.0))
    )(rng),
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
    about_keys = {
        "Generator",
        "PRNGKey",
        "clone",
        "fold_in",
        "key",
        "key_data",
        "key_dtype",
        "key_impl",
        "split",
        "wrap_key_data",
    }
    assert samplers - about_keys <= set(dir(random.Generator))


def test_a_split_generator_draws_only_under_vmap():
    with pytest.raises(ValueError, match="vmap"):
        random.Generator(0).split(2).uniform()


@pytest.mark.parity
def test_stateful_generator_draws_what_jax_draws():
    jax = pytest.importorskip("jax")
    from jax.experimental import random as theirs

    a, b = stateful.stateful_rng(7), theirs.stateful_rng(7)
    for draw in (
        lambda r: r.uniform(),
        lambda r: r.normal(1.0, 2.0, (3,)),
        lambda r: r.integers(0, 10, (4,)),
        lambda r: r.random(2),
        lambda r: r.uniform(np.zeros(2, "f4"), 3.0),
        lambda r: r.spawn(2)[1].uniform(),
    ):
        np.testing.assert_allclose(draw(a), draw(b), rtol=1e-6)
    np.testing.assert_array_equal(random.key_data(a.key((2,))), jax.random.key_data(b.key((2,))))
    mapped = gradix.vmap(lambda r: r.uniform())(a.split(3)), jax.vmap(lambda r: r.uniform())(b.split(3))
    np.testing.assert_array_equal(*mapped)


def test_a_stateful_generator_is_made_of_key_and_count():
    rng = stateful.stateful_rng(3)
    rng.random()
    copy = stateful.StatefulPRNG(rng._base_key, rng._counter)
    assert float(copy.random()) == float(rng.random())


def _with_jvp_rule(f):
    ruled = gradix.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return ruled


def _with_vjp_rule(f):
    ruled = gradix.custom_vjp(f)
    ruled.defvjp(lambda x: (f(x), None), lambda res, ct: (ct,))
    return ruled


def _all_times(f):
    """Room for what `f` draws in two turns."""
    drawn = gradix.eval_shape(lambda: f(random.Generator(0)))
    return gradix.tree.map(lambda v: jnp.zeros((2, *v.shape)), drawn)


def _set(rows, i, values):
    return gradix.tree.map(lambda a, v: a.at[i].set(v), rows, values)


def _scaled(f, r):
    return lambda x: gradix.tree.map(lambda v: v * x, f(r))


# Ways to run `f`, a function of a generator that returns what it draws.
WAYS = {
    "jit": lambda f: lambda r: gradix.jit(lambda: f(r))(),
    "jit, as argument": lambda f: gradix.jit(f),
    "scan": lambda f: lambda r: lax.scan(lambda c, _: (c, f(r)), 0, None, length=2)[1],
    "map": lambda f: lambda r: lax.map(lambda i: f(r), jnp.arange(2)),
    "fori_loop": lambda f: lambda r: lax.fori_loop(0, 2, lambda i, rows: _set(rows, i, f(r)), _all_times(f)),
    "while_loop": lambda f: (
        lambda r: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, _set(s[1], s[0], f(r))), (0, _all_times(f)))[
            1
        ]
    ),
    "cond": lambda f: lambda r: lax.cond(jnp.array(True), lambda: f(r), lambda: f(r)),
    "switch": lambda f: lambda r: lax.switch(jnp.array(1), [lambda: f(r)] * 3),
    "vmap": lambda f: lambda r: gradix.vmap(lambda i: gradix.tree.map(lambda v: v + 0 * i, f(r)))(jnp.arange(2.0)),
    "vmap of split": lambda f: lambda r: gradix.vmap(f)(r.split(2)),
    "grad": lambda f: lambda r: gradix.value_and_grad(lambda x: (x, f(r)), has_aux=True)(1.0)[0][1],
    "vjp": lambda f: lambda r: gradix.vjp(_scaled(f, r), 1.0)[0],
    "jvp": lambda f: lambda r: gradix.jvp(_scaled(f, r), (1.0,), (1.0,))[1],
    "linearize": lambda f: lambda r: gradix.linearize(_scaled(f, r), 1.0)[0],
    "checkpoint": lambda f: lambda r: gradix.checkpoint(_scaled(f, r))(1.0),
    "custom_vjp": lambda f: lambda r: _with_vjp_rule(lambda x: f(r))(1.0),
    "custom_jvp": lambda f: lambda r: _with_jvp_rule(lambda x: f(r))(1.0),
    "twice": lambda f: lambda r: (f(r), f(r)),
}
PAIRS = [(outer, inner) for outer in WAYS for inner in WAYS]
QUICK = [pair for i, pair in enumerate(PAIRS) if i % 9 == 0 or "custom_vjp" in pair and i % 3 == 0]


@pytest.mark.parametrize("outer,inner", [pytest.param(*p, marks=[pytest.mark.slow] * (p not in QUICK)) for p in PAIRS])
def test_compositions_never_draw_a_number_again(outer, inner):
    drawn = []
    for _ in range(2):
        rng = random.Generator(0)
        f = WAYS[outer](WAYS[inner](lambda r: r.uniform()))
        drawn.append(np.concatenate([np.ravel(v) for v in gradix.tree.leaves([f(rng), f(rng), rng.uniform()])]))
    np.testing.assert_array_equal(*drawn)
    assert _distinct(drawn[0]), drawn[0]


class Stop(Exception):
    pass


@pytest.mark.parametrize("way", WAYS)
def test_an_error_leaves_no_traced_value_behind(way):
    def stops(r):
        if state[0]:
            r.uniform()
            raise Stop
        return r.uniform()

    rng, state = random.Generator(0), [False]
    drawn = [rng.uniform()]
    for _ in range(3):
        state[0] = False
        f = WAYS[way](stops)
        if way not in ("fori_loop", "while_loop"):  # which ask for the shapes first
            state[0] = True
            with pytest.raises(Stop):
                f(rng)
            state[0] = False
        drawn += [rng.uniform(), gradix.jit(rng.uniform)(), *gradix.tree.leaves(WAYS[way](stops)(rng))]
    assert _distinct(np.concatenate([np.ravel(v) for v in drawn]))


@pytest.mark.parametrize("around", [lambda f: f, gradix.jit, gradix.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_a_rule_that_draws_is_differentiated_by_its_rule(around):
    rng, same = random.Generator(0), random.Generator(0)

    @gradix.custom_vjp
    def noisy(x):
        return x * rng.uniform()

    def fwd(x):
        z = rng.uniform()
        return x * z, z

    noisy.defvjp(fwd, lambda z, ct: (100 * z * ct,))
    value, slope = gradix.value_and_grad(around(noisy))(2.0)
    z = same.uniform()
    np.testing.assert_allclose([value, slope], [2 * z, 100 * z], rtol=1e-6)
    assert float(rng.uniform()) != float(z)


def test_a_function_over_devices_takes_keys():
    rng = random.Generator(0)
    with pytest.raises(NotImplementedError, match="one for each device"):
        gradix.pmap(lambda x: x + rng.uniform())(jnp.zeros(1))
    assert gradix.pmap(random.uniform)(rng.key((1,))).shape == (1,)
    assert _distinct([rng.uniform(), rng.uniform()])


@pytest.mark.parametrize("make", [random.Generator, stateful.stateful_rng])
def test_a_generator_without_a_seed_is_not_made_in_a_transformation(make):
    assert 0 <= make().uniform() < 1
    for f in (
        lambda: gradix.jit(lambda: make().uniform())(),
        lambda: gradix.grad(lambda x: x * make().uniform())(1.0),
        lambda: gradix.vmap(lambda x: x * make().uniform())(jnp.ones(2)),
    ):
        with pytest.raises(TypeError, match="needs a seed"):
            f()
    assert 0 <= gradix.jit(lambda seed: make(seed).uniform())(3) < 1


def test_what_a_stateful_generator_is_made_of():
    count = gradix.new_ref(2)
    made = stateful.StatefulPRNG(random.key(3), count)
    other = stateful.stateful_rng(3)
    other.random(), other.random()
    assert made.random() == other.random() and isinstance(made._counter, gradix.Ref) and made._counter[...] == 3
    for args in ((random.key(0), 0), (random.PRNGKey(0), count), (random.key(0), gradix.new_ref(0.5))):
        with pytest.raises(ValueError, match="must be"):
            stateful.StatefulPRNG(*args)
