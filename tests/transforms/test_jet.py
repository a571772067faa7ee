"""Taylor mode against nested forward mode."""

import math

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental.jet import fact, jet, zero_series

UNARY = {
    "exp": (jnp.exp, 0.3),
    "log": (jnp.log, 1.3),
    "sin": (jnp.sin, 0.3),
    "cos": (jnp.cos, 0.3),
    "tan": (jnp.tan, 0.3),
    "tanh": (jnp.tanh, 0.3),
    "sqrt": (jnp.sqrt, 1.3),
    "rsqrt": (lax.rsqrt, 1.3),
    "logistic": (lax.logistic, 0.3),
    "expm1": (jnp.expm1, 0.3),
    "log1p": (jnp.log1p, 0.3),
    "arcsin": (jnp.arcsin, 0.3),
    "arctan": (jnp.arctan, 0.3),
    "sinh": (jnp.sinh, 0.3),
    "arccosh": (jnp.arccosh, 1.5),
    "arctanh": (jnp.arctanh, 0.2),
    "erf": (lax.erf, 0.3),
    "lgamma": (lax.lgamma, 1.7),
    "power": (lambda x: x**2.5, 1.3),
    "integer power": (lambda x: x**-3, 1.3),
    "power of power": (lambda x: x**x, 1.3),
    "reciprocal": (lambda x: 1 / x, 1.3),
    "abs": (jnp.abs, -0.4),
    "maximum": (lambda x: jnp.maximum(x * x, x), 0.3),
    "composed": (lambda x: jnp.exp(jnp.sin(x * x)) / (1 + x), 0.4),
    "where": (lambda x: jnp.where(x > 0, jnp.sin(x), jnp.cos(x)), 0.4),
    "jit": (gradix.jit(jnp.sin), 0.4),
    "cond": (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), 0.4),
    "scan": (lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=2)[0], 0.4),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1], 0.4),
    "checkpoint": (gradix.checkpoint(jnp.sin), 0.4),
    "arctan2": (lambda x: jnp.arctan2(x, 1 + x), 0.4),
    "constant": (lambda x: 3.0, 0.4),
    "stop_gradient": (lambda x: lax.stop_gradient(x) * x, 0.4),
}
ARRAYS = {
    "matmul": lambda x: x @ x,
    "dot": lambda x: (x @ jnp.arange(4.0).reshape(2, 2)).T.reshape(-1),
    "softmax": lambda x: gradix.nn.softmax(x),
    "logsumexp": lambda x: gradix.nn.logsumexp(x, 0),
    "sum": lambda x: (x * x).sum(0) / x.mean(),
    "sort": lambda x: jnp.sort(x * x, 1),
    "max": lambda x: x.max(0) ** 2,
    "prod": lambda x: x.prod(),
    "cumsum": lambda x: jnp.cumsum(x, 0) ** 2,
    "cumprod": lambda x: jnp.cumprod(x, 1),
    "indexing": lambda x: x[jnp.array([1, 0]), 0] * x[0],
    "update": lambda x: x.at[0].set(jnp.sin(x[1])),
    "concatenate": lambda x: jnp.concatenate([x, x * x, jnp.ones((1, 2))]),
    "norm": jnp.linalg.norm,
    "solve": lambda x: jnp.linalg.solve(x, jnp.ones(2)),
    "vmap": lambda x: gradix.vmap(jnp.dot)(x, x),
    "grad": gradix.grad(lambda x: (jnp.sin(x) @ x).sum()),
    "fft": lambda x: jnp.fft.fft(x, axis=0).real ** 2,
}


def nested(f, x, terms):
    """The same by forward mode inside forward mode, along the polynomial itself."""
    curve = lambda s: x + sum([c * s ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(terms)])
    g = lambda s: f(curve(s))
    out = [g(0.0)]
    for _ in terms:
        g = (lambda g: lambda s: gradix.jvp(g, (s,), (1.0,))[1])(g)
        out.append(g(0.0))
    return out


def compiled(f, *args):
    return gradix.jit(lambda *given: jet(f, *given))(*args)


