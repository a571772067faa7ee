"""Keys of XLA's own generators, rbg and unsafe_rbg: the same words on the host and compiled, whatever bits they hold."""

import copy
import pickle

import numpy as np
import pytest

import gradix
from gradix import errors, lax, numpy as jnp, random
from gradix._base import config
from gradix._ops.random.random import random_split_p

IMPLS = ("rbg", "unsafe_rbg")
# Halves that are NaN of either kind, infinite, subnormal and signed zero as numbers.
ODD = np.array(
    [
        [1, 0x7FF00000, 0, 0x80000000],
        [0xFFFFFFFF] * 4,
        [0, 0x7FF00000, 1, 0],
        [1, 0xFFF80000, 5, 0x7FF80000],
        [0, 0, 0, 0x80000000],
        [0] * 4,
    ],
    "uint32",
)


EAGER = config.Setting("gradix_eager", "")


def words(keys):
    return np.asarray(random.key_data(keys)).tolist()


def both_ways(function, *args):
    """The result on the host, checked to be that of the compiled function and of operations compiled one by one."""
    with EAGER("host"):
        host = function(*args)
    with EAGER("xla"):
        alone = function(*args)
    compiled = gradix.jit(function)(*args)
    for other in (alone, compiled):
        gradix.tree.map(np.testing.assert_array_equal, other, host)
    return host


@pytest.mark.parametrize("impl", IMPLS)
def test_host_and_compiled_make_the_same_words(impl):
    keys = random.wrap_key_data(ODD, impl=impl)
    data = np.array([0, 1, 2**32 - 1, 7, 8, 9], "uint32")

    def programs(keys):
        one = keys[3]
        made = [
            random.split(one, (2, 3)),
            gradix.vmap(lambda k: random.split(k, 2))(keys),
            random.fold_in(one, 9),
            gradix.vmap(random.fold_in)(keys, data),
            gradix.vmap(random.fold_in, (None, 0))(one, data),
            gradix.vmap(random.fold_in, (0, None))(keys, 3),
            random.clone(keys),
            random.split(one, 0),
            random.split(one, ()),
        ]
        drawn = [random.bits(one, (5,), t) for t in ("uint8", "uint16", "uint32")]
        return [random.key_data(k) for k in made], drawn, gradix.vmap(lambda k: random.bits(k, (2, 3)))(keys)

    both_ways(programs, keys)


@pytest.mark.parametrize("impl", IMPLS)
def test_words_of_every_kind_survive(impl):
    keys = random.wrap_key_data(ODD, impl=impl)
    assert words(keys) == ODD.tolist()

    def moved(keys):
        chosen = [
            keys[::-1],
            keys.reshape(2, 3).T,
            jnp.concatenate([keys[1:], keys[:1]]),
            jnp.where(np.arange(6) % 2 == 0, keys, keys[5]),
            keys.at[2].set(keys[1]),
            jnp.take(keys, np.array([1, 9]), mode="fill"),
            jnp.stack([keys[0], keys[1]]),
            lax.cond(True, lambda k: k, lambda k: k[::-1], keys),
            lax.scan(lambda c, k: (c, k), 0, keys)[1],
            lax.fori_loop(0, 3, lambda i, k: jnp.roll(k, 1), keys),
            jnp.broadcast_to(keys[3], (2, 2)),
        ]
        return [random.key_data(k) for k in chosen]

    moved = both_ways(moved, keys)
    assert moved[0].tolist() == ODD[::-1].tolist()
    assert moved[5].tolist() == [ODD[1].tolist(), [2**32 - 1] * 4]
    assert words(gradix.jit(lambda: keys)()) == ODD.tolist()  # as constants of a program
    assert words(gradix.jit(lambda: keys[2])()) == ODD[2].tolist()
    assert words(pickle.loads(pickle.dumps(keys))) == words(copy.deepcopy(keys)) == ODD.tolist()


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_are_equal_where_all_their_words_are(impl):
    keys = random.wrap_key_data(ODD, impl=impl)
    same = both_ways(
        lambda k: [k == k, k != k, k == k[::-1], k != k[4], k[4] == k[5], gradix.vmap(lambda a: a == k[1])(k)], keys
    )
    assert same[0].tolist() == [True] * 6 and not same[1].any() and not same[2].any()
    assert same[3].tolist() == [True] * 4 + [False, True]  # the words of -0.0 and 0.0 differ
    assert not same[4] and same[5].tolist() == [False, True] + [False] * 4
    assert jnp.array_equal(keys, keys)


def test_both_generators_draw_the_same_bits_of_a_key():
    a, b = random.key(3, impl="rbg"), random.key(3, impl="unsafe_rbg")
    assert random.bits(a, (4,)).tolist() == random.bits(b, (4,)).tolist()
    assert words(random.split(a)) != words(random.split(b)) and words(random.fold_in(a, 1)) != words(
        random.fold_in(b, 1)
    )


@pytest.mark.x32
def test_a_draw_is_what_the_generator_gives():
    key = random.key(11, impl="rbg")
    with gradix.enable_x64(True):
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            expected = lax.rng_bit_generator(random.key_data(key), (2, 3, 3), dtype)[1]
            assert both_ways(lambda k, d=dtype: random.bits(k, (2, 3, 3), d), key).tolist() == expected.tolist()
    carried = random.wrap_key_data(
        np.array([1, 2, 2**32 - 1, 2**32 - 1], "uint32"), impl="rbg"
    )  # the counter runs over
    assert random.bits(carried, (12,)).tolist() == lax.rng_bit_generator(random.key_data(carried), (12,))[1].tolist()


