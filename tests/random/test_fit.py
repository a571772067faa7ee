"""Each sampler of `random` against the distribution it is named for: Kolmogorov and Smirnov's test, or χ²."""

import math

import numpy as np
import pytest
from scipy import stats

import gradix
import gradix.numpy as jnp
from gradix import random

QUICK, WHOLE = 4_000, 1_000_000
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
COV = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 0.7]])


def along(direction):
    """Numbers of the standard normal distribution, where the vectors have the covariance `COV`."""
    direction = np.asarray(direction)

    def draw(key, n, method="cholesky"):
        vectors = random.multivariate_normal(key, jnp.array([1.0, 2.0, 3.0]), COV.astype("f4"), (n,), method=method)
        return (vectors - jnp.array([1.0, 2.0, 3.0])) @ direction.astype("f4") / math.sqrt(direction @ COV @ direction)

    return draw


class TwoSidedMaxwell:
    """Around 1 with scale 2: Maxwell's distribution, of either sign with the same chance."""

    @staticmethod
    def cdf(x):
        x = (x - 1) / 2
        return 0.5 + 0.5 * np.sign(x) * stats.maxwell.cdf(abs(x))


CONTINUOUS = {
    "uniform": (lambda k, n: random.uniform(k, (n,)), stats.uniform),
    "uniform of an interval": (lambda k, n: random.uniform(k, (n,), minval=-3, maxval=5), stats.uniform(-3, 8)),
    "normal": (lambda k, n: random.normal(k, (n,)), stats.norm),
    "normal, imaginary part": (lambda k, n: random.normal(k, (n,), "complex64").imag, stats.norm(0, math.sqrt(0.5))),
    "truncated_normal": (lambda k, n: random.truncated_normal(k, -1.0, 2.0, (n,)), stats.truncnorm(-1, 2)),
    "truncated_normal, tail": (lambda k, n: random.truncated_normal(k, 2.0, 4.0, (n,)), stats.truncnorm(2, 4)),
    "exponential": (lambda k, n: random.exponential(k, (n,)), stats.expon),
    "laplace": (lambda k, n: random.laplace(k, (n,)), stats.laplace),
    "logistic": (lambda k, n: random.logistic(k, (n,)), stats.logistic),
    "gumbel": (lambda k, n: random.gumbel(k, (n,)), stats.gumbel_r),
    "cauchy": (lambda k, n: random.cauchy(k, (n,)), stats.cauchy),
    "lognormal": (lambda k, n: random.lognormal(k, 0.7, (n,)), stats.lognorm(0.7)),
    "maxwell": (lambda k, n: random.maxwell(k, (n,)), stats.maxwell),
    "double_sided_maxwell": (lambda k, n: random.double_sided_maxwell(k, 1.0, 2.0, (n,)), TwoSidedMaxwell),
    "rayleigh": (lambda k, n: random.rayleigh(k, 2.0, (n,)), stats.rayleigh(0, 2)),
    "pareto": (lambda k, n: random.pareto(k, 2.5, (n,)), stats.pareto(2.5)),
    "weibull_min": (lambda k, n: random.weibull_min(k, 2.0, 1.5, (n,)), stats.weibull_min(1.5, 0, 2)),
    "wald": (lambda k, n: random.wald(k, 1.7, (n,)), stats.invgauss(1.7, scale=1.0)),
    "triangular": (lambda k, n: random.triangular(k, -1.0, 0.5, 2.0, (n,)), stats.triang(0.5, -1, 3)),
    "gamma, 0.3": (lambda k, n: random.gamma(k, 0.3, (n,)), stats.gamma(0.3)),
    "gamma, 1": (lambda k, n: random.gamma(k, 1.0, (n,)), stats.gamma(1)),
    "gamma, 40": (lambda k, n: random.gamma(k, 40.0, (n,)), stats.gamma(40)),
    "loggamma, 0.05": (lambda k, n: random.loggamma(k, 0.05, (n,)), stats.loggamma(0.05)),
    "beta": (lambda k, n: random.beta(k, 2.0, 0.5, (n,)), stats.beta(2, 0.5)),
    "chisquare": (lambda k, n: random.chisquare(k, 3.0, shape=(n,)), stats.chi2(3)),
    "f": (lambda k, n: random.f(k, 5.0, 8.0, (n,)), stats.f(5, 8)),
    "t": (lambda k, n: random.t(k, 2.5, (n,)), stats.t(2.5)),
    "generalized_normal": (lambda k, n: random.generalized_normal(k, 1.5, (n,)), stats.gennorm(1.5)),
    "dirichlet": (lambda k, n: random.dirichlet(k, jnp.array([0.5, 1.0, 2.0]), (n,))[:, 1], stats.beta(1, 2.5)),
    "multivariate_normal": (along([1.0, -2.0, 0.5]), stats.norm),
    "multivariate_normal, eigh": (lambda k, n: along([0.3, 1.0, -1.0])(k, n, "eigh"), stats.norm),
    "ball, radius": (lambda k, n: jnp.sum(random.ball(k, 3, shape=(n,)) ** 2, -1) ** 1.5, stats.uniform),
    "ball, one coordinate": (lambda k, n: random.ball(k, 2, shape=(n,))[:, 0], stats.beta(1.5, 1.5, -1, 2)),
}


