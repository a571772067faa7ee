"""Special functions against SciPy's in both precisions, at edges, with derivatives and what they refuse."""

import numpy as np
import pytest
import scipy.special as reference

import gradix
import gradix.numpy as jnp
from gradix.scipy import special
from gradix.test_util import check_grads

RNG = np.random.default_rng(17)


def spread(low, high, n=60):
    return np.exp(RNG.uniform(np.log(low), np.log(high), n))


def both(x):
    return np.concatenate([x, -x])


def line(low, high, n=60):
    return RNG.uniform(low, high, n)


# Arguments, and by how many roundings the results may differ.
POINTS = {
    "gamma": ((np.concatenate([both(spread(1e-8, 20)), line(0, 20)]),), 100),
    "gammaln": ((both(spread(1e-8, 1e6)),), 8),
    "loggamma": ((spread(1e-8, 1e6),), 8),
    "digamma": ((spread(1e-3, 1e4),), 60),
    "gammasgn": ((line(-9, 9),), 0),
    "beta": ((spread(0.01, 30), spread(0.01, 30)), 200),
    "poch": ((line(0.1, 20), line(0, 9)), 400),
    "comb": ((np.floor(line(0, 30)), np.floor(line(0, 30))), 80),
    "factorial": ((line(-3, 20),), 100),
    "betainc": ((line(0.1, 5), line(0.1, 5), line(0, 1)), 200),
    "gammainc": ((line(0.1, 9), line(0, 9)), 60),
    "gammaincc": ((line(0.1, 9), line(0, 9)), 60),
    "zeta": ((line(1.1, 9), line(0.1, 9)), 30),
    "i0": ((line(-20, 20),), 8),
    "i1": ((line(-20, 20),), 8),
    "i0e": ((line(-50, 50),), 8),
    "i1e": ((line(-50, 50),), 8),
    "erfcx": ((np.concatenate([line(-4, 20), spread(1e-6, 1e6)]),), 60),
    "exp1": ((spread(1e-8, 70),), 10),
    "dawsn": ((np.concatenate([line(-15, 15), both(spread(1e-6, 1e6))]),), 80),
    "expi": ((both(np.concatenate([spread(1e-6, 0.3), spread(0.5, 70)])),), 80),
    "expn": ((np.floor(line(0, 30)), spread(1e-3, 50)), 20),
    "fresnel": ((np.concatenate([line(-8, 8), both(spread(1e-5, 100))]),), 100),
    "spence": ((spread(1e-6, 1e6),), 40),
    "owens_t": ((line(-5, 5, 120), both(spread(0.01, 50))), 150),
    "wofz": ((line(-8, 8) + 1j * line(-2, 8),), 150),
    "hyp1f1": ((line(0.2, 3), line(0.3, 6), line(-30, 30)), 600),
    "boxcox": ((spread(1e-3, 1e3), line(-2, 2)), 20),
    "hyp2f1": ((line(0.2, 3), line(0.2, 3), line(0.3, 5), line(-6, 0.95)), 2000),
    "boxcox1p": ((spread(1e-6, 1e3, 120), both(spread(1e-8, 2))), 20),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("wide", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("name", POINTS)
def test_values(name, wide):
    points, roundings = POINTS[name]
    real, cplx = ("float64", "complex128") if wide else ("float32", "complex64")
    points = [p.astype(cplx if p.dtype.kind == "c" else real) for p in points]
    with gradix.enable_x64(wide):
        got = getattr(special, name)(*points)
        compiled = gradix.jit(getattr(special, name))(*points)
    with np.errstate(all="ignore"):
        want = getattr(reference, name)(*[p.astype("complex128" if p.dtype.kind == "c" else "float64") for p in points])
    several = isinstance(got, tuple)
    info = np.finfo(real)
    for g, c, w in zip(
        got if several else [got], compiled if several else [compiled], want if several else [want], strict=True
    ):
        assert g.dtype == (cplx if w.dtype.kind == "c" else real)
        inside = ~(abs(w) > info.max / 2) & ~(abs(w) < 4 * info.tiny)
        for value in (g, c):
            np.testing.assert_allclose(
                np.asarray(value)[inside],
                w[inside],
                rtol=max(roundings, 2) * info.eps,
                atol=info.eps * (16 if name in ("gammaln", "loggamma") else 0 if name in ("comb", "poch") else 1e-3),
            )


EDGES = {
    "gammaln": [-2, -1, 0, 1, 2, np.inf, np.nan],
    "gammasgn": [-2.5, -1.5, -1, -0.0, 0.0, np.inf, np.nan],
    "gamma": [-2.5, -2, -0.0, 0.0, 1, 5, np.inf, -np.inf, np.nan],
    "erfcx": [-30, -np.inf, np.inf, np.nan, 0],
    "dawsn": [0, np.inf, -np.inf, np.nan],
    "exp1": [0, np.inf, np.nan],
    "expi": [0, np.inf, -np.inf, np.nan],
    "sici": [0, np.inf, -np.inf, np.nan],
    "fresnel": [0, np.inf, -np.inf, np.nan],
    "spence": [0, 1, 2, -1, np.nan],
    "i0": [0.0, np.inf, -np.inf, np.nan],
    "factorial": [0, 1, 2, -1, np.nan],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    x = np.array(EDGES[name], float)
    with gradix.enable_x64(True), np.errstate(all="ignore"):
        got, want = getattr(special, name)(x), getattr(reference, name)(x)
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want], strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-12, atol=1e-300)


def test_edges_of_several_arguments():
    with gradix.enable_x64(True):
        for name, args in {
            "expn": (np.array([0, 1, 2, 3, -1, 1]), np.array([0, 0, 0, np.inf, 1, -1.0])),
            "owens_t": (np.array([0, 1, np.inf, 0.0, np.nan]), np.array([np.inf, np.inf, 1, 0.5, 1])),
            "comb": (np.array([5, 3, 2, -1.0, 40]), np.array([2, 4, -1, 0.0, 20])),
            "hyp2f1": (
                np.array([1, 1, -2, 0.5, 2, 1, 0.5, 1]),
                np.array([2, 2, 3, 0.7, 1, 2, 0.7, -3]),
                np.array([3.5, 3, 0.5, 2, 3.5, 3, 1.2, 2.5]),
                np.array([1, 1, 3.0, -3, 0.99, 1.5, 2, 4]),  # beyond 1 a polynomial alone is finite
            ),
            "hyp1f1": (np.array([-3, 1, 0, 2.0]), np.array([0.5, 2, 1, 3]), np.array([7, 0, 3, -400.0])),
            "boxcox": (np.array([0, 0, -1, 1.0, 5]), np.array([0.5, -1, 1, 0, 0])),
        }.items():
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(
                    np.asarray(getattr(special, name)(*args)), getattr(reference, name)(*args), rtol=1e-11, atol=1e-300
                )
        np.testing.assert_allclose(
            special.comb(np.array([5, 0.0]), np.array([2, 0]), repetition=True),
            reference.comb(np.array([5, 0.0]), np.array([2, 0]), repetition=True),
        )
        np.testing.assert_allclose(
            special.betaln(1e-3, 1e8), -np.log(1e-3) - 1e-3 * (np.log(1e8) + np.euler_gamma), rtol=1e-6
        )


def test_logarithms_of_chances_keep_their_digits():
    """Above 0 the other tail is the result; far below, the derivative is -x; logit near one half is a difference."""
    x = np.concatenate([line(-9, 9), line(-200, 0)])
    for wide, eps in ((False, 2**-23), (True, 2**-52)):
        with gradix.enable_x64(wide):
            at = x.astype("float64" if wide else "float32")
            near = at[at > -9]
            np.testing.assert_allclose(
                np.asarray(special.log_ndtr(near)), reference.log_ndtr(near.astype(float)), rtol=300 * eps
            )
            slopes = np.asarray(gradix.vmap(gradix.grad(special.log_ndtr))(at))
            ratio = np.sqrt(2 / np.pi) / reference.erfcx(-at.astype(float) / np.sqrt(2))
            np.testing.assert_allclose(slopes, ratio, rtol=3000 * eps, atol=4 * np.finfo(at.dtype).tiny)
            p = (0.5 + np.concatenate([both(spread(1e-5, 0.49))])).astype(at.dtype)
            np.testing.assert_allclose(np.asarray(special.logit(p)), reference.logit(p.astype(float)), rtol=16 * eps)
    assert float(gradix.grad(gradix.grad(special.log_ndtr))(-1e30)) == -1


@pytest.mark.parametrize("x64", [False, True])
def test_complex_gamma(x64):
    z = line(-8, 20, 100) + 1j * np.concatenate([line(-9, 9, 50), spread(1e-3, 50, 50)])
    with gradix.enable_x64(x64):
        z = z.astype("complex128" if x64 else "complex64")
        eps = np.finfo(z.dtype).eps
        want = reference.loggamma(z.astype(complex))
        np.testing.assert_allclose(np.asarray(special.loggamma(z)), want, rtol=200 * eps, atol=200 * eps)
        small = abs(z) < 9
        np.testing.assert_allclose(
            np.asarray(special.gamma(z[small])), reference.gamma(z[small].astype(complex)), rtol=4000 * eps
        )


def test_legendre_functions_and_harmonics():
    with gradix.enable_x64(True):
        z = line(-0.95, 0.95, 5)
        values, slopes = special.lpmn(4, 4, z)
        for i, x in enumerate(z):
            for m in range(5):
                for n in range(5):
                    want = reference.lpmv(m, n, x)
                    np.testing.assert_allclose(values[m, n, i], want, rtol=1e-10, atol=1e-12)
                    change = (reference.lpmv(m, n, x + 1e-6) - reference.lpmv(m, n, x - 1e-6)) / 2e-6
                    np.testing.assert_allclose(slopes[m, n, i], change, rtol=1e-6, atol=1e-6)
        n = np.array([0, 1, 2, 3, 4, 4, 9, 9])
        m = np.array([0, -1, 1, -3, 4, -2, 5, -9])
        theta, phi = line(0, np.pi, 8), line(0, 2 * np.pi, 8)
        np.testing.assert_allclose(
            np.asarray(special.sph_harm_y(n, m, theta, phi)),
            reference.sph_harm_y(n, m, theta, phi),
            rtol=1e-10,
            atol=1e-12,
        )
        compiled = gradix.jit(lambda n, t: special.sph_harm_y(n, m, t, phi, n_max=9))(n, theta)
        np.testing.assert_allclose(np.asarray(compiled), reference.sph_harm_y(n, m, theta, phi), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(np.asarray(special.bernoulli(70)), reference.bernoulli(70), rtol=1e-10)
        orders = np.asarray(special.bessel_jn(z * 8, v=6, n_iter=60))
        np.testing.assert_allclose(orders, np.stack([reference.jv(v, z * 8) for v in range(7)]), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(np.asarray(special.bessel_jn(np.zeros(1), v=2))[:, 0], [1, 0, 0])
        np.testing.assert_allclose(
            np.asarray(special.multigammaln(np.array([3.0, 4.5]), 3)),
            [reference.multigammaln(a, 3) for a in (3.0, 4.5)],
        )


SMOOTH = {
    "gamma": (2.3,),
    "betaln": (1.3, 25.0),
    "beta": (1.3, 0.7),
    "erfcx": (1.2,),
    "dawsn": (0.7,),
    "exp1": (0.8,),
    "expi": (-1.2,),
    "fresnel": (1.7,),
    "sici": (5.2,),
    "spence": (1.0001,),
    "owens_t": (0.8, 1.6),
    "boxcox": (2.0, 0.0),
    "boxcox1p": (0.3, 1e-5),
    "hyp1f1": (0.7, 1.9, 2.5),
    "hyp2f1": (0.7, 0.4, 1.9, 0.3),
    "comb": (7.3, 2.2),
    "poch": (2.2, 1.1),
    "i0": (0.0,),
    "i1": (0.4,),
    "multigammaln": (3.3,),
    "gammainc": (1.5, 2.1),
    "factorial": (2.5,),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_and_mapping(name):
    args = SMOOTH[name]
    f = (lambda a: special.multigammaln(a, 2)) if name == "multigammaln" else getattr(special, name)
    with gradix.enable_x64(True):
        check_grads(f, args, order=1 if name == "gammainc" else 2, atol=1e-4, rtol=1e-4)
        if name not in ("comb", "poch", "factorial"):
            slope = gradix.jit(gradix.vmap(gradix.grad(lambda *a: sum(map(jnp.sum, gradix.tree.leaves(f(*a)))))))
            ones = [np.full(2, a) for a in args]
            each = gradix.grad(lambda *a: sum(map(jnp.sum, gradix.tree.leaves(f(*a)))))(*args)
            np.testing.assert_allclose(np.asarray(slope(*ones)), np.full(2, each), rtol=1e-8, atol=1e-12)


def test_derivatives_of_integer_orders_and_complex_arguments():
    with gradix.enable_x64(True):
        for n in (0, 1, 4):
            check_grads(lambda x, n=n: special.expn(n, x), (1.7,), order=2)
        check_grads(lambda z: special.wofz(z).real, (0.3 + 0.4j,), order=2)
        check_grads(lambda z: special.loggamma(z).real, (0.3 + 0.4j,), order=1)
        check_grads(lambda z: special.lpmn_values(3, 3, z, True), (np.array([0.3]),), order=2)
        check_grads(
            lambda t: special.sph_harm_y(np.array([3]), np.array([2]), t, np.array([0.2])).real,
            (np.array([0.6]),),
            order=2,
        )


REFUSED = {
    "exact": (lambda: special.factorial(3, exact=True), NotImplementedError, "math.factorial"),
    "polygamma": (lambda: special.polygamma(1.5, 2.0), ValueError, "integer"),
    "spence": (lambda: special.spence(2), TypeError, "int32"),
    "dawsn": (lambda: special.dawsn(1j), ValueError, "complex"),
    "gammaln": (lambda: special.gammaln(1j), TypeError, "complex64"),
    "bernoulli": (lambda: special.bernoulli(-1), ValueError, "non-negative"),
    "lpmn": (lambda: special.lpmn(2, 2, np.ones((1, 2))), ValueError, "1D"),
    "diff_n": (
        lambda: special.sph_harm_y(np.array([1]), np.array([0]), 0.1, 0.2, diff_n=1),
        NotImplementedError,
        "differentiate",
    ),
    "n_max": (lambda: gradix.jit(lambda n: special.sph_harm_y(n, n, 0.1, 0.2))(np.array([1])), ValueError, "n_max"),
    "bessel_jn": (lambda: special.bessel_jn(1.0, v=-1), ValueError, "negative"),
}


@pytest.mark.x32
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