@pytest.mark.parametrize("impl", IMPLS)
def test_no_keys_draw_nothing(impl):
    none = random.split(random.key(0, impl=impl), 0)
    each = gradix.vmap
    shapes = both_ways(
        lambda k: [
            random.key_data(each(lambda q: random.split(q, 3))(k)),
            each(lambda q: random.bits(q, (2,)))(k),
            random.key_data(each(lambda q: random.fold_in(q, 1))(k)),
        ],
        none,
    )
    assert [s.shape for s in shapes] == [(0, 3, 4), (0, 2), (0, 4)]


def test_the_default_generator_takes_raw_keys():
    raw = random.PRNGKey(5, impl="rbg")
    with gradix.default_prng_impl("rbg"):
        assert random.key(5).dtype == random.key_dtype() == random.key_dtype("rbg")
        assert random.key_impl(raw) == "rbg"
        drawn = [random.uniform(raw), gradix.jit(random.uniform)(raw)]
        with pytest.raises(TypeError, match=r"end with \(4,\); got shape=\(2,\)"):
            random.uniform(random.PRNGKey(5, impl="threefry2x32"))
    assert drawn[0] == drawn[1] == random.uniform(random.wrap_key_data(raw, impl="rbg"))
    with pytest.raises(TypeError, match="wrap_key_data"):
        random.uniform(raw)


def test_key_types_do_not_mix():
    a, b, c = random.key(0), random.key(0, impl="rbg"), random.key(0, impl="unsafe_rbg")
    for x, y in ((a, b), (b, c), (c, a)):
        with pytest.raises(TypeError):
            x == y  # noqa: B015
        with pytest.raises((TypeError, ValueError)):
            jnp.stack([x, y])
    with pytest.raises(TypeError, match="urbg"):
        random_split_p.bind(c, shape=(2,))


def test_programs_show_the_generator():
    key = random.key(0, impl="unsafe_rbg")
    text = str(gradix.make_jaxpr(lambda k: random.split(random.fold_in(k, 3)))(key))
    assert "key<urbg>[2] = random_split[shape=(2,)]" in text and "random_fold_in a" in text
    assert "random_seed[impl=rbg]" in str(gradix.make_jaxpr(lambda s: random.key(s, impl="rbg"))(3))


def test_keys_used_twice_are_found():
    with gradix.debug_key_reuse(True), pytest.raises(errors.KeyReuseError):
        gradix.jit(lambda k: random.uniform(k) + random.uniform(k))(random.key(0, impl="rbg"))


def test_a_generator_that_is_not_there_is_told_by_those_that_are():
    with pytest.raises(ValueError, match="'philox2x64'.*'philox4x32'.*'rbg'"):
        random.key(0, impl="philox2x64")


# What JAX 0.10 draws from keys 3 by 2, mapped over both axes, the second one outside.
TURNED = {
    "rbg": dict(
        bits=[[1856252100, 1385834773, 4083534721], [2276027212, 4066935304, 1830184809]],
        keys=[[1586930987, 2765505275, 1602841616], [3807081006, 2086325090, 1285600748]],
        gammas=[[5.1155872, 2.6509163, 1.860653], [1.4076602, 3.296384, 8.1808033]],
        shapes=[3.4464264, 4.3616843, 13.731373],
    ),
    "unsafe_rbg": dict(
        bits=[[3519242469, 939113026, 3707025921], [1269154273, 1780567727, 820849072]],
        keys=[[4095447092, 715632422, 3559612636], [4101914241, 2593916818, 2227004589]],
        gammas=[[3.7410221, 5.1356363, 3.7360406], [0.8279864, 0.57231367, 1.0592077]],
        shapes=[1.6314622, 4.3805203, 11.5219555],
    ),
}


@pytest.mark.x32
@pytest.mark.parametrize("impl", IMPLS)
def test_the_order_in_which_mapped_keys_draw_is_that_of_others(impl):
    keys, want = random.split(random.key(3, impl=impl), (3, 2)), TURNED[impl]

    def mapped(function):
        return gradix.vmap(gradix.vmap(function), 1)

    bits, split, gammas, shapes = both_ways_close(
        lambda k: (
            mapped(lambda q: random.bits(random.split(q)[1], ()))(k),
            random.key_data(mapped(random.split)(k))[..., 1, 3],
            mapped(lambda q: random.gamma(q, 2.5))(k),
            gradix.vmap(lambda a: random.gamma(k[0, 0], a))(np.array([0.5, 2, 9], "float32")),
        ),
        keys,
    )
    assert bits.tolist() == want["bits"] and split.tolist() == want["keys"]
    np.testing.assert_allclose(gammas, want["gammas"], rtol=2e-5)
    np.testing.assert_allclose(shapes, want["shapes"], rtol=2e-5)


def both_ways_close(function, *args):
    """As `both_ways`, for results that are rounded: eager and compiled."""
    eager, compiled = function(*args), gradix.jit(function)(*args)
    gradix.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5), eager, compiled)
    return eager


@pytest.mark.parametrize("impl", IMPLS)
def test_gammas_of_mapped_keys_have_derivatives(impl):
    keys = random.split(random.key(4, impl=impl), 3)
    a = np.array([0.5, 2.0, 9.0], "float32")
    each = gradix.vmap(gradix.grad(lambda a, k: random.gamma(k, a)))(a, keys)
    together = gradix.grad(lambda a: gradix.vmap(lambda a, k: random.gamma(k, a))(a, keys).sum())(a)
    np.testing.assert_allclose(each, together, rtol=1e-5)
    assert (np.asarray(each) > 0).all()
