"""`interp` between infinite values and from infinite points is NumPy's, and its derivatives stay finite elsewhere."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

INF = np.inf
VALUES = list(itertools.product((-INF, 1.0, INF), repeat=3))


@pytest.mark.parametrize("points", [(0.0, 1.0, 2.0), (-INF, 1.0, 2.0), (0.0, 1.0, INF), (-INF, 0.5, INF)])
@pytest.mark.parametrize("engine", ["host", "compiled"])
def test_values_are_numpys(points, engine):
    x = np.float32([-INF, -3, 0, 0.25, 0.5, 1, 1.5, 2, 7, INF, np.nan])
    f = jnp.interp if engine == "host" else gradix.jit(jnp.interp)
    for values in VALUES:
        with np.errstate(all="ignore"):
            want = np.interp(x, points, values)
        np.testing.assert_array_equal(
            np.asarray(f(x, np.float32(points), np.float32(values))), want.astype(np.float32), err_msg=str(values)
        )


def test_derivatives_beside_infinite_values():
    values = jnp.array([1.0, 3.0, INF, INF])
    slope = gradix.grad(lambda x: jnp.interp(x, jnp.arange(4.0), values))
    assert slope(0.5) == 2 and slope(-1.0) == 0
    tiny = jnp.exp(jnp.linspace(-80, -20, 50))
    for wrt in (0, 1, 2):
        found = gradix.grad(lambda *args: jnp.interp(*args).sum(), wrt)(tiny * 1.01, tiny, jnp.ones(50))
        assert np.isfinite(found).all()
