"""Reductions of half precisions with more elements, or larger squares, than float16 has numbers for."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import nn
from gradix.scipy import stats

N = 70_000  # above the greatest float16
ONES, SIGNS = np.ones(N), np.where(np.arange(N) % 2, 1.0, -1.0)
# the function, its operand, the result
CASES = {
    "mean": (jnp.mean, ONES, 1.0),
    "nanmean": (jnp.nanmean, ONES, 1.0),
    "var": (jnp.var, SIGNS, 1.0),
    "std": (jnp.std, SIGNS, 1.0),
    "nanvar": (jnp.nanvar, SIGNS, 1.0),
    "nanstd": (jnp.nanstd, SIGNS, 1.0),
    "average": (jnp.average, ONES, 1.0),
    "weighted average": (lambda x: jnp.average(x, weights=x), ONES, 1.0),
    "cov": (jnp.cov, SIGNS, 1.0),
    "corrcoef": (lambda x: jnp.corrcoef(x, x)[0, 1], SIGNS, 1.0),
    "norm": (jnp.linalg.norm, ONES, N**0.5),
    "vector_norm": (jnp.linalg.vector_norm, ONES, N**0.5),
    "norm of order 3": (lambda x: jnp.linalg.norm(x, 3), ONES, N ** (1 / 3)),
    "norm of large numbers": (jnp.linalg.norm, np.full(4, 300.0), 600.0),
    "norm of small numbers": (jnp.linalg.norm, np.full(4, 2.0**-13), 2.0**-12),
    "frobenius": (lambda x: jnp.linalg.matrix_norm(x), np.full((2, 2), 300.0), 600.0),
    "trapezoid": (lambda x: jnp.trapezoid(x, dx=1 / 1024), ONES, (N - 1) / 1024),
    "sem": (stats.sem, SIGNS, N**-0.5),
    "logsumexp": (nn.logsumexp, 0 * ONES, np.log(N)),
    "softmax": (lambda x: nn.softmax(x)[0], 0 * ONES, 1 / N),
    "log_softmax": (lambda x: nn.log_softmax(x)[0], 0 * ONES, -np.log(N)),
    "linspace": (lambda x: jnp.linspace(0 * x[0], x[0], N)[N // 2], ONES, 0.5),
}


@pytest.mark.parametrize("dtype, tolerance", [("float16", 4e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("name", CASES)
def test_half_precision_sums_and_counts_do_not_overflow(name, dtype, tolerance):
    function, operand, want = CASES[name]
    x = jnp.asarray(operand, dtype)
    for way in (function, gradix.jit(function)):
        out = way(x)
        assert out.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(out).astype("f8"), want, rtol=tolerance)


@pytest.mark.parametrize(
    "function, operand, slope",
    [
        (jnp.linalg.norm, np.full(4, 300.0), 0.5),
        (jnp.mean, np.ones(100), 0.01),
        (lambda x: nn.log_softmax(x)[0], np.zeros(N), 1.0),
    ],
)
def test_gradients_of_half_precision_reductions(function, operand, slope):
    x = jnp.asarray(operand, "float16")
    for g in (gradix.grad(function), gradix.jit(gradix.grad(function))):
        np.testing.assert_allclose(np.asarray(g(x)).astype("f8")[0], slope, rtol=4e-3)
