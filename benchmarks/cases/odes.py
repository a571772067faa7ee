"""Ordinary differential equations, beside JAX and SciPy's integrator of the same method."""

import importlib

import numpy
from scipy.integrate import solve_ivp

from benchmarks.case import case

LIMIT = 1.0
_TIMES = numpy.linspace(0.0, 10.0, 21).astype(numpy.float32)
_TOLERANCE = 1e-6


def _lotka_volterra(y, t, a, b, c, d):
    return a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]


def _odeint(x, grad: bool, examples: int = 0):
    ode = importlib.import_module(f"{x.name}.experimental.ode")

    def slope(y, t, *rates):
        return x.np.stack(_lotka_volterra(y, t, *rates))

    def solve(y, *rates):
        return ode.odeint(slope, y, x.np.asarray(_TIMES), *rates, rtol=_TOLERANCE, atol=_TOLERANCE)

    f = x.api.grad(lambda *args: x.np.sum(solve(*args) ** 2), (0, 1)) if grad else solve
    y = x.np.asarray(numpy.array([10.0, 5.0], numpy.float32))
    if examples:
        f, y = (x.api.vmap(f, (0, None, None, None, None)), x.np.stack([y + 0.01 * i for i in range(examples)]))
    compiled = x.api.jit(f)
    return lambda: compiled(y, 1.5, 0.1, 3.0, 0.1)


def _by_scipy(x):
    return lambda: (
        solve_ivp(
            lambda t, y: _lotka_volterra(y, t, 1.5, 0.1, 3.0, 0.1),
            (0.0, 10.0),
            [10.0, 5.0],
            t_eval=_TIMES,
            rtol=_TOLERANCE,
            atol=_TOLERANCE,
        ).y
    )


case("odeint, two species", "odes", LIMIT, numpy=_by_scipy)(lambda x: _odeint(x, False))
case("gradient of odeint by the adjoint", "odes", LIMIT)(lambda x: _odeint(x, True))
case("odeint of 100 examples", "odes", LIMIT)(lambda x: _odeint(x, False, 100))