def permuted(key, n):
    """Which of the 24 orders each of `n` permutations of four numbers has."""
    orders = gradix.vmap(lambda k: random.permutation(k, 4))(random.split(key, n))
    return (orders * jnp.array([64, 16, 4, 1])).sum(-1)


def chosen(key, n):
    """The first two of four, drawn with weights and without replacement."""
    pairs = gradix.vmap(lambda k: random.choice(k, 4, (2,), replace=False, p=WEIGHTS.astype("f4")))(
        random.split(key, n)
    )
    return pairs[:, 0] * 4 + pairs[:, 1]


def pairs_without_replacement():
    """The chances of `chosen`: the second is drawn from what the first one left."""
    return {4 * i + j: p * q / (1 - p) for i, p in enumerate(WEIGHTS) for j, q in enumerate(WEIGHTS) if i != j}


def equal(values):
    values = list(values)
    return dict.fromkeys(values, 1 / len(values))


def law(distribution, high, low=0):
    """The chances of the integers below `high`; all above count as one."""
    return {**{k: float(distribution.pmf(k)) for k in range(low, high)}, math.inf: float(distribution.sf(high - 1))}


ORDERS = {
    64 * a + 16 * b + 4 * c + d
    for a in range(4)
    for b in range(4)
    for c in range(4)
    for d in range(4)
    if len({a, b, c, d}) == 4
}
DISCRETE = {
    "bernoulli": (lambda k, n: random.bernoulli(k, 0.3, (n,)), {0: 0.7, 1: 0.3}),
    "bits": (lambda k, n: random.bits(k, (n,)) >> 27, equal(range(32))),
    "bits, last ones": (lambda k, n: random.bits(k, (n,), "uint8") & 15, equal(range(16))),
    "rademacher": (lambda k, n: random.rademacher(k, (n,)), equal([-1, 1])),
    "randint": (lambda k, n: random.randint(k, (n,), -5, 6), equal(range(-5, 6))),
    "randint of 8 bits": (lambda k, n: random.randint(k, (n,), 0, 100, "uint8"), equal(range(100))),
    "categorical": (
        lambda k, n: random.categorical(k, jnp.log(jnp.array(WEIGHTS)), shape=(n,)),
        dict(enumerate(WEIGHTS)),
    ),
    "choice": (lambda k, n: random.choice(k, 5, (n,)), equal(range(5))),
    "choice with weights": (lambda k, n: random.choice(k, 4, (n,), p=WEIGHTS.astype("f4")), dict(enumerate(WEIGHTS))),
    "choice without replacement": (chosen, pairs_without_replacement()),
    "permutation": (permuted, equal(ORDERS)),
    "geometric": (lambda k, n: random.geometric(k, 0.3, (n,)), law(stats.geom(0.3), 20, 1)),
    "poisson, 3": (lambda k, n: random.poisson(k, 3.0, (n,)), law(stats.poisson(3), 12)),
    "poisson, 40": (lambda k, n: random.poisson(k, 40.0, (n,)), law(stats.poisson(40), 75)),
    "binomial, 12": (lambda k, n: random.binomial(k, 12, 0.2, (n,)), law(stats.binom(12, 0.2), 13)),
    "binomial, 200": (lambda k, n: random.binomial(k, 200, 0.7, (n,)), law(stats.binom(200, 0.7), 180)),
    "multinomial": (
        lambda k, n: random.multinomial(k, 10.0, jnp.array(WEIGHTS), shape=(n, 4))[:, 2],
        law(stats.binom(10, 0.3), 11),
    ),
}


