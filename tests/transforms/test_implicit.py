"""custom_root, custom_linear_solve and stop_gradient under every transformation."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1
A = np.array([[3.0, 1.0], [0.5, 2.0]], np.float32)
b = np.array([1.0, 2.0], np.float32)
A_inv = np.linalg.inv(A)


def inverse(m):
    """Of a 2 x 2 matrix, in primitives."""
    (p, q), (r, s) = m
    return jnp.stack([jnp.stack([s, -q]), jnp.stack([-r, p])]) / (p * s - q * r)


# -- custom_root -------------------------------------------------------------------------------------------------------


def newton(f, x):
    def step(_, x):
        y, slope = gradix.jvp(f, (x,), (1.0,))
        return x - y / slope

    return lax.fori_loop(0, 8, step, x)


def sqrt(a):
    return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))


def sqrt_by_closure(a):
    """Whose solver does not use the function it is given."""
    return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / (2 * jnp.sqrt(a)))


@pytest.mark.x32
@pytest.mark.parametrize("root", [sqrt, sqrt_by_closure])
def test_custom_root(root):
    assert_same(root(4.0), 2)
    assert_same(gradix.grad(root)(4.0), 0.25)
    assert_same(gradix.jvp(root, (4.0,), (2.0,)), (2, 0.5))
    assert_same(gradix.linearize(root, 4.0)[1](2.0), 0.5)
    assert_same(gradix.jit(gradix.grad(root))(4.0), 0.25)
    assert_same(gradix.grad(gradix.jit(root))(4.0), 0.25)
    assert_same(gradix.vmap(gradix.grad(root))(x3), 0.5 / np.sqrt(x3))
    assert_same(gradix.grad(lambda x: gradix.vmap(root)(x).sum())(x3), 0.5 / np.sqrt(x3))
    assert_same(
        gradix.grad(lambda x: lax.scan(lambda c, _: (root(c), c), x, None, length=2)[0])(16.0), 0.25 * 16**-0.75
    )


def test_custom_root_to_second_order():
    assert_same(gradix.grad(gradix.grad(sqrt))(4.0), -1 / 32)
    assert_same(gradix.jit(gradix.hessian(sqrt))(4.0), -1 / 32)
    assert_same(gradix.grad(gradix.grad(gradix.jit(sqrt)))(4.0), -1 / 32)


@pytest.mark.x32
def test_custom_root_of_vectors():
    def solve(A, b):
        return lax.custom_root(
            lambda x: A @ x - b,
            jnp.zeros(2),
            lambda f, x: inverse(A) @ b,
            lambda g, y: inverse(gradix.jacobian(g)(y)) @ y,
        )

    assert_same(solve(A, b), A_inv @ b)
    assert_same(gradix.jacrev(solve, 1)(A, b), A_inv)
    assert_same(gradix.jacfwd(solve, 1)(A, b), A_inv)
    assert_same(gradix.jacrev(solve)(A, b), -np.einsum("ij,k->ijk", A_inv, A_inv @ b))


def test_custom_root_of_trees_with_aux():
    def root(a):
        return lax.custom_root(
            lambda x: {"r": x["r"] ** 2 - a},
            {"r": 1.0},
            lambda f, x: ({"r": newton(lambda r: f({"r": r})["r"], x["r"])}, {"steps": 8}),
            lambda g, y: {"r": y["r"] / g({"r": 1.0})["r"]},
            has_aux=True,
        )

    (r, aux) = root(4.0)
    assert_same((r, aux), ({"r": 2}, {"steps": 8}))
    assert_same(gradix.grad(lambda a: root(a)[0]["r"])(4.0), 0.25)
    assert_same(gradix.jit(root)(4.0), ({"r": 2}, {"steps": 8}))


# -- custom_linear_solve -----------------------------------------------------------------------------------------------


def divide(a, b):
    return lax.custom_linear_solve(lambda x: a * x, b, lambda mv, b: b / mv(1.0), symmetric=True)


def solve(A, b):
    return lax.custom_linear_solve(lambda x: A @ x, b, lambda mv, b: inverse(A) @ b, lambda vm, b: inverse(A).T @ b)


@pytest.mark.x32
def test_custom_linear_solve_of_numbers():
    assert_same(divide(2.0, 6.0), 3)
    assert_same(gradix.grad(divide, (0, 1))(2.0, 6.0), (-1.5, 0.5))
    assert_same(gradix.hessian(divide, (0, 1))(2.0, 6.0), ((1.5, -0.25), (-0.25, 0)))
    assert_same(gradix.jvp(divide, (2.0, 6.0), (1.0, 1.0)), (3, -1))
    assert_same(gradix.jit(gradix.grad(divide))(2.0, 6.0), -1.5)
    assert_same(gradix.grad(gradix.jit(divide))(2.0, 6.0), -1.5)
    assert_same(gradix.vmap(gradix.grad(divide), in_axes=(0, None))(x3, 6.0), -6 / x3**2)


def test_custom_linear_solve_of_matrices():
    x = A_inv @ b
    assert_same(solve(A, b), x)
    assert_same(gradix.jacrev(solve, 1)(A, b), A_inv)
    assert_same(gradix.jacfwd(solve, 1)(A, b), A_inv)
    assert_same(
        gradix.grad(lambda A, b: (solve(A, b) ** 2).sum(), (0, 1))(A, b),
        (-np.outer(A_inv.T @ (2 * x), x), A_inv.T @ (2 * x)),
    )
    assert_same(gradix.vmap(solve, in_axes=(None, 1), out_axes=1)(A, np.eye(2, dtype=np.float32)), A_inv)
    assert_same(gradix.vmap(solve, in_axes=(0, None))(np.stack([A, 2 * A]), b), np.stack([x, x / 2]))
    assert_same(gradix.jit(gradix.jacrev(gradix.jacrev(lambda b: (solve(A, b) ** 2).sum())))(b), 2 * A_inv.T @ A_inv)


def test_custom_linear_solve_with_aux():
    def f(a, b):
        return lax.custom_linear_solve(
            lambda x: a * x, b, lambda mv, b: (b / mv(1.0), {"n": jnp.asarray(3)}), symmetric=True, has_aux=True
        )

    assert_same(f(2.0, 6.0), (3, {"n": 3}))
    assert_same(gradix.grad(lambda a: f(a, 6.0)[0])(2.0), -1.5)
    assert_same(gradix.jit(f)(2.0, 6.0), (3, {"n": 3}))


# -- stop_gradient -----------------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_stop_gradient():
    stop = lax.stop_gradient
    assert gradix.grad(lambda x: stop(x) * x)(3.0) == 3
    assert gradix.hessian(lambda x: stop(x) * x * x)(3.0) == 6
    assert gradix.jvp(stop, (3.0,), (1.0,)) == (3, 0)
    assert_same(gradix.vmap(gradix.jit(gradix.grad(lambda x: stop(x) * x)))(x3), x3)
    got = stop({"a": 1, "b": None, "c": np.arange(3)})
    assert got["a"] == 1 and got["b"] is None and got["c"].dtype == np.int32
    with pytest.raises(TypeError, match="text"):
        stop("text")


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: lax.custom_root(lambda x: (x, x), 1.0, newton, lambda g, y: y),
            TypeError,
            "output of f must have the structure",
        ),
        (lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y), TypeError, "output of solve"),
        (lambda: lax.custom_root(lambda x: x > 0, 1.0, newton, lambda g, y: y), TypeError, "bool"),
        (lambda: lax.custom_linear_solve(lambda x: (x,), 1.0, lambda mv, b: b), TypeError, "output of matvec"),
        (lambda: lax.custom_linear_solve(lambda x: x, 1.0, lambda mv, b: (b, b)), ValueError, "output of solve"),
        (
            lambda: gradix.grad(lambda a: lax.custom_linear_solve(lambda x: a * x, 6.0, lambda mv, b: b / mv(1.0)))(
                2.0
            ),
            TypeError,
            "transpose_solve required",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
