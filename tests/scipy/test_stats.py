"""scipy.stats against SciPy: values also at the ends of the support, derivatives, and statistics of samples."""

import importlib
import inspect
import pickle
import re

import numpy as np
import pytest
import scipy.stats as reference

import gradix
import gradix.numpy as jnp
from gradix.scipy import stats
from gradix.scipy.stats import gaussian_kde, mode, rankdata, sem
from gradix.test_util import check_grads
from tests.same import assert_same

RNG = np.random.default_rng(13)
LINE = np.array([-30.0, -2.5, -1.0, 0.0, 0.3, 1.0, 2.2, 8.0, 40.0, np.inf, -np.inf, np.nan])
UNIT = np.array([-0.5, 0.0, 1e-9, 0.2, 0.5, 0.999, 1.0, 1.5, np.nan])
COUNTS = np.array([-2.0, -1, 0, 1, 2, 3, 7, 20])
PLACED = {"loc": 0.7, "scale": 2.5}
# For each distribution the parameters, the places, and whether it is placed by loc and scale.
CONTINUOUS = {
    "norm": [()],
    "cauchy": [()],
    "expon": [()],
    "uniform": [()],
    "laplace": [()],
    "logistic": [()],
    "gumbel_r": [()],
    "gumbel_l": [()],
    "pareto": [(2.0,), (0.5,)],
    "gamma": [(2.5,), (1.0,), (0.3,)],
    "chi2": [(3.0,), (1.0,)],
    "beta": [(2.0, 3.0), (0.5, 0.5), (1.0, 1.0)],
    "t": [(3.0,), (1e6,)],
    "truncnorm": [(-1.0, 2.0), (5.0, 7.0), (-9.0, -8.0)],
    "vonmises": [(1.3,)],
    "wrapcauchy": [(0.4,)],
    "gennorm": [(1.5,), (2.0,)],
}
DISCRETE = {
    "bernoulli": [(0.3,)],
    "binom": [(7, 0.3), (3, 0.0)],
    "betabinom": [(7, 2.0, 3.0)],
    "geom": [(0.3,), (1.0,)],
    "nbinom": [(2.5, 0.3)],
    "poisson": [(2.5,), (0.0,)],
}
NOT_PLACED = {"vonmises", "wrapcauchy", "gennorm"}


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


