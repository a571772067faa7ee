"""What a program needs of a device: transfers, memory, libraries, loops, random bits, callbacks, donation, files."""

import os
import pickle

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

pytestmark = pytest.mark.filterwarnings("ignore")
PLATFORM = os.environ["GRADIX_TEST_PLATFORM"]
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint32",
    "float16",
    "float32",
    "complex64",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int4",
]


@pytest.fixture(autouse=True)
def device():
    found = gradix.devices(PLATFORM)[0]
    with gradix.default_device(found), gradix.default_matmul_precision("highest"):
        yield found


def test_the_platform_is_the_default(device):
    assert gradix.devices()[0] == device and jnp.ones(3).devices() == {device}
    assert gradix.jit(lambda x: x + 1)(np.ones(3, "f4")).devices() == {device}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (1 << 20,)], ids=str)
def test_transfers(dtype, shape, device):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.random.default_rng(0).integers(0, 2, shape).astype(kind)
    there = gradix.device_put(x, device)
    assert there.devices() == {device}
    np.testing.assert_array_equal(np.asarray(there), x)
    np.testing.assert_array_equal(np.asarray(gradix.device_put(there, gradix.devices("cpu")[0])), x)
    np.testing.assert_array_equal(np.asarray(gradix.jit(lambda x: x)(there)), x)


def test_memory_is_given_back(device):
    def used():
        return (device.memory_stats() or {}).get("bytes_in_use")

    before = used()
    x = gradix.device_put(np.ones(1 << 22, "f4"), device).block_until_ready()
    assert before is None or used() >= before + x.nbytes
    x.delete()
    assert before is None or used() <= before + 4096
    with pytest.raises(RuntimeError):
        np.asarray(x)


@pytest.mark.parametrize("name", ["product", "batched", "convolution", "fft", "sort", "scatter", "cumsum", "reduce"])
def test_large_work(name):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 300)).astype("f4")
    image, kernel = rng.normal(size=(4, 3, 40, 40)).astype("f4"), rng.normal(size=(8, 3, 5, 5)).astype("f4")
    functions = {
        "product": lambda lib: lib.asarray(a) @ lib.asarray(b),
        "batched": lambda lib: lib.asarray(a).reshape(30, 10, 300) @ lib.asarray(b)[None],
        "fft": lambda lib: lib.fft.fft2(lib.asarray(a)),
        "sort": lambda lib: lib.sort(lib.asarray(a).reshape(-1)),
        "cumsum": lambda lib: lib.cumsum(lib.asarray(a), 1),
        "reduce": lambda lib: lib.asarray(a).sum(0) + lib.asarray(b).max(1),
    }
    if name == "convolution":
        got = gradix.jit(lambda: lax.conv(image, kernel, (1, 1), "VALID"))()
        windows = np.lib.stride_tricks.sliding_window_view(image, (5, 5), (2, 3))
        want = np.einsum("ncyxij,ocij->noyx", windows, kernel)
    elif name == "scatter":
        at = rng.integers(0, 50, 9000)
        got = gradix.jit(lambda: jnp.zeros(50).at[at].add(1.0))()
        want = np.bincount(at, minlength=50).astype("f4")
    else:
        got, want = gradix.jit(lambda: functions[name](jnp))(), functions[name](np)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_random_bits_are_those_of_every_platform():
    key = gradix.random.key(7)
    draw = gradix.jit(lambda key: (gradix.random.bits(key, (1000,)), gradix.random.normal(key, (1000,))))
    bits, normal = draw(key)
    with gradix.default_device(gradix.devices("cpu")[0]):
        want_bits, want_normal = (
            gradix.random.bits(gradix.random.key(7), (1000,)),
            gradix.random.normal(gradix.random.key(7), (1000,)),
        )
    np.testing.assert_array_equal(bits, want_bits)
    np.testing.assert_allclose(normal, want_normal, rtol=1e-5, atol=1e-6)


def test_loops_and_their_gradients():
    w = jnp.asarray(np.random.default_rng(0).normal(size=(16, 16)).astype("f4") / 4)

    def loss(w):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), jnp.ones(16), None, length=10)[1].sum()

    got = gradix.jit(gradix.grad(loss))(w)
    eps, direction = 1e-2, np.ones((16, 16), "f4") / 16
    difference = (loss(w + eps * direction) - loss(w - eps * direction)) / (2 * eps)
    np.testing.assert_allclose((np.asarray(got) * direction).sum(), difference, rtol=2e-2)
    assert int(lax.while_loop(lambda i: i < 100, lambda i: i + 7, jnp.int32(0))) == 105


def test_callbacks():
    seen = []
    f = gradix.jit(
        lambda x: gradix.pure_callback(lambda v: np.sin(v), gradix.ShapeDtypeStruct(x.shape, x.dtype), x) * 2
    )
    np.testing.assert_allclose(f(jnp.ones(5)), 2 * np.sin(np.ones(5)), rtol=1e-6)
    gradix.jit(lambda x: gradix.debug.callback(lambda v: seen.append(np.asarray(v).sum()), x))(jnp.ones(5))
    gradix.effects_barrier()
    assert seen == [5.0]


def test_donation():
    x = jnp.ones(1 << 16) + 0
    y = gradix.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert float(y[0]) == 2 and x.is_deleted()


def test_files(tmp_path):
    """An exported function for this platform, a pickled array, a checkpoint."""
    exported = gradix.export.export(gradix.jit(lambda x: jnp.sin(x) @ x), platforms=[PLATFORM])(
        gradix.ShapeDtypeStruct((8, 8), "float32")
    )
    x = jnp.asarray(np.random.default_rng(0).normal(size=(8, 8)).astype("f4"))
    again = gradix.export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(x), np.sin(x) @ np.asarray(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), x)


def test_training_learns():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(256, 8)).astype("f4"), rng.normal(size=(256,)).astype("f4")

    def loss(w):
        return ((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2).mean()

    w = [jnp.asarray(rng.normal(size=s).astype("f4") / 4) for s in ((8, 32), (32,))]
    step = gradix.jit(lambda w: gradix.tree.map(lambda a, g: a - 0.05 * g, w, gradix.grad(loss)(w)))
    first = float(loss(w))
    for _ in range(50):
        w = step(w)
    assert float(loss(w)) < 0.9 * first
