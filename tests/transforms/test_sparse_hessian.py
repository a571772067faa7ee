"""Hessians from their structure, and Laplacians, against dense Hessians."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api.derivatives.hessians import _product
from gradix._api.derivatives.sparsity import colours, linear_pattern

IDX = np.array([3, 0, 3, 5])
# name -> (function of a vector, the most colours its Hessian may take)
FUNCTIONS = {
    "separable": (lambda x: (x**3).sum() + jnp.sin(x).mean(), 1),
    "chain": (lambda x: ((x[1:] - x[:-1] ** 2) ** 2).sum(), 3),
    "rosenbrock": (lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), 3),
    "wide band": (lambda x: (x[3:] * x[:-3] ** 2).sum(), 3),
    "grid": (
        lambda x: (jnp.diff(x.reshape(4, 2), axis=0) ** 4).sum() + (jnp.diff(x.reshape(4, 2), axis=1) ** 4).sum(),
        5,
    ),
    "dense": (lambda x: x.sum() ** 3, 8),
    "arrow": (lambda x: (x[0] * x[1:] ** 2).sum(), 8),
    "rolled": (lambda x: (jnp.roll(x, 1) * x**2).sum(), 5),
    "indexed": (lambda x: (x[IDX] ** 2 * jnp.arange(4.0)).sum(), 1),
    "indexed pairs": (lambda x: (x[IDX] * x[IDX[::-1]]).sum(), 2),
    "updated": (lambda x: (x.at[IDX].add(x[:4] ** 2) ** 2).sum(), 5),
    "two halves": (lambda x: jnp.exp(x[:4] @ x[:4]) + x[4:].prod(), 4),
    "reversed and padded": (lambda x: (jnp.pad(x[::-1], (1, 2)) ** 3).sum(), 1),
    "stacked": (lambda x: (jnp.stack([x, x[::-1]]) ** 2).prod(0).sum(), 2),
    "where": (lambda x: jnp.where(x > 0, x**3, x[::-1] * x).sum(), 2),
    "maximum": (lambda x: (jnp.maximum(x, 0.1 * x) ** 2).sum(), 1),
    "jitted": (gradix.jit(lambda x: gradix.jit(jnp.cos)(x).sum()), 1),
    "branch": (lambda x: lax.cond(x[0] > 0, lambda x: (x**2).sum(), lambda x: (x**3).sum(), x), 8),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r**3, None), 0.0, x)[0], 8),
    "linear": (lambda x: x.sum(), 0),
    "constant": (lambda x: 3.0, 0),
    "cumulative": (lambda x: jnp.cumsum(x[:3])[2] ** 2 + (x[3:] ** 2).sum(), 3),
    "matmul": (lambda x: ((x.reshape(2, 4) @ jnp.ones((4, 3))) ** 2).sum(), 4),
    "batched matmul": (lambda x: jnp.einsum("bij,bjk->bik", x.reshape(2, 2, 2), x.reshape(2, 2, 2)).sum(), 4),
    "sorted": (lambda x: (jnp.sort(x) * jnp.arange(8.0) * x).sum(), 8),
    "vmapped": (lambda x: gradix.vmap(lambda a, b: jnp.sin(a * b))(x[:-1], x[1:]).sum(), 3),
}
X = jnp.array([0.5, -1.0, 1.5, 0.3, -0.7, 2.0, 1.1, -0.2])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_the_dense_hessian(name):
    f, most = FUNCTIONS[name]
    want = gradix.hessian(f)(X)
    sparse = gradix.hessian(f, sparsity="auto")
    for got in (sparse(X), gradix.jit(sparse)(X), gradix.vmap(sparse)(X[None])[0]):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    flat = gradix._api.derivatives.autodiff.differentiated("hessian", f, (X,), {}, (0,))
    pattern = linear_pattern(_product(*flat[:2]), 1)[0]
    assert (pattern | (np.asarray(want) == 0)).all()
    assert int(colours(pattern).max(initial=-1)) + 1 <= most


def test_colours_share_no_row():
    pattern = np.random.default_rng(0).random((40, 60)) < 0.1
    colour = colours(pattern)
    for c in range(colour.max() + 1):
        assert (pattern[:, colour == c].sum(1) <= 1).all()


def test_the_program_has_as_many_directions_as_colours():
    n = 1000
    program = gradix.make_jaxpr(gradix.hessian(FUNCTIONS["rosenbrock"][0], sparsity="auto"))(jnp.ones(n))
    widest = max(
        v.aval.size for e in program.eqns for v in e.outvars if v.aval.shape[:1] != (n,) and v.aval.shape[-1:] != (n,)
    )
    assert widest <= 4 * n
    directions = {v.aval.shape[0] for e in program.eqns for v in e.outvars if v.aval.ndim == 2 and v.aval.shape[0] < 10}
    assert directions <= {1, 3}


def test_trees_several_arguments_and_chunks():
    def f(p, y):
        return (p["a"] ** 2 * y).sum() + (p["b"] * jnp.sin(y[0])).sum()

    p, y = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2))}, jnp.array([1.0, 2.0, 3.0])
    for argnums in (0, 1, (0, 1)):
        want = gradix.hessian(f, argnums)(p, y)
        for chunk in (None, 2):
            got = gradix.hessian(f, argnums, sparsity="auto", chunk_size=chunk)(p, y)
            gradix.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), got, want)


def test_a_pattern_of_the_user():
    f = lambda x: (x**3).sum()
    got = gradix.hessian(f, sparsity=np.eye(8, dtype=bool))(X)
    np.testing.assert_allclose(got, np.diag(6 * np.asarray(X)), rtol=1e-6)


def test_third_derivatives_of_a_sparse_hessian():
    f = FUNCTIONS["chain"][0]
    want = gradix.jacfwd(gradix.hessian(f))(X)
    np.testing.assert_allclose(gradix.jacfwd(gradix.hessian(f, sparsity="auto"))(X), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradix.jacrev(gradix.hessian(f, sparsity="auto"))(X), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: gradix.hessian(jnp.sum, sparsity="band")(X), ValueError, "'band'"),
        (lambda: gradix.hessian(jnp.sum, sparsity=np.eye(3, dtype=bool))(X), ValueError, r"shape \(8, 8\).*\(3, 3\)"),
        (lambda: gradix.hessian(jnp.sum, sparsity="auto", has_aux=True), ValueError, "has_aux"),
        (lambda: gradix.hessian(jnp.sin, sparsity="auto")(X), TypeError, "scalar-output"),
        (lambda: gradix.hessian(jnp.sum, sparsity="auto")(jnp.arange(3)), TypeError, "real-valued"),
        (lambda: gradix.laplacian(jnp.sum)(jnp.arange(3)), TypeError, "real floats"),
        (lambda: gradix.laplacian(lambda x: x + 1j)(X), TypeError, "result"),
    ],
)
def test_wrong_use(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_laplacian_is_the_trace(name):
    f, _ = FUNCTIONS[name]
    want = np.trace(gradix.hessian(f)(X))
    lap = gradix.laplacian(f)
    for got in (lap(X), gradix.jit(lap)(X), gradix.laplacian(f, chunk_size=3)(X), gradix.vmap(lap)(X[None])[0]):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_laplacian_of_results_and_arguments_that_are_trees():
    f = lambda p, y: {"u": p["a"] * y[0] ** 2, "v": (p["a"] ** 3).sum()}
    out = gradix.laplacian(f, (0, 1))({"a": jnp.array([1.0, 2.0])}, jnp.array([3.0]))
    np.testing.assert_allclose(out["u"], [2.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(out["v"], 18.0, rtol=1e-6)
    grad = gradix.grad(lambda x: gradix.laplacian(lambda x: (x**4).sum())(x))(X)
    np.testing.assert_allclose(grad, 24 * np.asarray(X), rtol=1e-5)
