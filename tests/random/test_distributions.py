"""Distributions drawn by rejection, and vectors: JAX's numbers, derivatives, shapes and errors."""

import numpy as np
import pytest
from scipy import special

import gradix
import gradix.numpy as jnp
from gradix import random
from gradix._base.bounded import BoundedCache
from gradix._core.array import ArrayImpl
from gradix.random import draws

# What JAX draws from key(7), rounded to 7 digits.
KNOWN = [
    ("gamma(key, 0.3, (3,))", [6e-07, 0.1585294, 7.05e-05]),
    ("gamma(key, 4.0, (3,))", [4.2542052, 2.3923244, 2.5177052]),
    ("loggamma(key, 0.01, (3,))", [-438.7729797, -28.8319626, -263.6972656]),
    ("beta(key, 0.5, 2.0, (3,))", [0.0193925, 0.2121132, 0.0013492]),
    ("chisquare(key, 3.0, (3,))", [3.0220666, 1.0437909, 1.1556823]),
    ("dirichlet(key, jnp.array([0.5, 1.0, 2.0]))", [0.0002023, 0.1886637, 0.811134]),
    ("f(key, 3.0, 4.0, (3,))", [0.5525163, 1.1639649, 1.7831295]),
    ("t(key, 3.0, (3,))", [2.315182, 0.1499487, -0.5002365]),
    ("poisson(key, 3.0, (3,))", [4.0, 1.0, 1.0]),
    ("poisson(key, 50.0, (3,))", [54.0, 58.0, 48.0]),
    ("binomial(key, 10, 0.3, (3,))", [5.0, 4.0, 3.0]),
    ("binomial(key, 100, 0.6, (3,))", [57.0, 55.0, 62.0]),
    ("multinomial(key, 20, jnp.array([0.2, 0.3, 0.5]))", [5.0, 6.0, 9.0]),
    ("multivariate_normal(key, jnp.array([1.0, 2.0]), jnp.array([[2.0, 0.5], [0.5, 1.0]]))", [1.6381428, 3.9868217]),
    ("orthogonal(key, 2)", [[0.6581126, 0.7529195], [-0.7529195, 0.6581126]]),
    ("ball(key, 3)", [-0.3638842, 0.3945854, 0.1197582]),
    ("generalized_normal(key, 1.5, (3,))", [-0.1131488, -0.7860649, 0.0586738]),
]


@pytest.mark.x32
@pytest.mark.parametrize("text, want", KNOWN, ids=[k[0] for k in KNOWN])
def test_same_numbers_as_jax(text, want):
    key = random.key(7)
    draw = eval(f"lambda key: random.{text}", {"random": random, "jnp": jnp})
    for got in (draw(key), gradix.jit(draw)(key), gradix.vmap(draw)(key[None])[0]):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("a", [0.05, 0.7, 3.0, 60.0])
def test_gamma_moves_with_its_shape_at_a_fixed_probability(a):
    with gradix.enable_x64(True):
        key = random.key(3)
        x, slope = gradix.value_and_grad(lambda a: random.gamma(key, a))(a)
        h = 1e-6 * a
        p = special.gammainc(a, float(x))
        want = (special.gammaincinv(a + h, p) - special.gammaincinv(a - h, p)) / (2 * h)
        np.testing.assert_allclose(float(slope), want, rtol=1e-4)
        logarithm, log_slope = gradix.value_and_grad(lambda a: random.loggamma(key, a))(a)
        np.testing.assert_allclose([float(logarithm), float(log_slope)], [np.log(float(x)), want / float(x)], rtol=1e-4)


def test_derivative_of_a_number_that_underflows():
    key = random.key(7)
    value, slope = gradix.value_and_grad(lambda a: random.loggamma(key, a))(0.001)
    assert value < -150
    np.testing.assert_allclose(float(slope), (special.psi(1.001) - float(value)) / 0.001, rtol=1e-4)


def test_derivative_of_beta_by_its_quantile():
    with gradix.enable_x64(True):
        draw = lambda a, b: random.beta(random.key(0), a, b, (1000,)).mean()  # noqa: E731
        by_a, by_b = gradix.grad(draw, (0, 1))(2.0, 3.0)
    np.testing.assert_allclose([by_a, by_b], [3 / 25, -2 / 25], rtol=0.1)  # of a / (a + b)


def test_dirichlet_sums_to_one():
    drawn = random.dirichlet(random.key(0), jnp.full(5, 1e-3), (100,))
    np.testing.assert_allclose(np.asarray(drawn.sum(-1)), 1, rtol=1e-5)


def test_multinomial_shapes():
    p = jnp.ones((3, 4)) / 4
    counts = random.multinomial(random.key(0), jnp.array([0.0, 10.0, 20.0]), p, shape=(2, 3, p.shape[-1]))
    assert counts.shape == (2, 3, 4)
    np.testing.assert_array_equal(np.asarray(counts.sum(-1)), [[0, 10, 20]] * 2)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_covariance(method):
    cov = np.array([[2, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 0.7]], "f4")
    drawn = np.asarray(random.multivariate_normal(random.key(0), jnp.zeros(3), cov, (20000,), method=method))
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.06)


