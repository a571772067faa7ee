"""Random bits in their first order, under jax_threefry_partitionable=False: what older programs' results were drawn by."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, random
from gradix.extend.random import threefry_2x32


@pytest.fixture(autouse=True)
def first_order():
    with gradix.threefry_partitionable(False):
        yield


def words(key, m: int):
    """The definition: the Threefry hash of 0, 1, …, m - 1, of which the halves are the two counter words."""
    return np.asarray(threefry_2x32(random.key_data(key), jnp.arange(m, dtype="uint32")))


def both(f, *args):
    eager, compiled = gradix.tree.map(np.asarray, (f(*args), gradix.jit(f)(*args)))
    np.testing.assert_array_equal(eager, compiled)
    return eager


@pytest.mark.x32
def test_draws_that_many_programs_print():
    key = random.key(0)
    assert float(random.uniform(key)) == pytest.approx(0.41845703)
    assert float(random.normal(key)) == pytest.approx(-0.20584226, abs=1e-6)
    np.testing.assert_array_equal(
        both(lambda k: random.key_data(random.split(k)), key), [[4146024105, 967050713], [2718843009, 1272950319]]
    )


@pytest.mark.parametrize("shape", [(), (1,), (2,), (7,), (3, 5), (0,)])
@pytest.mark.parametrize("width", [8, 16, 32])
def test_bits_are_parts_of_the_hash(shape, width):
    key, n = random.key(5), int(np.prod(shape))
    expected = words(key, -(-n * width // 32)).astype("<u4").view(f"<u{width // 8}")[:n].reshape(shape)
    np.testing.assert_array_equal(both(lambda k: random.bits(k, shape, f"uint{width}"), key), expected)


def test_bits_of_64_come_high_word_first():
    with gradix.enable_x64(True):
        key = random.key(5)
        drawn = words(key, 6).astype("uint64")
        np.testing.assert_array_equal(both(lambda k: random.bits(k, (3,), "uint64"), key), drawn[:3] << 32 | drawn[3:])


def test_keys_of_arrays_of_keys_are_those_of_each():
    keys = random.split(random.key(1), 3)
    f = lambda k: (random.key_data(random.split(k, 3)), random.bits(k, (5,)), random.randint(k, (4,), 0, 1000))
    one_by_one = [np.stack(parts) for parts in zip(*[gradix.tree.map(np.asarray, f(k)) for k in keys])]
    for mapped in (gradix.vmap(f)(keys), gradix.jit(gradix.vmap(f))(keys)):
        for x, y in zip(mapped, one_by_one):
            np.testing.assert_array_equal(x, y)


def test_a_compiled_function_follows_the_option():
    draw = gradix.jit(lambda k: random.uniform(k, (3,)))
    first = np.asarray(draw(random.key(0)))
    with gradix.threefry_partitionable(True):
        assert not np.array_equal(draw(random.key(0)), first)
    np.testing.assert_array_equal(draw(random.key(0)), first)


def test_loops_draw_as_python_does():
    def step(key, _):
        key, sub = random.split(key)
        return key, random.normal(sub, (2,))

    _, compiled = lax.scan(step, random.key(2), None, length=3)
    key, eager = random.key(2), []
    for _ in range(3):
        key, x = step(key, None)
        eager.append(np.asarray(x))
    np.testing.assert_allclose(compiled, eager, rtol=2e-6)


def test_keys_of_rbg_split_so_in_both_halves_and_their_bits_stay():
    key = random.key(7, impl="rbg")
    keys, bits = [both(f, key) for f in (lambda k: random.key_data(random.split(k, 3)), lambda k: random.bits(k, (4,)))]
    np.testing.assert_array_equal(keys, np.tile(random.key_data(random.split(random.key(7), 3)), 2))
    with gradix.threefry_partitionable(True):
        np.testing.assert_array_equal(bits, random.bits(key, (4,)))
