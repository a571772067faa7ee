"""Derivatives of high order: programs that grow as a power of the order, not exponentially, and right values."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.jet import jet


def plain(f):
    return f


def chain(x):
    return jnp.sin(jnp.exp(jnp.sin(jnp.exp(x))))


def tanh_chain(x):
    return jnp.tanh(x * jnp.tanh(x) / (1 + x * x))


def pushed(f):
    return lambda x: gradix.jvp(f, (x,), (1.0,))[1]


def mixed(f):
    return gradix.grad(pushed(f))


def nth(derivative, f, k):
    for _ in range(k):
        f = derivative(f)
    return f


def count(f):
    return len(gradix.make_jaxpr(f)(0.1).eqns)


@pytest.mark.parametrize("f", [chain, tanh_chain, gradix.jit(chain)], ids=["chain", "tanh", "jit"])
@pytest.mark.parametrize("derivative, most", [(gradix.grad, 8000), (pushed, 2500), (gradix.jacfwd, 2500)])
def test_programs_grow_as_a_power_of_the_order(derivative, most, f):
    sizes = [count(nth(derivative, f, k)) for k in (5, 10)]
    assert sizes[1] <= most and sizes[1] < 2**4.2 * sizes[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("inner", [plain, gradix.jit, gradix.checkpoint], ids=["plain", "jit", "checkpoint"])
@pytest.mark.parametrize("derivative", [gradix.grad, pushed, gradix.jacfwd, gradix.jacrev])
def test_values(derivative, inner, wrap):
    with gradix.enable_x64(True):
        k, x = 6 if inner is plain else 4, jnp.float64(0.1)
        _, series = jet(chain, (x,), ([1.0] + [0.0] * (k - 1),))
        np.testing.assert_allclose(wrap(nth(derivative, inner(chain), k))(x), series[-1], rtol=1e-9)


def test_values_of_mixed_orders_and_under_vmap():
    with gradix.enable_x64(True):
        x = jnp.array([0.1, 0.2])
        want = [jet(chain, (v,), ([1.0] + [0.0] * 5,))[1][-1] for v in x]
        np.testing.assert_allclose(gradix.vmap(nth(mixed, chain, 3))(x), want, rtol=1e-9)
        total = lambda f: lambda x: f(x).sum()
        inside = nth(lambda f: lambda x: gradix.grad(total(f))(x), lambda x: gradix.vmap(chain)(x), 6)
        np.testing.assert_allclose(inside(x), want, rtol=1e-9)


def test_a_reverse_rule_is_kept_at_every_order():
    f = gradix.custom_vjp(lambda x: x**4)
    f.defvjp(lambda x: (x**4, x), lambda x, ct: (2 * g(x) * ct,))
    g = gradix.custom_vjp(lambda x: x**3)
    g.defvjp(lambda x: (x**3, x), lambda x, ct: (2 * h(x) * ct,))
    h = gradix.custom_vjp(lambda x: x**2)
    h.defvjp(lambda x: (x**2, x), lambda x, ct: (7 * x * ct,))
    for wrap in (lambda f: f, gradix.jit):
        np.testing.assert_allclose(nth(gradix.grad, wrap(f), 3)(2.0), 2 * 2 * 7 * 2.0, rtol=1e-6)
        np.testing.assert_allclose(nth(gradix.grad, lambda x: wrap(f)(x) * x, 3)(2.0), 200.0, rtol=1e-6)


def test_equal_operations_with_effects_are_done_each_time(capfd):
    def f(x):
        gradix.debug.print("x {}", x)
        gradix.debug.print("x {}", x)
        return x**4

    np.testing.assert_allclose(nth(gradix.grad, f, 3)(2.0), 48.0)
    gradix.effects_barrier()
    assert capfd.readouterr().out.count("x 2.0") == 2


def test_hessian_of_a_bilinear_program_of_400_variables():
    def f(x):
        return sum([x[i] * x[i + 1] for i in range(399)])

    x = jnp.ones(400)
    assert count_of(gradix.grad(f), x) < 15 * 400
    for hessian in (gradix.hessian(f), gradix.hessian(f, sparsity="auto")):
        assert count_of(hessian, x) < 30 * 400
    np.testing.assert_allclose(
        gradix.jit(gradix.jvp, static_argnums=0)(gradix.grad(f), (x,), (x,))[1], gradix.grad(f)(x)
    )
    want = np.eye(400, k=1) + np.eye(400, k=-1)
    np.testing.assert_allclose(gradix.hessian(f, sparsity="auto")(x), want)


def count_of(f, *args):
    return len(gradix.make_jaxpr(f)(*args).eqns)