def functions(name):
    module = importlib.import_module(f"gradix.scipy.stats.{name}")
    return [
        f
        for f in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
        if hasattr(module, f)
    ]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    ours, theirs = getattr(stats, name), getattr(reference, name)
    for parameters in CONTINUOUS[name]:
        for placed in ({},) if name in NOT_PLACED else ({}, PLACED):
            for f in functions(name):
                x = UNIT if f in ("ppf", "isf") else LINE
                x = (
                    np.concatenate([x, LINE * 0.2 + 6])
                    if name == "truncnorm"
                    else np.clip(x, 0, 6)
                    if name == "wrapcauchy"
                    else x
                )
                x = x[np.isfinite(x)] if name == "vonmises" else x
                with np.errstate(all="ignore"):
                    assert_same(
                        getattr(ours, f)(x, *parameters, **placed), getattr(theirs, f)(x, *parameters, **placed)
                    )


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    ours, theirs = getattr(stats, name), getattr(reference, name)
    for parameters in DISCRETE[name]:
        for f in functions(name):
            x = UNIT[UNIT != 0] if f == "ppf" else COUNTS  # SciPy gives the value before the first at 0
            with np.errstate(all="ignore"):
                assert_same(getattr(ours, f)(x, *parameters), getattr(theirs, f)(x, *parameters))
                if f not in ("ppf",) and name != "bernoulli":
                    assert_same(getattr(ours, f)(x, *parameters, loc=2), getattr(theirs, f)(x, *parameters, loc=2))
    mu = np.array([0.0, 1e-4, 0.3, 5, 59, 61, 1e5])
    assert_same(stats.poisson.entropy(mu)[:-1], reference.poisson.entropy(mu[:-1]), 1e-7)
    assert_same(stats.poisson.entropy(mu, -3.0), stats.poisson.entropy(mu))


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_functions_take_arguments_as_python_does(name):
    """Those which a record makes have the parameters, defaults and errors of a function that is written out."""
    for f in functions(name):
        function = getattr(getattr(stats, name), f)
        assert (function.__name__, function.__qualname__, function.__module__) == (f, f, f"gradix.scipy.stats.{name}")
        assert pickle.loads(pickle.dumps(function)) is function
        parameters = inspect.signature(function).parameters
        defaults = {p: v.default for p, v in parameters.items() if v.default is not inspect.Parameter.empty}
        assert defaults.items() <= {"loc": 0, "scale": 1}.items()
        point = dict.fromkeys(parameters, 0.5) | defaults
        want = np.asarray(function(*point.values()))
        for named in (1, len(point) // 2, len(point)):
            kept = list(point.items())[: len(point) - named]
            np.testing.assert_array_equal(
                function(*dict(kept).values(), **dict(list(point.items())[len(kept) :])), want
            )
        np.testing.assert_array_equal(function(**{p: v for p, v in point.items() if p not in defaults}), want)
        first = next(iter(point))
        for call, words in (
            (lambda: function(), f"{f}() missing"),
            (lambda: function(*[1] * 9), f"{f}() takes"),
            (lambda: function(**point, other=1), f"{f}() got an unexpected keyword argument 'other'"),
            (lambda: function(*point.values(), **{first: 1}), f"{f}() got multiple values for argument '{first}'"),
        ):
            with pytest.raises(TypeError, match=re.escape(words)):
                call()


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_derivatives(name):
    parameters = {**CONTINUOUS, **DISCRETE}[name][0]
    module = getattr(stats, name)
    density = module.logpdf if name in CONTINUOUS else module.logpmf
    x = {"beta": 0.4, "truncnorm": 0.4, "pareto": 2.1, "geom": 2.0, "bernoulli": 1.0, "uniform": 0.7}.get(name, 1.7)
    places = () if name in (*NOT_PLACED, *DISCRETE) else (0.1, 1.4)
    if name in DISCRETE:
        check_grads(lambda *p: density(np.round(x), *p), tuple(map(float, parameters)), order=2, atol=1e-4, rtol=1e-4)
    else:
        check_grads(density, (x, *parameters, *places), order=2, atol=1e-4, rtol=1e-4)
        if hasattr(module, "logcdf"):
            check_grads(lambda x: module.logcdf(x, *parameters), (x,), order=2, atol=1e-4, rtol=1e-4)
    slopes = gradix.vmap(gradix.grad(lambda x: density(x, *map(float, parameters))))(np.array([-7.0, 0.5, 3.0]))
    assert np.isfinite(slopes).all(), "outside of the support the slope is zero"


def test_distributions_of_vectors():
    x = RNG.dirichlet([1.0, 2, 3], 4).T
    alpha = np.array([0.7, 1.0, 4.0])
    assert_same(stats.dirichlet.logpdf(x, alpha), reference.dirichlet.logpdf(x, alpha))
    assert_same(stats.dirichlet.pdf(x[:2, 0], alpha), reference.dirichlet.pdf(x[:2, 0], alpha))
    assert stats.dirichlet.logpdf(np.array([0.5, 0.6, 0.1]), alpha) == -np.inf
    counts, p = np.array([[1, 2, 3], [6, 0, 0], [2, 2, 2]]), np.array([0.2, 0.3, 0.5])
    assert_same(stats.multinomial.pmf(counts, 6, p), reference.multinomial.pmf(counts, 6, p))
    assert stats.multinomial.logpmf(np.array([1, 2, 2]), 6, p) == -np.inf
    a = RNG.normal(size=(3, 3))
    mean, cov, v = RNG.normal(size=3), a @ a.T + np.eye(3), RNG.normal(size=(2, 5, 3))
    want = reference.multivariate_normal.logpdf(v, mean, cov)
    assert_same(stats.multivariate_normal.logpdf(v, mean, cov), want)
    assert_same(stats.multivariate_normal.pdf(v[0], np.stack([mean] * 5), np.stack([cov] * 5)), np.exp(want[0]))
    assert_same(stats.multivariate_normal.pdf(v[0, 0], 0.5, 2.0), reference.norm.pdf(v[0, 0], 0.5, 2**0.5))
    check_grads(stats.multivariate_normal.logpdf, (v[0, 0], mean, cov), order=2, atol=1e-4, rtol=1e-4)
    check_grads(stats.dirichlet.logpdf, (x[:2, 0], alpha), order=2, atol=1e-4, rtol=1e-4)


def test_statistics_of_samples():
    for x in (RNG.integers(0, 4, (5, 6)), np.array([[1.0, np.nan, 1, 2, 2, 3]]), RNG.normal(size=(1, 1))):
        for axis in (0, 1, None):
            for keepdims in (False, True):
                for got, want in zip(
                    mode(x, axis, keepdims=keepdims), reference.mode(x, axis, keepdims=keepdims), strict=True
                ):
                    if not np.isnan(x).any():
                        assert_same(got, want)
            for method in ("average", "min", "max", "dense", "ordinal"):
                assert_same(rankdata(x, method, axis=axis), reference.rankdata(x, method, axis=axis))
    assert mode(np.array([1.0, np.nan, np.nan])).count == 2
    x = RNG.normal(size=(4, 6))
    x[1, 2] = np.nan
    for axis in (0, 1, None):
        for policy in ("propagate", "omit"):
            want = np.ma.getdata(reference.sem(x, axis, nan_policy=policy))
            assert_same(sem(x, axis, nan_policy=policy), want)
    assert_same(sem(x[0], ddof=0), reference.sem(x[0], ddof=0))
    assert rankdata(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(
    "method", [None, "silverman", 0.4, lambda k: 0.3], ids=["scott", "silverman", "number", "function"]
)
def test_density_estimates(method):
    for dataset in (RNG.normal(size=12), RNG.normal(size=(2, 12))):
        weights = RNG.uniform(0.5, 1, 12)
        d = np.atleast_2d(dataset).shape[0]
        points = RNG.normal(size=(d, 5))
        for w in (None, weights):
            ours, theirs = gaussian_kde(dataset, method, w), reference.gaussian_kde(dataset, method, w)
            assert_same(ours(points), theirs(points))
            assert_same(ours.logpdf(points), theirs.logpdf(points))
            assert_same(ours.covariance, theirs.covariance)
            assert_same(ours.inv_cov @ ours.covariance, np.eye(d), 1e-6)
            assert_same(
                ours.integrate_gaussian(points[:, 0], np.eye(d)), theirs.integrate_gaussian(points[:, 0], np.eye(d))
            )
            assert_same(
                ours.integrate_kde(gaussian_kde(dataset + 1)), theirs.integrate_kde(reference.gaussian_kde(dataset + 1))
            )
        if d == 1:
            assert_same(ours.integrate_box_1d(-0.5, 1.0), theirs.integrate_box_1d(-0.5, 1.0))
    drawn = ours.resample(gradix.random.key(1), (4000,))
    assert drawn.shape == (2, 4000)
    assert_same(np.cov(drawn), ours.covariance + np.cov(dataset, aweights=weights, bias=True), 0.15)
    assert_same(gradix.jit(lambda k, x: k(x))(ours, points), ours(points))
    check_grads(lambda x: gaussian_kde(x).logpdf(points), (dataset,), order=1)


REFUSED = {
    "list": (lambda: stats.norm.pdf([1.0]), TypeError, "list"),
    "cov": (lambda: stats.multivariate_normal.logpdf(np.ones(2), np.ones(2), np.eye(3)), ValueError, "shapes"),
    "singular": (
        lambda: stats.multivariate_normal.logpdf(np.ones(2), np.ones(2), np.eye(2), True),
        NotImplementedError,
        "singular",
    ),
    "alpha": (lambda: stats.dirichlet.logpdf(np.ones(2), np.ones((2, 2))), ValueError, "one-dimensional"),
    "entries": (lambda: stats.dirichlet.logpdf(np.ones(4), np.ones(2)), ValueError, "entries"),
    "counts": (lambda: stats.multinomial.pmf(np.ones(2), 2, np.ones(2) / 2), ValueError, "integer"),
    "policy": (lambda: mode(np.ones(2), nan_policy="omit"), NotImplementedError, "omit"),
    "unknown policy": (lambda: sem(np.ones(2), nan_policy="drop"), ValueError, "drop"),
    "ranks": (lambda: rankdata(np.ones(2), "best"), ValueError, "best"),
    "one point": (lambda: gaussian_kde(np.ones(1)), ValueError, "multiple"),
    "weights": (lambda: gaussian_kde(np.arange(3.0), weights=np.ones(2)), ValueError, "weights"),
    "bandwidth": (lambda: gaussian_kde(np.arange(3.0), "wide"), ValueError, "bw_method"),
    "dimensions": (lambda: gaussian_kde(np.arange(3.0))(np.ones((2, 2))), ValueError, "dimension"),
    "box": (lambda: gaussian_kde(np.arange(3.0)).integrate_box(0, 1), NotImplementedError, "integrate_box_1d"),
    "set": (lambda: gaussian_kde(np.arange(3.0)).set_bandwidth(), NotImplementedError, "immutable"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.slow
def test_draws_fit_the_distributions():
    """Kolmogorov and Smirnov's distance of draws to the distribution functions here."""
    key, n = gradix.random.key(5), 1_000_000
    drawn = {
        "norm": (gradix.random.normal(key, (n,)), ()),
        "gamma": (gradix.random.gamma(key, 2.5, (n,)), (2.5,)),
        "beta": (gradix.random.beta(key, 2.0, 3.0, (n,)), (2.0, 3.0)),
        "logistic": (gradix.random.logistic(key, (n,)), ()),
        "gumbel_r": (gradix.random.gumbel(key, (n,)), ()),
        "pareto": (gradix.random.pareto(key, 2.0, (n,)), (2.0,)),
        "cauchy": (gradix.random.cauchy(key, (n,)), ()),
        "chi2": (gradix.random.chisquare(key, 3.0, shape=(n,)), (3.0,)),
    }
    for name, (x, parameters) in drawn.items():
        levels = np.sort(np.asarray(getattr(stats, name).cdf(jnp.asarray(x, float), *parameters)))
        assert abs(levels - (np.arange(n) + 0.5) / n).max() < 1.95 / n**0.5, name


def test_logarithms_of_probabilities_near_1_keep_their_digits():
    x = np.float32([1e-6, 1e-3, 0.1, 1, 5, 20])
    np.testing.assert_allclose(stats.gamma.logsf(x, 2.5), reference.gamma.logsf(x.astype(float), 2.5), rtol=3e-5)
    np.testing.assert_allclose(stats.gamma.logcdf(x, 2.5), reference.gamma.logcdf(x.astype(float), 2.5), rtol=3e-5)
    y = np.float32([1e-6, 0.01, 0.5, 0.99, 0.99999])
    np.testing.assert_allclose(stats.beta.logsf(y, 2.0, 3.0), reference.beta.logsf(y.astype(float), 2, 3), rtol=3e-4)
    np.testing.assert_allclose(stats.beta.logcdf(y, 2.0, 3.0), reference.beta.logcdf(y.astype(float), 2, 3), rtol=3e-4)
    slopes = gradix.vmap(gradix.grad(lambda v: stats.gamma.logsf(v, 2.5)))(x)
    np.testing.assert_allclose(
        slopes, -np.exp(reference.gamma.logpdf(x, 2.5) - reference.gamma.logsf(x, 2.5)), rtol=1e-3
    )


# -- parameters outside of their domain, and their limits ------------------------------------------

_SHAPES, _CHANCES, _TRIALS = (-1.0, 0.0, 0.5, 2.0, np.nan), (-0.1, 0.0, 0.3, 1.0, 1.1, np.nan), (-1.0, 0.0, 5.0, np.nan)
PARAMETERS = {
    "norm": (),
    "cauchy": (),
    "expon": (),
    "gumbel_l": (),
    "gumbel_r": (),
    "laplace": (),
    "logistic": (),
    "uniform": (),
    "beta": (_SHAPES, _SHAPES),
    "gamma": (_SHAPES,),
    "chi2": (_SHAPES,),
    "pareto": (_SHAPES,),
    "t": ((*_SHAPES, np.inf),),
    "gennorm": (_SHAPES,),
    "vonmises": (_SHAPES,),
    "wrapcauchy": (_CHANCES,),
    "truncnorm": ((-np.inf, -1.0, 0.5, np.nan),) * 2,
    "bernoulli": (_CHANCES,),
    "binom": (_TRIALS, _CHANCES),
    "nbinom": ((-1.0, 0.0, 2.5, 5.0, np.nan), _CHANCES),
    "geom": (_CHANCES,),
    "poisson": (_SHAPES,),
    "betabinom": (_TRIALS, _SHAPES, _SHAPES),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_outside_of_their_domain_give_nan(name):
    ours, theirs = getattr(stats, name), getattr(reference, name)
    for function in ("logpdf", "pdf", "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "ppf"):
        if not hasattr(ours, function) or name == "bernoulli" and function == "ppf":
            continue
        first = (
            (0.3, 0.7)
            if function == "ppf"
            else (-1.0, 0.0, 1.0, 5.0, np.nan)
            if hasattr(ours, "pmf")
            else (-1.5, 0.0, 0.3, 1.0, np.nan)
        )
        args = [v.ravel() for v in np.meshgrid(first, *PARAMETERS[name])]
        want = getattr(theirs, function)(*args)
        assert_same(getattr(ours, function)(*args), want)
        if function in ("logpdf", "logpmf") or name == "gennorm":
            assert_same(gradix.jit(getattr(ours, function))(*args), want)
        if not hasattr(ours, "pmf") and name not in NOT_PLACED:
            for scale in (-1.0, 0.0, np.nan):
                assert jnp.isnan(getattr(ours, function)(*[a[:30] for a in args], scale=scale)).all()


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_what_is_certain_has_the_logarithm_zero(p):
    n = np.arange(200.0)
    assert (np.asarray(stats.binom.logpmf(n * p, n, p)) == 0).all()
    assert (np.asarray(stats.nbinom.logpmf(0.0, n + 1, 1.0)) == 0).all()
    assert (np.asarray(stats.geom.logpmf(1.0, 1.0)) == 0).all() and (
        np.asarray(stats.bernoulli.logpmf(p, p)) == 0
    ).all()


def test_a_logarithm_of_a_truncated_tail_keeps_its_digits_near_zero():
    from scipy.special import erfc

    for end in (2.0, 4.0, 8.0):
        z = end - np.array([1.0, 0.5, 0.1])
        rest = (erfc(z / np.sqrt(2)) - erfc(end / np.sqrt(2))) / 2
        whole = 1 - erfc(end / np.sqrt(2))
        np.testing.assert_allclose(stats.truncnorm.logcdf(z, -end, end), np.log1p(-rest / whole), rtol=1e-11)
        np.testing.assert_allclose(stats.truncnorm.logsf(-z, -end, end), np.log1p(-rest / whole), rtol=1e-11)


def test_the_location_gives_the_entropy_its_shape():
    mu, loc = np.array([[1.0], [20.0]], "float32"), np.zeros(3, "float32")
    got = stats.poisson.entropy(mu, loc)
    np.testing.assert_allclose(got, np.broadcast_to(reference.poisson.entropy(mu), (2, 3)), rtol=1e-4)
