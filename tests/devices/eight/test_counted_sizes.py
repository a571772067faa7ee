"""Sizes that values decide on eight devices: arrays divided along other axes, and selections on each device."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import P
from gradix.sharding import AxisType

X = np.arange(64, dtype=np.float32).reshape(8, 8) % 7 - 2
KEPT = np.array([1, 0, 1, 1, 0, 0, 1, 0], bool)


@pytest.mark.parametrize("kind", [AxisType.Explicit, AxisType.Auto])
def test_divided_along_another_axis(kind):
    mesh = gradix.make_mesh((8,), ("d",), axis_types=(kind,))
    x = gradix.device_put(X, gradix.NamedSharding(mesh, P(None, "d")))
    f = gradix.jit(lambda x, m: (x[m], jnp.sort(x[m], 0)[::-1] * 2, x[m].sum(0)))
    kept, ordered, sums = f(x, KEPT)
    np.testing.assert_array_equal(kept, X[KEPT])
    np.testing.assert_array_equal(ordered, np.sort(X[KEPT], 0)[::-1] * 2)
    np.testing.assert_array_equal(sums, X[KEPT].sum(0))
    slope = gradix.jit(gradix.grad(lambda x, m: (x[m] ** 2).sum()))(x, KEPT)
    np.testing.assert_array_equal(slope, 2 * X * KEPT[:, None])


def test_divided_along_the_selected_axis():
    auto = gradix.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    x = gradix.device_put(X[:, 0], gradix.NamedSharding(auto, P("d")))
    np.testing.assert_array_equal(gradix.jit(lambda x: x[x > 0])(x), X[:, 0][X[:, 0] > 0])
    explicit = gradix.make_mesh((8,), ("d",), axis_types=(AxisType.Explicit,))
    x = gradix.device_put(X[:, 0], gradix.NamedSharding(explicit, P("d")))
    with pytest.raises(gradix.errors.ShardingTypeError, match="reshard"):
        gradix.jit(lambda x: x[x > 0])(x)


def test_each_device_selects():
    mesh = gradix.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))

    def part(x):
        return gradix.lax.psum(jnp.sort(x[x > 0]).sum() + x[x > 1][::-1].sum(), "d")

    f = gradix.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P())
    x = jnp.asarray(X.ravel())
    want = X[X > 0].sum() + X[X > 1].sum()
    for g in (f, gradix.jit(f)):
        np.testing.assert_allclose(g(x), want)
    np.testing.assert_array_equal(gradix.grad(f)(x), (X.ravel() > 0) * 1.0 + (X.ravel() > 1))
    with pytest.raises(NotImplementedError, match="shard_map"):
        gradix.jit(gradix.shard_map(lambda x: x[x > 0], mesh=mesh, in_specs=P("d"), out_specs=P("d")))(x)
