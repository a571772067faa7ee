"""Activations, normalisation, attention and initializers against their formulas."""

import numpy as np
import pytest
import scipy.special as sp

import gradix
from gradix import nn, numpy as jnp, random
from gradix.nn import initializers

X = np.array([-30.0, -3.0, -1.0, -0.5, 0.3, 0.7, 1.5, 3.0, 20.0], np.float32)
W = X.astype(np.float64)

FORMULAS = {
    "relu": np.maximum(W, 0),
    "relu6": np.clip(W, 0, 6),
    "hard_tanh": np.clip(W, -1, 1),
    "sigmoid": sp.expit(W),
    "silu": W * sp.expit(W),
    "softplus": np.logaddexp(W, 0),
    "log_sigmoid": -np.logaddexp(-W, 0),
    "soft_sign": W / (1 + abs(W)),
    "elu": np.where(W > 0, W, np.expm1(W)),
    "celu": np.where(W > 0, W, np.expm1(W)),
    "leaky_relu": np.where(W > 0, W, 0.01 * W),
    "hard_sigmoid": np.clip(W + 3, 0, 6) / 6,
    "hard_silu": W * np.clip(W + 3, 0, 6) / 6,
    "mish": W * np.tanh(np.logaddexp(W, 0)),
    "squareplus": (W + np.sqrt(W * W + 4)) / 2,
    "tanh": np.tanh(W),
    "sparse_sigmoid": np.clip((W + 1) / 2, 0, 1),
    "selu": 1.0507009873554805 * np.where(W > 0, W, 1.6732632423543772 * np.expm1(W)),
    "sparse_plus": np.where(W < -1, 0, np.where(W > 1, W, (W + 1) ** 2 / 4)),
    "softmax": sp.softmax(W),
    "log_softmax": sp.log_softmax(W),
    "logsumexp": sp.logsumexp(W),
    "logmeanexp": sp.logsumexp(W) - np.log(W.size),
    "standardize": (W - W.mean()) / np.sqrt(W.var() + 1e-5),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name):
    function = getattr(nn, name)
    np.testing.assert_allclose(function(jnp.array(X)), FORMULAS[name], rtol=3e-5, atol=2e-6)
    np.testing.assert_allclose(gradix.jit(function)(jnp.array(X)), FORMULAS[name], rtol=3e-5, atol=2e-6)


@pytest.mark.parametrize("name", [n for n in FORMULAS if n not in ("standardize",)])
def test_derivatives(name):
    function = getattr(nn, name)
    with gradix.enable_x64(True):
        total = lambda x: jnp.sum(function(x) * jnp.arange(1.0, 10.0))  # noqa: E731
        x, step = jnp.array(W), 1e-6
        numeric = [(total(x.at[i].add(step)) - total(x.at[i].add(-step))) / (2 * step) for i in range(W.size)]
        # sparse_plus, elu and their like have corners at -1, 0 and 1: look beside them.
        away = ~np.isin(W, (-3.0, -1.0, 3.0))
        slopes = np.asarray(gradix.grad(total)(x))
        np.testing.assert_allclose(slopes[away], np.array(numeric)[away], rtol=1e-4, atol=1e-6)


def test_derivatives_at_corners():
    assert [float(gradix.grad(nn.relu)(x)) for x in (-1.0, 0.0, 1.0)] == [0, 0, 1]
    assert [float(gradix.grad(nn.relu6)(x)) for x in (0.0, 1.0, 6.0)] == [0, 1, 0]
    assert float(gradix.grad(lambda x: nn.elu(x))(1000.0)) == 1


def test_gelu():
    phi = 0.5 * (1 + sp.erf(W / np.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(jnp.array(X), approximate=False), W * phi, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nn.gelu(jnp.array(X)), W * phi, atol=2e-3)


def test_glu():
    np.testing.assert_allclose(nn.glu(jnp.array([[2.0, 0.0]])), [[1.0]])
    with pytest.raises(ValueError, match="divisible by 2"):
        nn.glu(jnp.ones(3))


def test_masks():
    x, mask = jnp.array([1.0, 2.0, 1000.0]), jnp.array([True, True, False])
    np.testing.assert_allclose(nn.softmax(x, where=mask), [*sp.softmax([1.0, 2.0]), 0], rtol=1e-6)
    np.testing.assert_allclose(nn.log_softmax(x, where=mask), [*sp.log_softmax([1.0, 2.0]), -np.inf], rtol=1e-6)
    np.testing.assert_allclose(nn.logsumexp(x, where=mask), sp.logsumexp([1.0, 2.0]), rtol=1e-6)
    assert np.isfinite(gradix.grad(lambda x: nn.softmax(x, where=mask)[0])(x)).all()


def test_logsumexp_signs_and_infinities():
    value, sign = nn.logsumexp(jnp.array([1.0, 2.0]), b=jnp.array([1.0, -2.0]), return_sign=True)
    np.testing.assert_allclose(value, 2.48988, rtol=1e-5)
    assert sign == -1 and np.isnan(nn.logsumexp(jnp.array([1.0, 2.0]), b=jnp.array([1.0, -2.0])))
    assert nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf])) == -np.inf
    assert nn.logsumexp(jnp.array([jnp.inf, 1.0])) == np.inf


