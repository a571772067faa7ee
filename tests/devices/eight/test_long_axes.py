"""Long axes, divided over devices: values, and that no element is computed from all others.

XLA writes some operations as trees only where it does not divide their axis.
"""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.devices.eight.common import mesh, on, sharded

N = 40_000
X = np.random.default_rng(0).normal(size=N).astype(np.float32)
PROGRAMS = {
    "cumsum": (jnp.cumsum, np.cumsum),
    "cumsum, reverse": (lambda x: lax.cumsum(x, reverse=True), lambda x: np.cumsum(x[::-1])[::-1]),
    "cummax": (lax.cummax, np.maximum.accumulate),
    "cummin, reverse": (lambda x: lax.cummin(x, reverse=True), lambda x: np.minimum.accumulate(x[::-1])[::-1]),
    "cumprod": (lambda x: jnp.cumprod(1 + x * 1e-3), lambda x: np.cumprod(1 + x * 1e-3)),
    "cumlogsumexp": (lax.cumlogsumexp, np.logaddexp.accumulate),
    "of a length that no number of devices divides": (lambda x: jnp.cumsum(x[:-3]), lambda x: np.cumsum(x[:-3])),
    "the same, reverse": (lambda x: lax.cumsum(x[:-3], reverse=True), lambda x: np.cumsum(x[:-3][::-1])[::-1]),
    "of columns": (lambda x: jnp.cumsum(x.reshape(-1, 4), 0), lambda x: np.cumsum(x.reshape(-1, 4), 0)),
    "of rows": (lambda x: jnp.cumsum(x.reshape(8, -1), 1), lambda x: np.cumsum(x.reshape(8, -1), 1)),
    "of half precision": (
        lambda x: jnp.cumsum(x.astype("bfloat16")).astype("float32"),
        lambda x: np.cumsum(np.asarray(jnp.asarray(x, "bfloat16"), "float32")),
    ),
    "derivative of cummax": (
        gradix.grad(lambda x: lax.cummax(x).sum()),
        lambda x: np.bincount(
            np.maximum.accumulate(np.where(x == np.maximum.accumulate(x), np.arange(N), 0)), minlength=N
        ),
    ),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=N)[0][: N // 4], lambda x: np.nonzero(x > 0)[0][: N // 4]),
    "a mask": (lambda x: jnp.sort(x[x > 0])[:100], lambda x: np.sort(x[x > 0])[:100]),
    "unique": (lambda x: jnp.unique(jnp.round(x * 9)), lambda x: np.unique(np.round(x * 9))),
    "median": (jnp.median, np.median),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_long_axes(name):
    function, plain = PROGRAMS[name]
    m = mesh((8,), ("x",))
    x = sharded(X, m, "x")
    step = gradix.jit(function, in_shardings=on(m, "x"))
    found, wanted = np.asarray(step(x)), plain(X.astype(np.float64) if "half" not in name else X)
    rtol = 1e-2 if "half" in name else 1e-4
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())
    work = step.lower(x).compile().cost_analysis()["flops"]
    assert work < 500 * N, work / N
