"""pmap: a function on each of several devices."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


def test_maps_over_devices():
    f = gradix.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    y = f(X)
    np.testing.assert_array_equal(y, np.broadcast_to(X.sum(0), (8, 2)))
    assert [s.data.shape for s in y.addressable_shards] == [(1, 2)] * 8 and y.devices() == set(gradix.devices())
    np.testing.assert_array_equal(f(y), np.broadcast_to(8 * X.sum(0), (8, 2)))
    np.testing.assert_array_equal(gradix.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X), X.sum(0))
    np.testing.assert_array_equal(gradix.pmap(lambda x: x + 1, in_axes=1, out_axes=1)(X[:4].T), X[:4].T + 1)
    np.testing.assert_array_equal(
        gradix.pmap(lambda d, n: {"s": d["x"].sum() * n}, in_axes=(0, None))({"x": X}, 2.0)["s"], 2 * X.sum(1)
    )
    np.testing.assert_array_equal(gradix.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(X, 3), 3 * X)
    np.testing.assert_array_equal(gradix.pmap(lambda x, k=1: x * k)(X, k=np.arange(8.0)), X * np.arange(8.0)[:, None])
    assert gradix.pmap(lambda x: x, devices=gradix.devices()[4:6])(X[:2]).devices() == set(gradix.devices()[4:6])


def test_with_other_transformations():
    sums = gradix.pmap(lambda x: lax.psum(jnp.sin(x), "i"), axis_name="i")
    np.testing.assert_allclose(gradix.grad(lambda x: sums(x).sum())(X), 8 * np.cos(X), rtol=1e-4, atol=1e-5)
    square = gradix.pmap(lambda x: gradix.grad(lambda y: lax.psum(y * y, "i"))(x), axis_name="i")
    np.testing.assert_array_equal(square(X[:, 0]), 16 * X[:, 0])
    np.testing.assert_allclose(gradix.vmap(sums)(np.stack([X, X])), np.stack([sums(X)] * 2), rtol=1e-5)
    scanned = gradix.pmap(lambda x: lax.scan(lambda c, _: (lax.psum(c, "i"), c), x, None, length=3)[1], axis_name="i")
    np.testing.assert_array_equal(scanned(np.ones(8, "f")), np.tile([1.0, 8.0, 64.0], (8, 1)))
    nested = gradix.pmap(
        lambda x: gradix.pmap(lambda y: y + 10 * lax.axis_index("o") + lax.psum(y, "k"), axis_name="k")(x),
        axis_name="o",
    )
    np.testing.assert_array_equal(nested(X[:2]), X[:2] + 10 * np.arange(2)[:, None] + X[:2].sum(1, keepdims=True))
    assert gradix.jit(gradix.pmap(lambda x: x + 1))(X).sharding.shard_shape((8, 2)) == (1, 2)
    y = gradix.pmap(lambda x: x)(X)
    gradix.pmap(lambda x: x + 1, donate_argnums=0)(y)
    assert y.is_deleted()


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: gradix.pmap(lambda x: x)(np.ones((9, 2))), ValueError, "requires 9 logical devices, but 8"),
        (lambda: gradix.pmap(lambda x: x)(np.ones(())), ValueError, "rank should be at least 1"),
        (lambda: gradix.pmap(lambda x, y: x)(X, X[:4]), ValueError, "x has 8, y has 4"),
        (lambda: gradix.pmap(lambda x: x, in_axes=None)(X), ValueError, "nothing is mapped"),
        (lambda: gradix.pmap(lambda x: x, in_axes=(0, 0))(X), ValueError, "2 entries"),
        (lambda: gradix.pmap(lambda x: x, axis_size=4)(X), ValueError, "axis_size has 4"),
        (lambda: gradix.pmap(3), TypeError, "expects a function"),
    ],
)
def test_wrong_use(call, kind, match):
    with pytest.raises(kind, match=match):
        call()


def test_gradients_after_a_call_with_values():
    """The second call is traced, with an argument of the same shape and dtype as that of the first."""
    doubled = gradix.pmap(lambda x: x * lax.psum(x, "i"), "i")
    x = np.arange(8.0, dtype="float32")
    np.testing.assert_array_equal(doubled(x), x * x.sum())
    np.testing.assert_allclose(gradix.grad(lambda x: (doubled(x) * x).sum())(x), 2 * x * x.sum() + (x * x).sum())


def test_no_devices():
    with pytest.raises(ValueError, match="empty list of devices"):
        gradix.pmap(lambda x: x, devices=[])
