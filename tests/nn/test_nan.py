"""NaN and infinities in sums of exponentials large enough for XLA's library, whose maxima drop NaN."""

import numpy as np
import pytest

import gradix
from gradix import lax, nn, numpy as jnp

INF, NAN = np.inf, np.nan
FUNCTIONS = {
    "softmax": lambda x, **kw: nn.softmax(x, **kw),
    "log_softmax": lambda x, **kw: nn.log_softmax(x, **kw),
    "logsumexp": lambda x, **kw: nn.logsumexp(x, **kw),
    "logmeanexp": lambda x, **kw: nn.logmeanexp(x, **kw),
    "logsumexp with factors": lambda x, **kw: nn.logsumexp(x, b=jnp.asarray(BESIDE), **kw),
    "slopes of softmax": lambda x, **kw: gradix.grad(lambda x: jnp.sum(nn.softmax(x, **kw) * BESIDE))(x),
    "slopes of log_softmax": lambda x, **kw: gradix.grad(lambda x: jnp.sum(nn.log_softmax(x, **kw) * BESIDE))(x),
    "slopes of logsumexp": lambda x, **kw: gradix.grad(lambda x: jnp.sum(nn.logsumexp(x, **kw)))(x),
}
BESIDE = np.random.default_rng(1).uniform(0.5, 1.5, (96, 80)).astype(np.float32)


def marked(dtype):
    """Rows with NaN at the front, the end, everywhere, beside infinities and among large numbers; the same transposed."""
    x = np.random.default_rng(0).standard_normal((96, 80)).astype(dtype)
    x[3, 0], x[4, -1], x[5], x[6, 40] = NAN, NAN, NAN, NAN
    x[7, :5], x[8] = [INF, NAN, 1, -INF, 2], -INF
    x[9, 3], x[10, 3], x[11, :2], x[12] = INF, -INF, [-INF, NAN], [NAN] + 79 * [-INF]
    x[13, 20:23] = [80, NAN, 88]
    return x


def by_rows(f, x, **kw):
    """`f` of one row or column at a time, each too small for the library, on the host."""
    return np.stack([np.asarray(f(jnp.asarray(row), **{k: v[i] for k, v in kw.items()})) for i, row in enumerate(x)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "logmeanexp"])
def test_rows_keep_nan(name, axis, dtype):
    f, x = getattr(nn, name), marked(dtype) if axis else marked(dtype).T
    mask = np.random.default_rng(2).uniform(size=x.shape) < 0.7
    with gradix.enable_x64(True):
        for kw in ({}, {"where": mask}):
            got = np.asarray(gradix.jit(lambda x, kw=kw: f(x, axis=axis, **kw))(jnp.asarray(x)))
            want = by_rows(f, x if axis else x.T, **(kw if axis else {k: v.T for k, v in kw.items()}))
            want = want if axis or want.ndim == 1 else want.T
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
            assert 0 < np.isnan(got).sum() < got.size


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_and_eager_have_nan_in_the_same_places(name):
    x, f = marked("float32"), FUNCTIONS[name]
    masks = [{}] if name == "logmeanexp" else [{}, {"where": np.random.default_rng(2).uniform(size=x.shape) < 0.7}]
    for kw in masks:
        with gradix.disable_jit():
            want = np.asarray(f(jnp.asarray(x), axis=-1, **kw))
        got = np.asarray(gradix.jit(lambda x, kw=kw: f(x, axis=-1, **kw))(x))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_named_axes_keep_nan():
    x = marked("float32")
    got = np.asarray(gradix.jit(gradix.vmap(lambda row: nn.softmax(row, axis="rows"), axis_name="rows"))(x))
    want = by_rows(nn.softmax, x.T).T
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_a_maximum_beside_a_softmax_keeps_nan():
    """The two maxima are of equal arrays, and must not be taken for one."""
    x = marked("float32")

    @gradix.jit
    def both(x):
        return nn.softmax(x, axis=-1), jnp.max(x, axis=-1, keepdims=True, initial=-jnp.inf), lax.reduce_max(x, (1,))

    rows = np.isnan(x).any(1)
    _, kept, plain = both(x)
    np.testing.assert_array_equal(np.isnan(kept)[:, 0], rows)
    np.testing.assert_array_equal(np.isnan(plain), rows)


@pytest.mark.parametrize("f", [nn.softmax, nn.log_softmax, lambda x: nn.logsumexp(x, axis=-1)])
def test_maxima_need_no_guard_and_print_as_maxima(f):
    """XLA makes one call of the maximum and the exponentials only where neither a conditional nor blocks are between them."""
    x = jnp.zeros((96, 80))
    text = gradix.jit(f).lower(x).as_text()
    assert text.count("stablehlo.maximum") == 2 and "stablehlo.case" not in text and "stablehlo.slice" not in text
    assert "reduce_max[axes=(1,)]" in str(gradix.make_jaxpr(f)(x)).replace(" out_sharding=None", "")