def check(f, x, terms, rtol=1e-9, calls=(jet, compiled)):
    want = nested(f, x, terms)
    for call in calls:
        y, series = call(f, (x,), (terms,))
        assert len(series) == len(terms)
        for got, expected in zip([y, *series], want):
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-9 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_number(name):
    with gradix.enable_x64(True):
        f, x = UNARY[name]
        check(f, jnp.float64(x), [1.0, 0.0, 0.0], calls=[jet])
        check(f, jnp.float64(x), [0.7, -0.4, 1.1])
        check(f, jnp.float64(x), [0.0, 0.5], calls=[jet])


@pytest.mark.parametrize("name", ARRAYS)
def test_a_function_of_an_array(name):
    with gradix.enable_x64(True):
        x = jnp.array([[0.9, 0.4], [0.3, 1.1]])
        check(ARRAYS[name], x, [jnp.cos(x * k) for k in (1, 2, 3)], rtol=1e-8)


def test_arguments_and_results_that_are_trees():
    f = lambda a, b: {"p": a["u"] * b, "s": (jnp.sin(b), 2)}
    y, series = jet(f, ({"u": 2.0}, 3.0), ([{"u": 1.0}, {"u": 0.0}], [1.0, 0.5]))
    assert float(y["p"]) == 6.0 and int(y["s"][1]) == 2
    np.testing.assert_allclose(series["p"], [5.0, 3.0])
    np.testing.assert_allclose(series["s"][0], [np.cos(3.0), 0.5 * np.cos(3.0) - np.sin(3.0)], rtol=1e-5)


def test_coefficients_without_factorials():
    y, series = jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose(series, [1, 1 / 2, 1 / 6], rtol=1e-6)


def test_under_other_transformations():
    third = lambda x: jet(jnp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2]
    np.testing.assert_allclose(gradix.grad(third)(0.3), np.sin(0.3), rtol=1e-6)
    np.testing.assert_allclose(gradix.jvp(third, (0.3,), (1.0,))[1], np.sin(0.3), rtol=1e-6)
    np.testing.assert_allclose(gradix.vmap(third)(jnp.arange(3.0)), -np.cos(np.arange(3.0)), rtol=1e-6)
    inner = lambda x: jet(lambda y: jnp.sin(x * y), (1.0,), ([1.0, 0.0],))[1][1]
    np.testing.assert_allclose(
        jet(inner, (0.5,), ([1.0],))[1][0], -2 * 0.5 * np.sin(0.5) - 0.25 * np.cos(0.5), rtol=1e-6
    )


def test_the_work_grows_as_a_power_of_the_order():
    f = lambda x: jnp.sin(jnp.exp(jnp.sin(jnp.exp(x))))
    count = lambda k: len(gradix.make_jaxpr(lambda x: jet(f, (x,), ([1.0] + [0.0] * (k - 1),)))(0.1).eqns)
    assert count(10) < 8 * count(5) and count(16) < 8 * count(8)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: jet(jnp.sin, (1.0,), ([1.0, 0.0], [1.0])), ValueError, "2 entries for 1 primals"),
        (lambda: jet(jnp.add, (1.0, 2.0), ([1.0, 0.0], [1.0])), ValueError, "inconsistent lengths"),
        (lambda: jet(jnp.sin, (1.0,), (1.0,)), TypeError, "wrap one term"),
        (lambda: jet(jnp.sin, 1.0, ([1.0],)), TypeError, "primals must be a tuple or list"),
        (lambda: jet(jnp.sin, (1.0,), ([jnp.ones(3)],)), ValueError, r"shape \(3,\)"),
        (lambda: jet(jnp.sin, (1.0,), ([(1.0,)],)), ValueError, "structure"),
        (lambda: jet(jnp.sin, ("a",), ([1.0],)), TypeError, "is not an array"),
    ],
)
def test_wrong_use(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_series_of_zeros():
    f = lambda x, y: (x * y, jnp.floor(y) + jnp.sin(x))  # noqa: E731
    want = jet(f, (2.0, 3.0), ([1.0, 0.5], [0.0, 0.0]))
    got = jet(f, (2.0, 3.0), ([1.0, 0.5], zero_series))
    assert repr(got[1]) == repr(want[1]) and got[0][0] == 6
    value, series = jet(lambda p, q: p["a"] * q, ({"a": 2.0}, 3.0), (zero_series, [1.0]))
    assert value == 6 and series == [2.0] and repr(zero_series) == "zero_series"


def test_factorials():
    assert fact(5) == math.factorial(5) and fact(jnp.arange(4.0)).tolist() == [1, 1, 2, 6]
