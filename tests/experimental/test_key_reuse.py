"""What the checker of key reuse finds, and what it lets pass, through each transformation."""

import pytest

import gradix
from gradix import lax, numpy as jnp, random
from gradix.experimental.key_reuse import KeyReuseError, check_key_reuse

GOOD = {
    "branches": lambda k: lax.cond(True, lambda: random.uniform(k), lambda: random.normal(k)),
    "split": lambda k: [random.normal(q) for q in random.split(k)],
    "rows of a scan": lambda k: lax.scan(lambda c, q: (c, random.uniform(q)), 0, random.split(k, 4)),
    "carry of a scan": lambda k: lax.scan(
        lambda c, _: (lambda a, b: (a, random.uniform(b)))(*random.split(c)), k, None, length=4
    ),
    "clone": lambda k: random.uniform(k) + random.uniform(random.clone(k)),
    "fold_in": lambda k: random.uniform(random.fold_in(k, 0)) + random.uniform(random.fold_in(k, 1)),
    "fold_in of a loop": lambda k: lax.fori_loop(0, 3, lambda i, a: a + random.uniform(random.fold_in(k, i)), 0.0),
    "a key taken in a loop": lambda k: (lambda q: lax.fori_loop(0, 3, lambda i, a: a + random.uniform(q[i]), 0.0))(
        random.split(k, 3)
    ),
    "vmap": lambda k: gradix.vmap(random.uniform)(random.split(k, 3)),
    "indices": lambda k: (lambda q: random.uniform(q[0]) + random.uniform(q[1]))(random.split(k)),
    "gradient": lambda k: gradix.grad(lambda x: x * random.uniform(k))(1.0),
    "recomputation": lambda k: gradix.grad(gradix.checkpoint(lambda x: jnp.sin(x * random.uniform(k))))(1.0),
}
BAD = {
    "twice": lambda k: random.uniform(k) + random.uniform(k),
    "jit and then": lambda k: gradix.jit(random.uniform)(k) + random.uniform(k),
    "inside jit": lambda k: gradix.jit(lambda k: random.uniform(k) + random.normal(k))(k),
    "branch and then": lambda k: lax.cond(True, lambda: random.uniform(k), lambda: 0.0) + random.normal(k),
    "constant of a scan": lambda k: lax.scan(lambda c, _: (c, random.uniform(k)), 0, None, length=2),
    "carry of a scan": lambda k: lax.scan(lambda c, _: (c, random.uniform(c)), k, None, length=4),
    "while": lambda k: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + random.uniform(s[1]), s[1]), (0.0, k)),
    "fori": lambda k: lax.fori_loop(0, 3, lambda i, a: a + random.uniform(k), 0.0),
    "vmap twice": lambda k: (lambda q: gradix.vmap(random.uniform)(q) + gradix.vmap(random.normal)(q))(
        random.split(k, 3)
    ),
    "shared by vmap": lambda k: gradix.vmap(lambda x: random.uniform(k) + x)(jnp.arange(3.0)) + random.uniform(k),
    "split": lambda k: (random.split(k), random.split(k)),
    "one index": lambda k: (lambda q: random.uniform(q[0]) + random.uniform(q[0]))(random.split(k)),
    "a choice": lambda k: (lambda a, b: random.uniform(jnp.where(True, a, b)) + random.uniform(a))(*random.split(k)),
    "written": lambda k: (lambda q: random.uniform(q[0]) + random.uniform(lax.dynamic_update_slice(q, q[:1], (1,))[1]))(
        random.split(k)
    ),
    "gradient": lambda k: gradix.grad(lambda x: x * random.uniform(k) + random.uniform(k))(1.0),
}


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found(name):
    check_key_reuse(GOOD[name], random.key(0))


