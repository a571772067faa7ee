"""Generators of bits that users define, and keys as ordinary arrays."""

import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp, random
from gradix.extend import random as generators

FRY = generators.threefry_prng_impl


def _pair(function):
    """A function of a key of two Threefry keys."""
    return lambda key, *rest: jnp.stack([function(key[i], *rest) for i in (0, 1)], -2)


DOUBLE = generators.define_prng_impl(
    key_shape=(2, 2),
    seed=lambda s: jnp.stack([FRY.seed(s), FRY.seed(s + 1)]),
    split=_pair(FRY.split),
    fold_in=_pair(FRY.fold_in),
    random_bits=lambda k, width, shape: FRY.random_bits(k[0], width, shape) ^ FRY.random_bits(k[1], width, shape),
    name="double",
    tag="dbl",
)
THREE = generators.define_prng_impl(
    key_shape=(3,),
    seed=lambda s: jnp.array([1, 2, 0], "uint32") + s.astype("uint32"),
    split=lambda k, shape: k + jnp.arange(np.prod(shape, dtype=int), dtype="uint32").reshape(*shape, 1),
    random_bits=lambda k, width, shape: FRY.random_bits(k[:2], width, shape),
    fold_in=lambda k, data: k + data,
    name="three",
    tag="t3",
)


@pytest.mark.x32
@pytest.mark.parametrize("impl", [DOUBLE, THREE], ids=str)
def test_keys_of_a_users_generator(impl):
    key = random.key(3, impl=impl)
    assert random.key_impl(key) == impl and str(key.dtype) == f"key<{impl.tag}>"
    assert random.key_data(key).shape == impl.key_shape
    keys = random.split(key, (2, 3))
    assert keys.shape == (2, 3) and random.key_data(keys).shape == (2, 3, *impl.key_shape)
    np.testing.assert_array_equal(random.key_data(keys)[1, 2], impl.split(random.key_data(key), (2, 3))[1, 2])
    back = random.wrap_key_data(random.key_data(keys), impl=impl)
    np.testing.assert_array_equal(random.key_data(back), random.key_data(keys))
    compiled = gradix.jit(
        lambda k: (random.key_data(random.split(k, 2)), random.normal(k, (2,)), random.key_data(random.fold_in(k, 5)))
    )
    for got, want in zip(
        compiled(key),
        (random.key_data(random.split(key, 2)), random.normal(key, (2,)), random.key_data(random.fold_in(key, 5))),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    mapped = gradix.vmap(lambda k: random.bits(k, (4,)))(keys[0])
    np.testing.assert_array_equal(mapped, [random.bits(k, (4,)) for k in keys[0]])
    np.testing.assert_array_equal(random.bits(key, (4,)), impl.random_bits(random.key_data(key), 32, (4,)))
    assert "random_bits" in str(gradix.make_jaxpr(lambda k: random.bits(k, (2,)))(key))


def test_reuse_of_keys_of_a_users_generator_is_seen():
    from gradix.experimental.key_reuse import KeyReuseError, check_key_reuse

    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda k: random.bits(k) + random.bits(k), random.key(0, impl=THREE))


def test_a_key_of_many_words_is_refused():
    with pytest.raises(ValueError, match="8 words"):
        generators.define_prng_impl(key_shape=(2, 4), seed=None, split=None, random_bits=None, fold_in=None)


@pytest.mark.parametrize("name", ["threefry", "rbg", "unsafe_rbg"])
def test_functions_of_the_built_in_generators(name):
    impl = getattr(generators, f"{name}_prng_impl")
    key = impl.seed(7)
    np.testing.assert_array_equal(key, random.key_data(generators.seed_with_impl(impl, 7)))
    assert key.shape == impl.key_shape and impl.split(key, (2,)).shape == (2, *impl.key_shape)
    assert impl.fold_in(key, 3).shape == impl.key_shape and impl.random_bits(key, 8, (5,)).dtype == np.uint8
    assert random.key(7, impl=impl).dtype == generators.random_seed(7, impl).dtype


