"""Small captured arrays are written into the program, floats for the first values; others are hidden arguments."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

DTYPES = ["int32", "int8", "bool", "uint32", "float32", "complex64"]
WRITTEN = {"int32", "int8", "bool", "float32", "complex64"}


@pytest.fixture(autouse=True)
def _no_values_were_captured_before():
    gradix.clear_caches()


def _arguments(f, *args) -> int:
    head = f.lower(*args).as_text().partition("func.func public @main(")[2].partition(") ->")[0]
    return head.count("%arg")


@pytest.mark.parametrize("size", [0, 1, 16, 70, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_and_what_is_an_argument(dtype, size):
    captured = np.arange(size).astype(dtype)
    f = gradix.jit(lambda x: x * captured)
    x = np.float32(2)
    np.testing.assert_allclose(f(x), x * captured)
    is_written = dtype in WRITTEN and captured.nbytes <= 1024
    assert _arguments(f, x) == (1 if is_written else 2)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.grad, gradix.vmap], ids=["plain", "grad", "vmap"])
def test_written_indices_beside_hidden_arguments_donations_and_statics(transform):
    i, scale = np.array([2, -1, 0]), np.arange(3, dtype=np.float32)

    @gradix.jit
    def f(x):
        taken = x[i] * scale
        return taken.sum(-1) if x.ndim == 1 else taken

    x = np.arange(4, dtype=np.float32)
    x = np.stack([x, x + 1]) if transform is gradix.vmap else x
    whole = transform(lambda x: (x[i] * scale).sum())
    np.testing.assert_allclose(transform(f)(x), whole(x))
    g = gradix.jit(lambda n, unused, x, y: x.at[i].add(n * y), static_argnums=0, donate_argnums=2, keep_unused=True)
    given = jnp.arange(4.0)
    np.testing.assert_allclose(g(2, jnp.ones(3), given, jnp.ones(3)), [2, 1, 4, 5])
    assert given.is_deleted()


def test_functions_made_anew_around_other_indices_have_their_own():
    x = jnp.arange(5.0)
    for k in range(5):
        i = np.array([k, 0])
        np.testing.assert_allclose(gradix.jit(lambda x: x[i] + 1)(x), [k + 1, 1])  # noqa: B023
    held = {"i": np.array([1, 2])}
    f = gradix.jit(lambda x: x[held["i"]])
    np.testing.assert_allclose(f(x), [1, 2])
    held["i"] = np.array([3, 4])
    np.testing.assert_allclose(gradix.jit(lambda x: x[held["i"]])(x), [3, 4])


def test_equal_arrays_are_one_constant():
    def fit(y):
        start = jnp.array([1.0, 1.0])
        return lax.while_loop(lambda c: c[1] < 50, lambda c: (c[0] - 0.1 * (c[0] - y), c[1] + 1), (start, 0))[0]

    f, y = gradix.jit(lambda y: (fit(y), fit(y))), np.array([3, 4], np.float32)
    assert _arguments(f, y) == 1 and f.lower(y).as_text().count("stablehlo.while") == 1
    first, second = f(y)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, y - 0.9**50 * (y - 1), rtol=1e-5)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.grad, gradix.checkpoint], ids=["plain", "grad", "remat"])
@pytest.mark.parametrize("a, b", [(2, 2), (2, 3), (0.0, -0.0), (np.nan, np.nan), (np.inf, -np.inf)])
def test_constants_keep_all_their_bits(transform, a, b):
    a, b = np.array([a, 1], np.float32), np.array([b, 1], np.float32)

    def f(x):
        return (x * a + jnp.copysign(1, b) * jnp.sin(x) + jnp.where(jnp.isfinite(b), b, 3)).sum()

    x = np.array([3, 4], np.float32)
    np.testing.assert_allclose(gradix.jit(transform(f))(x), transform(f)(x), rtol=1e-6)


@pytest.mark.parametrize("whole", [lambda f: f, gradix.grad, gradix.vmap], ids=["plain", "grad", "vmap"])
def test_functions_made_anew_around_other_floats_share_one_compilation(whole):
    """The first values are constants; all others are arguments of one more program."""
    x, made = jnp.arange(3.0), []
    for k in [1, 2, 3, 1, 4, 2]:
        scale, shift = np.float32([k]), np.float32([k, k])
        f = gradix.jit(whole(lambda x: (x * scale - shift).sum()))  # noqa: B023
        given = x if whole is gradix.vmap else x[k % 3]
        np.testing.assert_array_equal(f(given), whole(lambda x: (x * scale - shift).sum())(given))  # noqa: B023
        made.append(f.lower(given).as_text())
    assert len(set(made)) == 2 and made[0] == made[3] and made[1] == made[2] == made[4] == made[5]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_constants_outlive_a_donation_of_what_was_captured(dtype):
    captured = jnp.array([1, 2, 3], dtype)
    f = gradix.jit(lambda x: x * captured)
    x, expected = np.ones(3, dtype), np.array([1, 2, 3], dtype)
    np.testing.assert_array_equal(f(x), expected)
    text = f.lower(x).as_text()
    gradix.jit(lambda y: y + 1, donate_argnums=0)(captured)
    assert captured.is_deleted()
    np.testing.assert_array_equal(f(x), expected)
    assert f.lower(x).as_text() == text


def test_a_trace_keeps_its_constants_when_others_come():
    x = jnp.arange(3.0)
    functions = [gradix.jit(lambda x, k=k: x * np.float32([k])) for k in (1, 2)]
    texts = [f.lower(x).as_text() for f in functions]
    for f, k in zip(functions, (1, 2)):
        np.testing.assert_array_equal(f(x), k * x)
    assert [f.lower(x).as_text() for f in functions] == texts and texts[0] != texts[1]


def test_small_arrays_of_devices_mutable_arrays_and_keys_are_arguments():
    key, ref = gradix.random.key(1), gradix.new_ref(jnp.float32([1, 2]))
    f = gradix.jit(lambda x: x * ref[...] + gradix.random.uniform(key))
    x = np.float32([3, 4])
    before = f(x)
    ref[...] = jnp.float32([2, 4])
    np.testing.assert_allclose(f(x) - before, x * [1, 2], rtol=1e-5)
    assert "threefry" in f.lower(x).as_text() and _arguments(f, x) == 3


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_captured_keys_stay_arguments_and_draw_the_same(impl, shape):
    key = gradix.random.key(42, impl=impl)
    keys = gradix.random.split(key, shape) if shape else key
    draw = gradix.vmap(lambda k: gradix.random.uniform(k, (2,))) if shape else lambda k: gradix.random.uniform(k, (2,))
    f = gradix.jit(lambda x: draw(keys) + x)
    np.testing.assert_array_equal(f(0.0), draw(keys))
    np.testing.assert_array_equal(gradix.jit(lambda: draw(keys))(), draw(keys))
    assert len(f.trace(0.0).jaxpr.consts) == 1


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64", "bool"])
def test_writing_captured_arrays_is_no_transfer(dtype):
    captured, x = jnp.array([1, 0, 3], dtype), jnp.arange(3.0)
    with gradix.transfer_guard("disallow"):
        found = gradix.jit(lambda v: v + captured)(x)
    np.testing.assert_array_equal(found, np.arange(3.0) + np.array([1, 0, 3], dtype))


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_wide_captured_arrays_keep_their_width(dtype):
    with gradix.enable_x64(True):
        captured, x = jnp.array([1, 2**40 + 1, 3], dtype), jnp.zeros(3, dtype)
        f = gradix.jit(lambda v: v + captured)
        traced = f.trace(x)
    np.testing.assert_array_equal(traced.lower().compile()(x), captured)
