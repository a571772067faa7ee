"""Keys: what they are, what is refused, and how they behave in arrays and programs."""

import numpy as np
import pytest

import gradix
from gradix import errors, lax, numpy as jnp, random


def words(keys):
    return np.asarray(random.key_data(keys)).tolist()


@pytest.mark.x32
def test_keys_from_seeds():
    assert words(random.key(42)) == [0, 42]
    assert words(random.key(-1)) == [0, 2**32 - 1]
    assert words(random.key(np.int64(2**40 + 5))) == [0, 5]
    assert np.asarray(random.PRNGKey(7)).tolist() == [0, 7]


def test_split_and_fold_in_give_the_known_words():
    assert words(random.split(random.key(42))) == [[1832780943, 270669613], [64467757, 2916123636]]
    assert words(random.fold_in(random.key(42), 1)) == [64467757, 2916123636]
    assert np.asarray(random.split(random.PRNGKey(0))).tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]


def test_seeds_of_64_bits():
    with gradix.enable_x64(True):
        assert words(random.key(2**40 + 5)) == [256, 5]


@pytest.mark.parametrize("draw", [random.uniform, random.split, random.bits, random.normal])
@pytest.mark.parametrize("key", [42, None, 1.5, "key"])
def test_what_is_no_key_is_refused_with_the_way_to_make_one(draw, key):
    with pytest.raises(TypeError, match=r"gradix\.random\.key\("):
        draw(key)


def test_arrays_of_keys_are_refused_by_samplers():
    with pytest.raises(ValueError, match="Use gradix.vmap for batching"):
        random.uniform(random.split(random.key(0)))


@pytest.mark.parametrize(
    "operation",
    [
        lambda k: k + 1,
        lambda k: k * k,
        lambda k: -k,
        lambda k: k < k,
        float,
        bool,
        int,
        np.asarray,
        lambda k: k.item(),
        lambda k: k.sum(),
        jnp.sin,
    ],
)
def test_keys_are_no_numbers(operation):
    with pytest.raises(TypeError):
        operation(random.key(0))


def test_keys_print_their_words():
    assert repr(random.key(42)) == "Array((), dtype=key<fry>) overlaying:\n[ 0 42]"
    assert f"{random.key(42)}" == str(random.key(42)) == repr(random.key(42))


def test_keys_in_arrays():
    a, b = random.split(random.key(0))
    both = jnp.stack([a, b])
    assert both.shape == (2,) and bool((both == random.split(random.key(0))).all())
    assert bool(both[0] == a) and not bool(both[1] == a)
    assert [words(k) for k in both] == words(both)


def test_keys_through_programs():
    keys = random.split(random.key(0), 3)
    each = [float(random.uniform(k)) for k in keys]
    np.testing.assert_array_equal(gradix.vmap(random.uniform)(keys), each)
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(random.uniform))(keys), each)
    _, scanned = lax.scan(lambda c, k: (c, random.uniform(k)), 0, keys)
    np.testing.assert_array_equal(scanned, each)
    chosen = lax.cond(True, lambda k: k, lambda k: random.split(k)[0], keys[1])
    assert bool(chosen == keys[1])


def test_a_jaxpr_shows_the_draws():
    text = str(gradix.make_jaxpr(lambda k: random.split(k))(random.key(0)))
    assert "random_split[shape=(2,)]" in text
    assert "jit[name=_uniform" in str(gradix.make_jaxpr(random.uniform)(random.key(0)))


def test_bad_arguments():
    key = random.key(0)
    with pytest.raises(ValueError, match="must be a float dtype"):
        random.uniform(key, (2,), int)
    with pytest.raises(TypeError, match="does not broadcast to shape"):
        random.uniform(key, (2,), minval=jnp.zeros(3))
    with pytest.raises(OverflowError):
        random.fold_in(key, -1)
    with pytest.raises(TypeError, match="static_argnums"):
        gradix.jit(lambda n: random.uniform(key, (n,)))(3)
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        random.key(0, impl="dice")
    with pytest.raises(TypeError):
        random.key(1.5)


