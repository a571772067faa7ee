"""Threefry 2x32 against published answers, and the primitives made of it on the host, compiled and mapped."""

import numpy as np
import pytest

import gradix
from gradix import random
from gradix._ops.random import random as bits
from gradix._ops.random.threefry import block, blocks

# The known answers that Random123 publishes for 20 rounds: key, counter, result.
ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
KEY = random.key(42)
COUNTS = [0, 1, 5, 300, 20_000]  # Python integers, NumPy at once, NumPy in chunks


def words(keys):
    return np.asarray(random.key_data(keys))


def ways(function):
    return function, gradix.jit(function)


@pytest.mark.parametrize("key, counter, want", ANSWERS)
def test_published_answers(key, counter, want):
    assert block(*key, *counter) == want
    many = [np.full(50, v, np.uint32) for v in (*key, *counter)]
    for got, word in zip(blocks(*many), want):
        np.testing.assert_array_equal(got, word)
    for f in ways(bits.threefry2x32_p.bind):
        assert tuple(int(v) for v in f(*[np.uint32(v) for v in (*key, *counter)])) == want


def test_a_hash_of_an_array():
    key, counter, want = ANSWERS[2]
    for f in ways(bits.threefry_2x32):
        np.testing.assert_array_equal(f(np.array(key, np.uint32), np.array(counter, np.uint32)), want)
        assert f(np.array(key, np.uint32), np.arange(7, dtype=np.uint32)).shape == (7,)
    with pytest.raises(TypeError, match="uint32"):
        bits.threefry_2x32(np.array(key, np.uint32), np.arange(4.0))


@pytest.mark.x32
def test_what_others_get_for_the_same_key():
    """Values recorded from JAX 0.10, so that seeds carry over."""
    np.testing.assert_array_equal(words(random.split(KEY)), [[1832780943, 270669613], [64467757, 2916123636]])
    np.testing.assert_array_equal(words(random.fold_in(KEY, 7)), [2547012911, 1371500959])
    np.testing.assert_array_equal(random.bits(KEY, (4,), "uint8"), [162, 217, 249, 215])
    np.testing.assert_array_equal(random.bits(KEY, (4,), "uint16"), [5026, 12505, 63993, 49623])
    np.testing.assert_array_equal(random.bits(KEY, (4,)), [2098992034, 2919706841, 2646866425, 2409546199])
    with gradix.enable_x64():
        np.testing.assert_array_equal(random.bits(KEY, (2,), "uint64"), [7871734211187709741, 276886910877598708])


@pytest.mark.parametrize(
    "seed, want",
    [
        (np.int32(5), (0, 5)),
        (np.int32(-1), (0, 0xFFFFFFFF)),
        (np.int64(2**40 + 3), (256, 3)),
        (np.int64(-1), (0xFFFFFFFF, 0xFFFFFFFF)),
        (np.uint64(2**64 - 3), (0xFFFFFFFF, 0xFFFFFFFD)),
    ],
)
def test_seeds(seed, want):
    with gradix.enable_x64():
        for f in ways(lambda s: bits.random_unwrap(bits.random_seed(s))):
            np.testing.assert_array_equal(f(seed), want)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits_on_the_host_and_compiled(count, width):
    with gradix.enable_x64():
        eager, compiled = [f(KEY) for f in ways(lambda k: bits.random_bits(k, width, (count,)))]
        assert eager.dtype == np.dtype(f"uint{width}")
        np.testing.assert_array_equal(eager, compiled)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("keys, shape", [((), (3000, 3)), ((), (100, 7, 31)), ((2100,), (2,)), ((50, 3), (9, 4))])
def test_bits_in_short_rows(keys, shape, width):
    """Large arrays of short rows are drawn as one long row."""
    with gradix.enable_x64():
        some = random.split(KEY, keys) if keys else KEY
        compiled = np.asarray(gradix.jit(lambda k: bits.random_bits(k, width, shape))(some))
        assert compiled.shape == keys + shape
        for place in np.ndindex(*keys):
            if sum(place) % 40 == 0:
                row = bits.random_bits(some[place] if keys else some, width, (int(np.prod(shape)),))
                np.testing.assert_array_equal(compiled[place].reshape(-1), row)


def test_bits_are_the_blocks_in_order():
    with gradix.enable_x64():
        first, second = zip(*[block(0, 42, 0, n) for n in range(20)])
        first, second = np.array(first, np.uint64), np.array(second, np.uint64)
        wide = (first << np.uint64(32)) | second
        np.testing.assert_array_equal(bits.random_bits(KEY, 64, (4, 5)), wide.reshape(4, 5))
        np.testing.assert_array_equal(bits.random_bits(KEY, 32, (4, 5)), (first ^ second).reshape(4, 5))
        np.testing.assert_array_equal(bits.random_bits(KEY, 8, (20,)), ((first ^ second) & np.uint64(255)))
        np.testing.assert_array_equal(words(bits.random_split(KEY, (20,))), np.stack([first, second], 1))


@pytest.mark.parametrize(
    "function",
    [
        lambda k: bits.random_bits(k, 16, (3,)),
        lambda k: bits.random_unwrap(bits.random_split(k, (2, 3))),
        lambda k: bits.random_unwrap(bits.random_fold_in(k, np.uint32(9))),
        bits.random_unwrap,
    ],
    ids=["bits", "split", "fold_in", "unwrap"],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_over_keys_is_the_loop(function, axis):
    keys = random.split(KEY, (3, 4))
    for mapped in ways(gradix.vmap(gradix.vmap(function), in_axes=axis)):
        got = np.asarray(mapped(keys))
        for i, j in np.ndindex(got.shape[:2]):
            np.testing.assert_array_equal(got[i, j], function(keys[(i, j) if axis == 0 else (j, i)]))


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_fold_in_over_keys_and_data(in_axes):
    keys = random.split(KEY, 3) if in_axes[0] == 0 else KEY
    data = np.array([4, 5, 6], np.uint32) if in_axes[1] == 0 else np.uint32(4)
    for f in ways(gradix.vmap(bits.random_fold_in, in_axes=in_axes)):
        got = words(f(keys, data))
        for i in range(3):
            row = keys[i] if in_axes[0] == 0 else keys, data[i] if in_axes[1] == 0 else data
            np.testing.assert_array_equal(got[i], words(bits.random_fold_in(*row)))


def test_wrapping_is_the_inverse_of_unwrapping():
    raw = np.arange(12, dtype=np.uint32).reshape(3, 2, 2)
    for f in ways(lambda w: bits.random_unwrap(bits.random_wrap(w))):
        np.testing.assert_array_equal(f(raw), raw)
    mapped = gradix.vmap(lambda w: bits.random_unwrap(bits.random_wrap(w)), in_axes=1)(raw)
    np.testing.assert_array_equal(mapped, raw.transpose(1, 0, 2))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: bits.random_bits(np.zeros(2, np.uint32), 32, (3,)), "typed random keys"),
        (lambda: bits.random_wrap(np.zeros(3, np.uint32)), r"end with \(2,\)"),
        (lambda: bits.random_wrap(np.zeros(2, np.int32)), "uint32"),
        (lambda: bits.random_seed(np.float32(1)), "integer"),
        (lambda: bits.random_bits(KEY, 12, (3,)), "8, 16, 32 or 64"),
        (lambda: bits.random_fold_in(KEY, np.int32(1)), "uint32"),
    ],
)
def test_errors(call, words):
    with pytest.raises(TypeError, match=words):
        call()
