"""Programs drawn at random: divided over eight devices they give what they give on one, and lie where the peer's do."""
import importlib
import importlib.util

import numpy as np
import pytest

import gradix
from tests.devices.eight.common import mesh

SPECS = [(), ("x",), ("y",), (None, "x"), (None, "y"), ("x", "y"), ("y", "x"), (("x", "y"),), (None, ("x", "y")), (("y", "x"), None)]
ONE = [lambda n, a: n.sin(a), lambda n, a: a * 2 + 1, lambda n, a: a.T, lambda n, a: n.cumsum(a, 1), lambda n, a: n.sort(a, 0),
       lambda n, a: n.flip(a, 1), lambda n, a: n.roll(a, 3, 0), lambda n, a: n.tanh(a - a.mean(0)),
       lambda n, a: a.reshape(4, 16).reshape(8, 8),
       lambda n, a: n.where(a > 0, a, 0.5), lambda n, a: a[::-1], lambda n, a: n.concatenate([a[4:], a[:4]]),
       lambda n, a: a - a.max(1, keepdims=True),
       lambda n, a: a.at[2].set(1.0), lambda n, a: n.pad(a, 1)[1:-1, 1:-1], lambda n, a: a.astype("int32").astype("float32"),
       lambda n, a: n.broadcast_to(a[:, :1], (8, 8)), lambda n, a: a.reshape(2, 4, 8).swapaxes(0, 1).reshape(8, 8)]
TWO = [lambda n, a, b: a + b, lambda n, a, b: a * b, lambda n, a, b: a @ b / 8, lambda n, a, b: n.maximum(a, b),
       lambda n, a, b: a.T @ b / 8,
       lambda n, a, b: n.einsum("ij,kj->ik", a, b) / 8, lambda n, a, b: n.where(a > b, a, b)]
LAST = [lambda n, a: a, lambda n, a: a.sum(0), lambda n, a: a.sum(1), lambda n, a: a.max(), lambda n, a: a[3], lambda n, a: a.reshape(-1)]


def program(seed: int):
    """A function of three arrays, drawn by a number; `n` is a NumPy-like module."""
    rng = np.random.RandomState(seed)
    sizes = (3, len(ONE), len(TWO), 3, 3)
    steps = [tuple([rng.randint(n) for n in sizes]) for _ in range(rng.randint(1, 5))]
    last = rng.randint(len(LAST))

    def f(n, *values):
        values = list(values)
        for kind, one, two, i, j in steps:
            values[i] = ONE[one](n, values[i]) if kind else TWO[two](n, values[i], values[j])
        return LAST[last](n, values[steps[-1][3]])
    return f


def parts(sharding, shape):
    return {d.id: tuple([s.indices(n)[:2] for s, n in zip(index, shape)]) for d, index in sharding.devices_indices_map(shape).items()}


def compare(seeds, specs, with_peer: bool):
    rng = np.random.RandomState(seeds[0])
    arrays = [rng.randn(8, 8).astype(np.float32) for _ in range(3)]
    fs = [program(s) for s in seeds]

    def results(name):
        lib, numpy = importlib.import_module(name), importlib.import_module(name + ".numpy")
        m = lib.sharding.Mesh(np.array(lib.devices()).reshape(4, 2), ("x", "y"))
        on = [lib.device_put(a, lib.sharding.NamedSharding(m, lib.sharding.PartitionSpec(*s))) for a, s in zip(arrays, specs)]
        return lib.jit(lambda *xs: [f(numpy, *xs) for f in fs])(*on)

    got = results("gradix")
    alone = gradix.jit(lambda *xs: [f(gradix.numpy, *xs) for f in fs])(*arrays)
    for s, a, b in zip(seeds, got, alone):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=f"program {s} with {specs}")
    if not with_peer:
        return 0
    differing = 0
    for s, a, b in zip(seeds, got, results("jax")):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=f"program {s} with {specs}")
        differing += parts(a.sharding, a.shape) != parts(b.sharding, b.shape)
    return differing


def test_some_programs():
    compare(list(range(12)), (("x",), (None, "y"), ()), False)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")
def test_1600_programs_and_where_their_results_lie():
    """The compiler chooses shardings for both; a handful may differ, as our programs are spelled otherwise."""
    assert mesh().size == 8
    rng, differing = np.random.RandomState(0), 0
    for start in range(0, 1600, 16):
        specs = [SPECS[i] for i in rng.randint(len(SPECS), size=3)]
        differing += compare(list(range(start, start + 16)), specs, True)
    assert differing <= 80, f"{differing} of 1600 results lie elsewhere than the peer's"