@pytest.mark.parametrize("name", BAD)
def test_second_use_is_found_and_both_are_named(name):
    with pytest.raises(KeyReuseError) as e:
        check_key_reuse(BAD[name], random.key(0))
    assert "first:   by" in str(e.value) and "again:   by" in str(e.value) and str(e.value).count(".py:") == 2


@pytest.mark.parametrize("name", BAD)
def test_the_mode_finds_it_too(name):
    if name == "written":
        pytest.skip("an array written to eagerly holds new keys")
    with gradix.debug_key_reuse(True), pytest.raises(KeyReuseError):
        BAD[name](random.key(1))


ARGUMENTS = {
    "ball": (3,),
    "beta": (2.0, 2.0),
    "binomial": (5.0, 0.5),
    "categorical": (jnp.zeros(3),),
    "chisquare": (2.0,),
    "choice": (5,),
    "dirichlet": (jnp.ones(3),),
    "double_sided_maxwell": (0.0, 1.0),
    "f": (2.0, 3.0),
    "gamma": (2.0,),
    "generalized_normal": (2.0,),
    "geometric": (0.5,),
    "loggamma": (2.0,),
    "multinomial": (5, jnp.ones(3) / 3),
    "multivariate_normal": (jnp.zeros(2), jnp.eye(2)),
    "orthogonal": (2,),
    "pareto": (2.0,),
    "permutation": (5,),
    "poisson": (2.0,),
    "randint": ((), 0, 5),
    "rayleigh": (2.0,),
    "t": (3.0,),
    "triangular": (0.0, 0.5, 1.0),
    "truncated_normal": (-1.0, 1.0),
    "wald": (2.0,),
    "weibull_min": (1.0, 2.0),
    "split": (),
}
SAMPLERS = sorted(
    n for n in (set(dir(random.Generator)) - {"key", "spawn"}) & set(dir(random)) if not n.startswith("_")
)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_uses_its_key_once_however_often_it_is_called(name, monkeypatch):
    """Eagerly, compiled because it is called often, and in a program; a second use is found each time."""
    monkeypatch.setattr("gradix.random.draws.COMPILE_AFTER", 2)
    args = ARGUMENTS.get(name, ())
    with gradix.debug_key_reuse(True):
        for seed in range(4):
            key = random.key(seed)
            getattr(random, name)(key, *args)
            with pytest.raises(KeyReuseError):
                getattr(random, name)(key, *args)
    check_key_reuse(lambda k: getattr(random, name)(k, *args), random.key(0))
    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda k: [getattr(random, name)(k, *args) for _ in range(2)], random.key(0))


def test_a_large_draw_uses_its_key_once():
    with gradix.debug_key_reuse(True):
        random.normal(random.key(0), (400, 400))
        gradix.vmap(lambda k: random.gamma(k, 2.0, (40, 40)))(random.split(random.key(0)))
        random.split(random.key(1), 2000)
        random.randint(random.key(2), (400, 400), 0, 9)


@pytest.mark.parametrize("place", ["i", "jnp.array([0, 1]) * i"])
def test_the_same_traced_place_is_the_same_key(place):
    def draw(keys, i, places):
        taken = [keys[place].ravel()[0] for place in places(i)]
        return random.uniform(taken[0]) + random.uniform(taken[1])

    at = eval(f"lambda i: {place}")
    keys = random.split(random.key(0), 3)
    check_key_reuse(lambda keys, i: draw(keys, i, lambda i: (at(i), at(i) + 1)), keys, 0)
    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda keys, i: draw(keys, i, lambda i: [at(i)] * 2), keys, 0)


def _with_rule(rule, f):
    made = rule(f)
    if rule is gradix.custom_jvp:
        made.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    else:
        made.defvjp(lambda x, k: (f(x, k), None), lambda res, ct: (ct, None))
    return made


