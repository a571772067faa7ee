"""Derivatives over the whole range of exponents, against mpmath, wherever the true derivative is a normal number."""

import functools

import ml_dtypes
import mpmath as mp
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn
from gradix.scipy import special

BF16 = ml_dtypes.bfloat16
DTYPES = [np.float16, BF16, np.float32, np.float64]
REAL, POSITIVE, INNER, OUTER = (None, None), (0, None), (-1, 1), (1, None)


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def _falling(x):
    return _sigmoid(x) * _sigmoid(-x)


def _exp_below(x):
    return mp.exp(x) if x <= 0 else mp.mpf(1)


_SELU = mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946")
# the function, its first and second derivative (None: not tested), and its domain
UNARY = {
    "exp": (jnp.exp, mp.exp, mp.exp, REAL),
    "exp2": (jnp.exp2, lambda x: mp.log(2) * mp.power(2, x), None, REAL),
    "expm1": (jnp.expm1, mp.exp, mp.exp, REAL),
    "log": (jnp.log, lambda x: 1 / x, lambda x: -1 / x**2, POSITIVE),
    "log1p": (jnp.log1p, lambda x: 1 / (1 + x), None, (-1, None)),
    "log2": (jnp.log2, lambda x: 1 / (x * mp.log(2)), None, POSITIVE),
    "sqrt": (jnp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), None, POSITIVE),
    "rsqrt": (lax.rsqrt, lambda x: -1 / (2 * mp.sqrt(x) ** 3), None, POSITIVE),
    "square": (jnp.square, lambda x: 2 * x, None, REAL),
    "reciprocal": (jnp.reciprocal, lambda x: -1 / x**2, None, REAL),
    "logistic": (nn.sigmoid, _falling, lambda x: -_falling(x) * mp.tanh(x / 2), REAL),
    "expit": (special.expit, _falling, lambda x: -_falling(x) * mp.tanh(x / 2), REAL),
    "softplus": (nn.softplus, _sigmoid, _falling, REAL),
    "log_sigmoid": (nn.log_sigmoid, lambda x: _sigmoid(-x), lambda x: -_falling(x), REAL),
    "elu": (nn.elu, _exp_below, lambda x: _exp_below(x) if x <= 0 else mp.mpf(0), REAL),
    "celu": (lambda x: nn.celu(x, 2.0), lambda x: _exp_below(x / 2), None, REAL),
    "selu": (nn.selu, lambda x: _SELU[1] * (_SELU[0] * mp.exp(x) if x <= 0 else 1), None, REAL),
    "soft_sign": (nn.soft_sign, lambda x: 1 / (1 + abs(x)) ** 2, lambda x: -2 * mp.sign(x) / (1 + abs(x)) ** 3, REAL),
    "log1mexp": (nn.log1mexp, lambda x: 1 / mp.expm1(x), lambda x: -mp.exp(x) / mp.expm1(x) ** 2, POSITIVE),
    "asin": (jnp.arcsin, lambda x: 1 / mp.sqrt(1 - x * x), lambda x: x / mp.sqrt(1 - x * x) ** 3, INNER),
    "acos": (jnp.arccos, lambda x: -1 / mp.sqrt(1 - x * x), None, INNER),
    "atan": (jnp.arctan, lambda x: 1 / (1 + x * x), None, REAL),
    "asinh": (jnp.arcsinh, lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / mp.sqrt(1 + x * x) ** 3, REAL),
    "acosh": (jnp.arccosh, lambda x: 1 / mp.sqrt(x * x - 1), None, OUTER),
    "atanh": (jnp.arctanh, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2, INNER),
}
BINARY = {
    "div": (jnp.divide, lambda x, y: x / y, lambda x, y: (1 / y, -x / y**2)),
    "atan2": (jnp.arctan2, lambda x, y: mp.mpf(1), lambda x, y: (y / (x * x + y * y), -x / (x * x + y * y))),
    "hypot": (
        jnp.hypot,
        lambda x, y: mp.sqrt(x * x + y * y),
        lambda x, y: [v / mp.sqrt(x * x + y * y) for v in (x, y)],
    ),
    "logaddexp": (jnp.logaddexp, lambda x, y: mp.mpf(1), lambda x, y: (_sigmoid(x - y), _sigmoid(y - x))),
}