def test_one_hot():
    np.testing.assert_array_equal(nn.one_hot(jnp.array([1, -1, 3]), 3), [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    assert nn.one_hot(jnp.array([[1, 0]]), 4, axis=1, dtype="int8").shape == (1, 4, 2)


def attention(q, k, v, allowed):
    n, heads = q.shape[2], k.shape[2]
    k, v = np.repeat(k, n // heads, 2), np.repeat(v, n // heads, 2)
    scores = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    weights = sp.softmax(np.where(allowed, scores, -np.inf), axis=-1)
    return np.einsum("bnts,bsnh->btnh", weights, v)


@pytest.mark.parametrize(
    "options, allowed",
    [
        ({}, np.ones((5, 6), bool)),
        ({"is_causal": True}, np.tri(5, 6, dtype=bool)),
        ({"local_window_size": (1, 2)}, np.tri(5, 6, 2, dtype=bool) & ~np.tri(5, 6, -2, dtype=bool)),
    ],
    ids=["full", "causal", "local"],
)
def test_attention(options, allowed):
    r = np.random.default_rng(0)
    q, k, v = [r.normal(size=s).astype(np.float32) for s in ((2, 5, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8))]
    out = nn.dot_product_attention(jnp.array(q), jnp.array(k), jnp.array(v), **options)
    np.testing.assert_allclose(out, attention(q, k, v, allowed), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(), (6,), (5, 1), (1, 5, 6), (4, 1, 1), (2, 1, 5, 6)], ids=str)
def test_masks_and_biases_broadcast_as_arrays_do(shape):
    r = np.random.default_rng(0)
    q, k = [jnp.array(r.normal(size=s).astype(np.float32)) for s in ((2, 5, 4, 8), (2, 6, 4, 8))]
    part = r.normal(size=shape).astype(np.float32)
    whole = np.broadcast_to(part, (2, 4, 5, 6))
    for kind, value in (("bias", lambda x: x), ("mask", lambda x: x > -1)):
        want = nn.dot_product_attention(q, k, k, **{kind: value(whole)})
        np.testing.assert_allclose(nn.dot_product_attention(q, k, k, **{kind: value(part)}), want, rtol=1e-6)
    with pytest.raises(ValueError, match="got shape \\(1, 1, 1, 1, 1\\)"):
        nn.dot_product_attention(q, k, k, bias=np.ones((1,) * 5, "float32"))


def test_attention_checks_shapes():
    with pytest.raises(ValueError, match="multiple of K"):
        nn.dot_product_attention(jnp.ones((1, 2, 3, 4)), jnp.ones((1, 2, 2, 4)), jnp.ones((1, 2, 2, 4)))


@pytest.mark.parametrize(
    "name, variance",
    [
        ("glorot_normal", 2 / 500),
        ("glorot_uniform", 2 / 500),
        ("he_normal", 2 / 200),
        ("he_uniform", 2 / 200),
        ("lecun_normal", 1 / 200),
        ("lecun_uniform", 1 / 200),
    ],
)
def test_initializers(name, variance):
    drawn = np.asarray(getattr(initializers, name)()(random.key(0), (200, 300)))
    np.testing.assert_allclose(drawn.var(), variance, rtol=0.03)
    with pytest.raises(ValueError, match="at least two axes"):
        getattr(initializers, name)()(random.key(0), (3,))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 3, 4), (4, 3, 2)])
@pytest.mark.parametrize("column_axis", [-1, 0])
def test_orthogonal_initializer(shape, column_axis):
    drawn = np.asarray(initializers.orthogonal(2.0, column_axis)(random.key(0), shape))
    assert drawn.shape == shape
    w = np.moveaxis(drawn, column_axis, -1).reshape(-1, shape[column_axis]) / 2
    small = w @ w.T if w.shape[0] < w.shape[1] else w.T @ w
    np.testing.assert_allclose(small, np.eye(min(w.shape)), atol=1e-5)


@pytest.mark.parametrize("space", [(3,), (3, 4), (2, 3, 1)])
def test_delta_orthogonal_keeps_lengths(space):
    drawn = np.asarray(initializers.delta_orthogonal()(random.key(0), (*space, 2, 4)))
    centre = drawn[tuple((n - 1) // 2 for n in space)]
    np.testing.assert_allclose(centre @ centre.T, np.eye(2), atol=1e-6)
    assert np.count_nonzero(drawn) == np.count_nonzero(centre)


@pytest.mark.parametrize(
    "make, shape, match",
    [
        (initializers.orthogonal, (3,), "at least two axes"),
        (initializers.delta_orthogonal, (3, 3), "one to three spatial axes"),
        (initializers.delta_orthogonal, (3, 4, 2), "number of inputs"),
    ],
)
def test_orthogonal_initializers_refuse(make, shape, match):
    with pytest.raises(ValueError, match=match):
        make()(random.key(0), shape)