@pytest.mark.parametrize("n, m", [(3, 3), (5, 2), (2, 5), (0, 0), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_orthogonal(n, m, dtype):
    q = np.asarray(random.orthogonal(random.key(0), n, (2,), dtype, m))
    assert q.shape == (2, n, m) and q.dtype == dtype
    small = q @ q.conj().swapaxes(-1, -2) if n < m else q.conj().swapaxes(-1, -2) @ q
    np.testing.assert_allclose(small, np.broadcast_to(np.eye(min(n, m)), small.shape), atol=1e-5)


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda k: random.gamma(k, jnp.ones(3), (2,)), "broadcasting"),
        (lambda k: random.gamma(k, 1.0, dtype="int32"), "float"),
        (lambda k: random.poisson(k, 1.0, dtype="float32"), "int"),
        (lambda k: random.dirichlet(k, 1.0), "ndim >= 1"),
        (lambda k: random.dirichlet(k, jnp.ones((2, 3)), (4,)), r"\(2, 3\)"),
        (lambda k: random.multinomial(k, jnp.ones(3), jnp.ones(4), shape=(2, 4)), "n of shape"),
        (lambda k: random.multivariate_normal(k, jnp.zeros(3), jnp.eye(2)), "n=3"),
        (lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2), method="lu"), "cholesky"),
        (lambda k: random.multivariate_normal(k, 0.0, jnp.eye(2)), "mean.ndim"),
    ],
)
def test_errors(call, match):
    with pytest.raises(ValueError, match=match):
        call(random.key(0))


def test_numbers_met_first_while_tracing_are_none_of_the_trace(monkeypatch):
    monkeypatch.setattr(draws, "_numbers", BoundedCache(8, drop=0))
    gradix.jit(lambda key: (random.poisson(key, 50.0), random.binomial(key, 100, 0.3), random.gamma(key, 0.5)))(
        random.key(0)
    )
    assert all(type(x) is ArrayImpl for x in draws._numbers.values()) and draws._numbers
    random.binomial(random.key(0), 100, 0.3)


@pytest.mark.parametrize("size", [500, 5000])
def test_draws_are_those_of_the_compiled_program(size):
    """Whether composed or compiled."""
    draw = lambda key: random.gamma(key, 1.5, (size,))  # noqa: E731
    np.testing.assert_allclose(np.asarray(draw(random.key(0))), np.asarray(gradix.jit(draw)(random.key(0))), rtol=2e-6)


# -- draws that come often -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.gamma(key, 2.0, (3,)),
        lambda key: random.normal(key, (3,)),
        lambda key: random.poisson(key, 4.0, (3,)),
        lambda key: random.randint(key, (300,), 0, 7),
        lambda key: random.uniform(key, (300,)),
        lambda key: random.generalized_normal(key, 1.5, (8,)),
        lambda key: random.ball(key, 3, shape=(4,)),
        lambda key: random.ball(key, 2, p=1.5),
        lambda key: random.key_data(random.split(key, (30, 20))),
    ],
)
def test_draws_that_come_often_are_compiled_and_stay_the_same(draw, monkeypatch):
    monkeypatch.setattr(draws, "COMPILE_AFTER", 3)
    key = random.key(7)
    drawn = [np.asarray(draw(key)) for _ in range(8)]
    for x in drawn[1:]:
        np.testing.assert_allclose(x, drawn[0], rtol=3e-6)
        if x.dtype.kind in "iu":
            np.testing.assert_array_equal(x, drawn[0])


def test_a_signature_counts_as_frequent_after_so_many_draws_and_never_where_the_host_is_asked_for(monkeypatch):
    monkeypatch.setattr(draws, "COMPILE_AFTER", 3)
    counts = BoundedCache(4096)
    seen = [draws.is_frequent(counts, (), (2,), {"dtype": np.dtype("float32")}) for _ in range(5)]
    assert seen == [False, False, False, True, True]
    assert not draws.is_frequent(counts, (), (3,), {"dtype": np.dtype("float32")})
    before = gradix.config.gradix_eager
    gradix.config.update("gradix_eager", "host")
    try:
        assert not draws.is_frequent(counts, (), (2,), {"dtype": np.dtype("float32")})
    finally:
        gradix.config.update("gradix_eager", before)


def test_normal_vectors_without_promotion_of_ranks():
    with gradix.numpy_rank_promotion("raise"):
        x = random.multivariate_normal(random.key(0), jnp.arange(2.0), jnp.eye(2), shape=(3,))
    np.testing.assert_array_equal(x, random.multivariate_normal(random.key(0), jnp.arange(2.0), jnp.eye(2), shape=(3,)))


def test_the_highest_mode_has_exact_tails_too():
    for draw in (
        lambda mode: random.gumbel(random.key(0), (3,), mode=mode),
        lambda mode: random.categorical(random.key(0), jnp.zeros(5), shape=(3,), mode=mode),
    ):
        np.testing.assert_array_equal(draw("highest"), draw("high"))
        with pytest.raises(ValueError, match="'low', 'high', 'highest' or None"):
            draw("best")