def _limits(dtype):
    info = ml_dtypes.finfo(dtype)
    return float(info.tiny), float(info.max), float(info.eps)


def _points(dtype, domain):
    tiny, most, eps = _limits(dtype)
    sizes = np.concatenate(
        [np.geomspace(tiny * 1.1, most / 1.1, 17), [0.25, 1.0, 2.0, 4.5, 9.0, 17.0, 31.0, 40.0, 80.0, 300.0, 700.0]]
    )
    low, high = domain
    x = np.concatenate([sizes, -sizes])
    if high == 1:
        x = np.concatenate([x, *[s * (1 - 2.0 ** -np.arange(1, 12, 3)) for s in (1, -1)]])
    if low == 1:
        x = np.concatenate([x, 1 + 2.0 ** -np.arange(1, 12, 3)])
    x = np.unique(x.astype(dtype)).astype(np.float64)
    return x[(x > (-np.inf if low is None else low)) & (x < (np.inf if high is None else high))].astype(dtype)


def _check(got, want, dtype, label, ulps):
    tiny, most, eps = _limits(dtype)
    for place, g, w in zip(label, np.asarray(got).astype(np.float64), want):
        if tiny * 1.01 <= abs(w) <= most * 0.99:
            assert abs(mp.mpf(float(g)) - w) <= ulps * eps * abs(w), (place, float(g), float(w))


@functools.cache
def _with_precision(function, place):
    with mp.workdps(700 if place and abs(place) < 1e-100 else 120):
        return function(mp.mpf(place))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", UNARY)
def test_derivatives_of_functions_of_one_number(name, dtype):
    function, first, second, domain = UNARY[name]
    with gradix.enable_x64(dtype is np.float64):
        x = _points(dtype, domain)
        g = gradix.grad(lambda v: jnp.sum(function(v)))
        orders = [(first, g)]
        if second is not None:
            orders.append((second, gradix.grad(lambda v: jnp.sum(g(v)))))
        for expected, derivative in orders:
            want = [_with_precision(expected, float(v)) for v in x]
            for way in (derivative, gradix.jit(derivative)):
                _check(way(jnp.asarray(x)), want, dtype, x, 8 if derivative is g else 24)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", BINARY)
def test_derivatives_of_functions_of_two_numbers(name, dtype):
    function, value, derivatives = BINARY[name]
    tiny, most, eps = _limits(dtype)
    # Compiled programs flush 1/y to zero from most / 4 on.
    sizes, ulps = np.geomspace(tiny * 1.1, most / 16, 9), 12
    if name == "logaddexp":
        sizes, ulps = np.array([1e-3, 0.1, 1.0, 3.0, 20.0, 45.0]), 80  # the rounding of x - y
    x, y = [
        v.ravel().astype(dtype)
        for v in np.meshgrid(np.concatenate([sizes, -1.7 * sizes]), np.concatenate([sizes, -1.3 * sizes]))
    ]
    places = [(float(a), float(b)) for a, b in zip(x, y)]
    with mp.workdps(60), gradix.enable_x64(dtype is np.float64):
        there = [tiny < abs(value(mp.mpf(a), mp.mpf(b))) < most for a, b in places]
        want = [derivatives(mp.mpf(a), mp.mpf(b)) if ok else (mp.mpf(0),) * 2 for ok, (a, b) in zip(there, places)]
        g = gradix.grad(lambda x, y: jnp.sum(function(x, y)), (0, 1))
        for way in (g, gradix.jit(g)):
            for i, got in enumerate(way(jnp.asarray(x), jnp.asarray(y))):
                _check(got, [w[i] for w in want], dtype, places, ulps)
