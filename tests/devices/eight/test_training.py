"""Four ways to train a small network over eight devices, which all give the steps of one."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import PartitionSpec as P
from tests.devices.eight.common import mesh, on

RNG = np.random.RandomState(0)
X, Y = RNG.randn(64, 16).astype(np.float32), RNG.randint(0, 8, 64)
START = {"w1": RNG.randn(16, 32).astype(np.float32) / 4, "w2": RNG.randn(32, 8).astype(np.float32) / 6}


def loss(w, x, y):
    logits = jnp.tanh(x @ w["w1"]) @ w["w2"]
    return -jnp.mean(jnp.take_along_axis(gradix.nn.log_softmax(logits), y[:, None], 1))


def step(w, x, y):
    value, g = gradix.value_and_grad(loss)(w, x, y)
    return gradix.tree.map(lambda a, b: a - 0.5 * b, w, g), value


def trained(fitted, w, x, y, steps=5):
    losses = []
    for _ in range(steps):
        w, value = fitted(w, x, y)
        losses.append(float(value))
    return np.array(losses), gradix.device_get(w)


WANT = trained(gradix.jit(step), START, X, Y)


def same(got):
    np.testing.assert_allclose(got[0], WANT[0], rtol=1e-4)
    for k, v in WANT[1].items():
        np.testing.assert_allclose(got[1][k], v, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("w1", "w2", "data"),
    [
        ((), (), ("x",)),
        ((None, "y"), ("y",), ()),
        ((("x", "y"),), (("x", "y"),), (("x", "y"),)),
        ((None, "y"), ("y",), ("x",)),
    ],
    ids=["data", "tensor", "fsdp", "both"],
)
def test_by_shardings(w1, w2, data):
    m = mesh()
    at = {"w1": on(m, *w1), "w2": on(m, *w2)}
    fitted = gradix.jit(step, in_shardings=(at, on(m, *data), on(m, *data)), out_shardings=(at, None))
    same(trained(fitted, gradix.device_put(START, at), X, Y))


def test_by_shard_map_and_pmap():
    m = mesh()

    def part(w, x, y):
        # the weights are the same everywhere, so their gradient is the sum of what the parts contribute
        value, g = gradix.value_and_grad(lambda w: lax.pmean(loss(w, x, y), ("x", "y")))(w)
        return gradix.tree.map(lambda a, b: a - 0.5 * b, w, g), value

    same(
        trained(
            gradix.jit(gradix.shard_map(part, mesh=m, in_specs=(P(), P(("x", "y")), P(("x", "y"))), out_specs=P())),
            START,
            X,
            Y,
        )
    )

    def example(w, x, y):
        value, g = gradix.value_and_grad(loss)(w, x, y)
        return gradix.tree.map(lambda a, b: a - 0.5 * lax.pmean(b, "i"), w, g), lax.pmean(value, "i")

    same(
        trained(
            gradix.pmap(example, axis_name="i", in_axes=(None, 0, 0), out_axes=None),
            START,
            X.reshape(8, 8, 16),
            Y.reshape(8, 8),
        )
    )


def test_a_pipeline_of_stages():
    """Each device has one layer; what a stage has done goes to the next, with its own input, at each turn."""
    n, m = 8, mesh((8,), ("stage",))
    layers, batches = RNG.randn(n, 4, 4).astype(np.float32) / 2, RNG.randn(6, 4).astype(np.float32)

    def pipeline(w, xs):
        here = lax.axis_index("stage")

        def turn(carry, t):
            x = jnp.where(here == 0, xs[jnp.minimum(t, len(batches) - 1)], carry)
            y = jnp.tanh(x @ w[0])
            return lax.ppermute(y, "stage", [(i, (i + 1) % n) for i in range(n)]), y

        _, ys = lax.scan(turn, jnp.zeros(4), jnp.arange(len(batches) + n - 1))
        return lax.psum(jnp.where(here == n - 1, ys[n - 1 :], 0.0), "stage")

    whole = gradix.shard_map(pipeline, mesh=m, in_specs=(P("stage"), P()), out_specs=P())

    def plain(w, xs):
        for layer in w:
            xs = jnp.tanh(xs @ layer)
        return xs

    np.testing.assert_allclose(gradix.jit(whole)(layers, batches), plain(layers, batches), rtol=1e-4, atol=1e-5)
    g = [gradix.jit(gradix.grad(lambda w: (f(w, batches) ** 2).sum()))(layers) for f in (whole, plain)]  # noqa: B023
    np.testing.assert_allclose(*g, rtol=1e-3, atol=1e-5)