KEYS = random.split(random.key(0), 4)
WORDS = np.asarray(random.key_data(KEYS))


def test_keys_move_as_arrays_do():
    assert np.array_equal(random.key_data(jnp.full_like(KEYS, KEYS[1])), np.broadcast_to(WORDS[1], (4, 2)))
    assert (random.key_data(jnp.full_like(KEYS, 0)) == 0).all()
    filled = random.key_data(KEYS.at[jnp.array([1, 9])].get(mode="fill"))
    assert np.array_equal(filled[0], WORDS[1]) and (filled[1] == filled[1][0]).all()
    assert np.array_equal(random.key_data(jnp.diagonal(KEYS.reshape(2, 2))), WORDS[[0, 3]])
    assert np.array_equal(random.key_data(lax.pad(KEYS, KEYS[2], [(1, 0, 0)])), WORDS[[2, 0, 1, 2, 3]])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: jnp.isclose(KEYS, 1.0),
        lambda: jnp.sort(KEYS),
        lambda: jnp.argsort(KEYS),
        lambda: jnp.unique(KEYS),
        lambda: KEYS.at[0].add(KEYS[1]),
        lambda: KEYS + 1,
        lambda: jnp.sum(KEYS),
        lambda: KEYS @ KEYS,
    ],
)
def test_keys_are_no_numbers(wrong):
    with pytest.raises(TypeError, match=r"key"):
        wrong()


def test_keys_are_equal_or_not():
    other = KEYS.at[1].set(KEYS[0])
    for equal in (jnp.equal, jnp.isclose):
        assert equal(KEYS, other).tolist() == [True, False, True, True]
    assert jnp.allclose(KEYS, KEYS) and not jnp.allclose(KEYS, other)


def test_where_keys_stand_among_dtypes():
    made = KEYS.dtype
    assert jnp.issubdtype(made, gradix.dtypes.prng_key) and jnp.issubdtype(made, gradix.dtypes.extended)
    assert not jnp.issubdtype(made, np.integer) and not jnp.issubdtype("uint32", gradix.dtypes.prng_key)


ONE = generators.define_prng_impl(
    key_shape=(1,),
    seed=lambda s: s.astype("uint32")[None],
    split=lambda k, shape: k + jnp.arange(np.prod(shape, dtype=int), dtype="uint32").reshape(*shape, 1),
    random_bits=lambda k, width, shape: FRY.random_bits(jnp.concatenate([k, k]), width, shape),
    fold_in=lambda k, data: k + data,
    name="one",
    tag="t1",
)


@pytest.mark.parametrize("wrapped", [lambda f: f, gradix.jit, gradix.vmap], ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize("impl", [DOUBLE, THREE, ONE], ids=["four words", "three words", "one word"])
def test_keys_of_a_users_generator_are_compared(impl, wrapped):
    a, b = random.split(random.key(3, impl=impl)), random.split(random.key(3, impl=impl))[::-1]
    assert wrapped(lambda x, y: x == y)(a, a).tolist() == [True, True]
    assert wrapped(lambda x, y: x != y)(a, a).tolist() == [False, False]
    assert wrapped(lambda x, y: x == y)(a, b).tolist() == [False, False]
    with pytest.raises((TypeError, ValueError)):
        lax.eq(a, random.split(random.key(0)))
    with pytest.raises(TypeError):
        lax.lt(a, b)


def test_a_generator_defined_again_is_the_same():
    given = THREE._asdict()
    given.pop("key_dtype")
    again, other = generators.define_prng_impl(**given), generators.define_prng_impl(**given | {"name": "another"})
    assert again == THREE and hash(again) == hash(THREE) and other != THREE
    assert (random.key(1, impl=again) == random.key(1, impl=THREE)).item()
    assert random.key(1, impl=other).dtype != random.key(1, impl=THREE).dtype