# Functions of x and a key that use the key by `a` and by `b`.
BODIES = {
    "plain": lambda a, b: lambda x, k: x * a(k) + jnp.sin(x * b(k)),
    "jit": lambda a, b: gradix.jit(lambda x, k: x * a(k) + jnp.sin(x * b(k))),
    "cond": lambda a, b: lambda x, k: lax.cond(x > 0, lambda: x * a(k) + jnp.sin(x * b(k)), lambda: x),
    "rows of a scan": lambda a, b: (
        lambda x, k: lax.scan(lambda c, k: (c * a(k) + jnp.sin(c * b(k)), 0), x, random.split(k))[0]
    ),
    "carry of a scan": lambda a, b: (
        lambda x, k: lax.scan(
            lambda c, _: ((c[0] * a(c[1]) + jnp.sin(c[0] * b(c[1])), random.clone(c[1])), 0), (x, k), None, length=2
        )[0][0]
    ),
    "fori_loop": lambda a, b: (
        lambda x, k: lax.fori_loop(0, 2, lambda i, c: (lambda k: c * a(k) + jnp.sin(c * b(k)))(random.fold_in(k, i)), x)
    ),
    "checkpoint": lambda a, b: gradix.checkpoint(lambda x, k: x * a(k) + jnp.sin(x * b(k))),
    "checkpoint, captured": lambda a, b: lambda x, k: gradix.checkpoint(lambda x: x * a(k) + jnp.sin(x * b(k)))(x),
    "checkpoint of cond": lambda a, b: gradix.checkpoint(
        lambda x, k: lax.cond(x > 0, lambda: x * a(k) + jnp.sin(x * b(k)), lambda: x)
    ),
    "custom_jvp": lambda a, b: lambda x, k: _with_rule(gradix.custom_jvp, lambda x, k: x * a(k))(x, k) + x * b(k),
    "custom_vjp": lambda a, b: lambda x, k: _with_rule(gradix.custom_vjp, lambda x, k: x * a(k))(x, k) + x * b(k),
    "vmap": lambda a, b: (
        lambda x, k: gradix.vmap(lambda x, k: x * a(k) + jnp.sin(x * b(k)))(jnp.stack([x, x]), random.split(k)).sum()
    ),
}
TRANSFORMS = {
    "value": lambda f, x, k: f(x, k),
    "grad": lambda f, x, k: gradix.value_and_grad(f)(x, k),
    "jit of grad": lambda f, x, k: gradix.jit(gradix.grad(f))(x, k),
    "vjp called twice": lambda f, x, k: (lambda pull: (pull(x), pull(x)))(gradix.vjp(lambda x: f(x, k), x)[1]),
    "vmap of grad": lambda f, x, k: gradix.vmap(gradix.grad(f))(jnp.stack([x, x]), random.split(k)),
    "grad of vmap": lambda f, x, k: gradix.grad(lambda x: gradix.vmap(f)(jnp.stack([x, x]), random.split(k)).sum())(x),
    "grad of grad": lambda f, x, k: gradix.grad(gradix.grad(f))(x, k),
    "grad of checkpoint": lambda f, x, k: gradix.grad(gradix.checkpoint(f))(x, k),
}

QUICK = "value", "grad", "grad of checkpoint"


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    "transform", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in TRANSFORMS]
)
def test_the_mode_tells_one_use_from_two_through_every_transformation(transform, body):
    def split(k):
        return random.normal(random.split(k)[0])

    def other(k):
        return random.normal(random.fold_in(k, 1)) + random.normal(random.clone(k))

    x = jnp.full((), 1.5, float)
    for seed, (a, b, found) in enumerate(
        [(random.normal, other, False), (split, other, False), (split, split, True), (random.normal, split, True)]
    ):
        with gradix.debug_key_reuse(True):
            if not found:
                TRANSFORMS[transform](BODIES[body](a, b), x, random.key(seed))
                continue
            with pytest.raises(KeyReuseError) as e:
                TRANSFORMS[transform](BODIES[body](a, b), x, random.key(seed))
        assert str(e.value).count("test_key_reuse.py:") == 2, e.value
