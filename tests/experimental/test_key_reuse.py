"""What the checker of key reuse finds, and what it lets pass, through each transformation."""
import pytest

import gradix
from gradix import lax, numpy as jnp, random
from gradix.experimental.key_reuse import KeyReuseError, check_key_reuse

GOOD = {
    "branches": lambda k: lax.cond(True, lambda: random.uniform(k), lambda: random.normal(k)),
    "split": lambda k: [random.normal(q) for q in random.split(k)],
    "rows of a scan": lambda k: lax.scan(lambda c, q: (c, random.uniform(q)), 0, random.split(k, 4)),
    "carry of a scan": lambda k: lax.scan(lambda c, _: (lambda a, b: (a, random.uniform(b)))(*random.split(c)), k, None, length=4),
    "clone": lambda k: random.uniform(k) + random.uniform(random.clone(k)),
    "fold_in": lambda k: random.uniform(random.fold_in(k, 0)) + random.uniform(random.fold_in(k, 1)),
    "fold_in of a loop": lambda k: lax.fori_loop(0, 3, lambda i, a: a + random.uniform(random.fold_in(k, i)), 0.0),
    "a key taken in a loop": lambda k: (lambda q: lax.fori_loop(0, 3, lambda i, a: a + random.uniform(q[i]), 0.0))(random.split(k, 3)),
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
    "vmap twice": lambda k: (lambda q: gradix.vmap(random.uniform)(q) + gradix.vmap(random.normal)(q))(random.split(k, 3)),
    "shared by vmap": lambda k: gradix.vmap(lambda x: random.uniform(k) + x)(jnp.arange(3.0)) + random.uniform(k),
    "split": lambda k: (random.split(k), random.split(k)),
    "one index": lambda k: (lambda q: random.uniform(q[0]) + random.uniform(q[0]))(random.split(k)),
    "a choice": lambda k: (lambda a, b: random.uniform(jnp.where(True, a, b)) + random.uniform(a))(*random.split(k)),
    "written": lambda k: (lambda q: random.uniform(q[0])
                          + random.uniform(lax.dynamic_update_slice(q, q[:1], (1,))[1]))(random.split(k)),
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