def pooled(seen, expected, least=10):
    """Neighbouring classes put together until each expects `least` draws."""
    out, held = [], np.zeros(2)
    for pair in zip(seen, expected, strict=True):
        held = held + pair
        if held[1] >= least:
            out.append(held)
            held = np.zeros(2)
    out[-1] = out[-1] + held
    return np.transpose(out)


def chance_by_chi2(drawn, chances):
    """The chance of classes at least as far from the expected counts; draws outside of the support fail."""
    drawn = np.asarray(drawn).astype(np.int64)
    classes = sorted(c for c in chances if c != math.inf)
    seen = {c: int((drawn == c).sum()) for c in classes}
    if math.inf in chances:
        seen[math.inf] = int((drawn > classes[-1]).sum())
    assert sum(seen.values()) == drawn.size
    order = [*classes, *[c for c in chances if c == math.inf]]
    counts, expected = pooled([seen[c] for c in order], [chances[c] * drawn.size for c in order])
    return stats.chisquare(counts, expected, sum_check=False).pvalue


SIZES = [pytest.param(QUICK, id="quick"), pytest.param(WHOLE, id="million", marks=pytest.mark.slow)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, n):
    draw, distribution = CONTINUOUS[name]
    drawn = np.asarray(draw(random.key(11), n), np.float64)
    assert drawn.shape == (n,) and stats.kstest(drawn, distribution.cdf).pvalue > 1e-4


@pytest.mark.x32
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name, n):
    draw, chances = DISCRETE[name]
    assert math.isclose(sum(chances.values()), 1, rel_tol=1e-9)
    drawn = np.asarray(draw(random.key(12), n))
    assert drawn.shape == (n,) and chance_by_chi2(drawn, chances) > 1e-4


@pytest.mark.parametrize(
    "n", [pytest.param(1_000, id="quick"), pytest.param(100_000, id="many", marks=pytest.mark.slow)]
)
def test_orthogonal_matrices_are_of_haars_measure(n):
    """Each element of a rotation of three dimensions, as a coordinate of a point on the sphere, is uniform."""
    q = np.asarray(random.orthogonal(random.key(13), 3, (n,)), np.float64)
    for i, j in ((0, 0), (1, 2), (2, 1)):
        assert stats.kstest(q[:, i, j], stats.uniform(-1, 2).cdf).pvalue > 1e-4
    assert stats.binomtest(int((np.linalg.det(q) > 0).sum()), n).pvalue > 1e-4


def test_every_sampler_is_tested():
    """A new sampler of `random` gets a row here."""
    none = {
        "Generator",
        "PRNGKey",
        "clone",
        "fold_in",
        "key",
        "key_data",
        "key_dtype",
        "key_impl",
        "split",
        "wrap_key_data",
        "orthogonal",
    }
    rows = {name.split(",")[0].split()[0] for name in (*CONTINUOUS, *DISCRETE)}
    assert rows == {n for n in dir(random) if not n.startswith("_") and callable(getattr(random, n))} - none