# -- key reuse -----------------------------------------------------------------------------------------------------


def twice(key):
    return random.uniform(key) + random.normal(key)


def constant_key_in_a_loop(key):
    return lax.fori_loop(0, 3, lambda i, c: c + random.uniform(key), 0.0)


def one_of_many(key):
    keys = random.split(key, 3)
    return random.uniform(keys[0]) + gradix.vmap(random.uniform)(keys).sum()


def the_same_keys_scanned_twice(key):
    keys = random.split(key, 3)
    return [lax.scan(lambda c, k: (c + random.uniform(k), None), 0.0, keys)[0] for _ in range(2)]


def the_same_loop_elsewhere(key):
    return lax.fori_loop(0, 3, lambda i, c: c + random.uniform(key), 0.0)


def test_equal_loops_of_two_places_are_told_apart():
    for program in (constant_key_in_a_loop, the_same_loop_elsewhere):
        line = program.__code__.co_firstlineno + 1
        with gradix.debug_key_reuse(True), pytest.raises(errors.KeyReuseError, match=f"test_keys.py:{line} "):
            program(random.key(0))


REUSES = [twice, constant_key_in_a_loop, one_of_many, the_same_keys_scanned_twice]


@pytest.mark.parametrize("program", REUSES)
@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_reuse_is_found(program, transform):
    lines = "(?s)first:.*test_keys.*again:.*test_keys"
    with gradix.debug_key_reuse(True), pytest.raises(errors.KeyReuseError, match=lines):
        transform(program)(random.key(0))
    transform(program)(random.key(0))


def test_reuse_across_jit_names_the_argument():
    with gradix.debug_key_reuse(True):
        draw = gradix.jit(lambda scale, key: scale * random.uniform(key))
        key = random.key(0)
        draw(1.0, key)
        with pytest.raises(errors.KeyReuseError, match="at index 1"):
            draw(1.0, key)


def fresh_keys(key):
    key, first = random.split(key)
    x = random.uniform(first) + random.uniform(random.fold_in(key, 0)) + random.uniform(random.clone(first))
    keys = random.split(key, 4)
    y = random.uniform(keys[0]) + gradix.vmap(random.uniform)(keys[1:]).sum()
    return x + y


def branches(key):
    return lax.cond(True, random.uniform, random.normal, key)


def keys_carried(key):
    def turn(key, _):
        key, sub = random.split(key)
        return key, random.uniform(sub)

    return lax.scan(turn, key, None, length=4)[1]


@pytest.mark.parametrize("program", [fresh_keys, branches, keys_carried])
@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_proper_use_passes(program, transform):
    with gradix.debug_key_reuse(True):
        transform(program)(random.key(0))


def test_a_key_returned_after_its_use_stays_used():
    with gradix.debug_key_reuse(True):
        _, key = gradix.jit(lambda k: (random.uniform(k), k))(random.key(0))
        with pytest.raises(errors.KeyReuseError):
            random.uniform(key)


@pytest.mark.x32
def test_an_offset_is_added_to_seeds():
    def made(make):
        return np.asarray(random.key_data(make())).tolist()

    compiled, of_array = gradix.jit(lambda: random.key(3)), gradix.jit(random.key)
    ways = [
        lambda: random.key(3),
        lambda: random.PRNGKey(3),
        lambda: random.key(np.uint32(3)),
        lambda: random.key(jnp.int32(3)),
        lambda: of_array(3),
        compiled,
        lambda: random.key(np.int8(3)),
    ]
    plain = made(lambda: random.key(3)), made(lambda: random.key(7)), made(lambda: random.key(-1))
    for offset, want in (0, plain[0]), (4, plain[1]), (-4, plain[2]), (0, plain[0]):
        gradix.config.update("jax_random_seed_offset", offset)
        try:
            found = [made(way) for way in ways]
        finally:
            gradix.config.update("jax_random_seed_offset", 0)
        assert found == [want] * len(ways), offset
