"""odeint: against solutions in closed form, SciPy and JAX; gradients by the adjoint equation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gradix
from gradix import numpy as jnp
from gradix.experimental import ode

TIMES = np.linspace(0.0, 2.0, 5).astype("f")


def driven(y, t, rate, frequency):
    return -rate * y + jnp.sin(frequency * t)


def test_values_are_scipys():
    want = solve_ivp(lambda t, y: -0.5 * y + np.sin(2.0 * t), (0, 2), [1.0], t_eval=TIMES, rtol=1e-10, atol=1e-12).y[0]
    np.testing.assert_allclose(ode.odeint(driven, 1.0, TIMES, 0.5, 2.0), want, rtol=2e-5)
    np.testing.assert_allclose(
        gradix.jit(lambda y: ode.odeint(driven, y, TIMES, 0.5, 2.0, hmax=0.1))(1.0), want, rtol=2e-5
    )


def test_times_may_decrease():
    back = ode.odeint(lambda y, t: -y, 1.0, jnp.array([1.0, 0.5, 0.0]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(back, np.exp([0.0, 0.5, 1.0]), rtol=1e-4)


def test_states_are_pytrees_and_examples_are_mapped():
    def pendulum(state, t, g):
        return {"angle": state["speed"], "speed": -g * jnp.sin(state["angle"])}

    def run(angle):
        return ode.odeint(pendulum, {"angle": angle, "speed": jnp.zeros(())}, TIMES, 9.8, rtol=1e-5, atol=1e-5)

    many = gradix.vmap(run)(jnp.array([0.1, 1.0]))
    assert many["angle"].shape == (2, 5)
    np.testing.assert_allclose(many["speed"][1], run(1.0)["speed"], rtol=1e-3, atol=1e-3)


def test_gradients_are_those_of_the_closed_form():
    """y = y0 exp(-a t): derivatives by y0, by a and by each time."""

    def solved(y0, t, a):
        return (ode.odeint(lambda y, t, a: -a * y, y0, t, a, rtol=1e-6, atol=1e-6) ** 2).sum()

    def closed(y0, t, a):
        return ((y0 * jnp.exp(-a * (t - t[0]))) ** 2).sum()

    for wrap in (lambda f: f, gradix.jit):
        got, want = (wrap(gradix.grad(f, (0, 1, 2)))(1.5, TIMES, 0.7) for f in (solved, closed))
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_captured_values_and_pytrees_of_arguments_have_gradients():
    def loss(a, more):
        return ode.odeint(lambda y, t, p: -a * y * p["k"][0], 1.0, TIMES, more, rtol=1e-6, atol=1e-6).sum()

    more = {"k": (1.0, 3)}
    da, dmore = gradix.grad(loss, (0, 1), allow_int=True)(0.5, more)
    t = TIMES
    np.testing.assert_allclose(da, (-t * np.exp(-0.5 * t)).sum(), rtol=1e-3)
    np.testing.assert_allclose(dmore["k"][0], (-0.5 * t * np.exp(-0.5 * t)).sum(), rtol=1e-3)


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="odeint"):
        ode.odeint(lambda y, t, s: y, 1.0, TIMES, "fast")


@pytest.mark.parity
@pytest.mark.slow
def test_values_and_gradients_are_jaxs():
    jax = pytest.importorskip("jax")
    from jax.experimental import ode as theirs

    def cases(lib, np_, o):
        def loss(y0, ts, a, b):
            return (o.odeint(driven_by(np_), y0, ts, a, b, rtol=1e-6, atol=1e-6) ** 2).sum()

        times = np_.asarray(TIMES, float)
        return [
            o.odeint(driven_by(np_), 1.0, times, 0.5, 2.0),
            lib.grad(loss, (0, 1, 2, 3))(1.0, times, 0.5, 2.0),
            o.odeint(lambda y, t: 1j * y, np_.asarray(1.0, complex), times),
        ]

    def driven_by(np_):
        return lambda y, t, rate, frequency: -rate * y + np_.sin(frequency * t)

    for a, b in zip(gradix.tree.leaves(cases(gradix, jnp, ode)), gradix.tree.leaves(cases(jax, jax.numpy, theirs))):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
