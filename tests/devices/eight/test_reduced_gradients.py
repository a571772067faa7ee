"""Gradients by values that are reduced over mesh axes are summands: their sum is the gradient of the plain value."""
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.sharding import AxisType, PartitionSpec as P, reshard

REDUCED = {
    "sum": jnp.sum, "mean": jnp.mean, "transpose": lambda v: (v.T * 3).sum(), "double": lambda v: (v + v).sum(), "broadcast": lambda v: jnp.broadcast_to(v, (3, 4, 2)).sum(),
    "square": lambda v: (v * v).sum(), "exp": lambda v: jnp.exp(v).sum(), "sin": lambda v: jnp.sin(v).sum(), "squeeze": lambda v: v[None].squeeze(0).sum(),
    "slice": lambda v: v[1:3].sum(), "element": lambda v: v[0, 1], "tanh": lambda v: jnp.tanh(v).sum(), "relu": lambda v: gradix.nn.relu(v - 2).sum(),
    "where": lambda v: jnp.where(v > 1, v, 0.0).sum(), "one": lambda v: (v * 1).sum(), "half": lambda v: (v / 2 - 3).sum(), "minus": lambda v: (3.0 - v).sum(),
    "power": lambda v: (v**3).sum(), "max": lambda v: v.max(), "reshape": lambda v: (v.reshape(8) ** 2).sum(), "concatenate": lambda v: jnp.concatenate([v, v]).sum(),
    "cumsum": lambda v: jnp.cumsum(v, 1).sum(),
    "pad": lambda v: (jnp.pad(v, 1, constant_values=2.0) ** 2).sum(),
}


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_gradients_of_reduced_values_sum_to_those_of_plain_ones(name, shape):
    x = np.arange(1.0, 9.0, dtype=np.float32).reshape(4, 2) / 4
    m = gradix.make_mesh(shape, ("x", "y")[:len(shape)], axis_types=(AxisType.Explicit,) * len(shape))
    with gradix.set_mesh(m):
        given = gradix.device_put(x, P(reduced={"x"}))
        slope = gradix.jit(gradix.grad(REDUCED[name]))(given)
        assert gradix.typeof(slope).sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(reshard(slope, P()), gradix.grad(REDUCED[name])(x), 1e-6)


@pytest.mark.parametrize("value", [3.5, np.inf, -0.0])
def test_a_value_becomes_summands(value):
    m = gradix.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x = np.full((4, 2), value, np.float32)
    with gradix.set_mesh(m):
        for before, after in ((P(), P(unreduced={"x"})), (P("y"), P("y", unreduced={"x"})), (P("x"), P(unreduced={"x"})), (P(), P(unreduced={"x", "y"}))):
            parts = gradix.jit(lambda v: reshard(v, after))(gradix.device_put(x, before))
            np.testing.assert_array_equal(reshard(parts, P()), x)
