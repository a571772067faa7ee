"""Stacks of small matrices, which native loops factor many at a time: the same answers as LAPACK's, matrix by matrix."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import gradix
import gradix.numpy as jnp
from gradix import lax

pytestmark = pytest.mark.rewritten

COUNT = 300  # more than two chunks of lanes, and not a multiple of one


@pytest.fixture(autouse=True)
def x64():
    with gradix.enable_x64(True):
        yield


def matrices(n, dtype="float32", count=COUNT, seed=0):
    return np.random.default_rng(seed).standard_normal((count, n, n)).astype(dtype)


def positive(n, dtype="float32", count=COUNT):
    a = matrices(n, "float64", count)
    return (a @ a.transpose(0, 2, 1) + n * np.eye(n)).astype(dtype)


def compiled(function, *args):
    """The result, and whether native loops gave it."""
    lowered = gradix.jit(function).lower(*args)
    return gradix.tree.map(np.asarray, lowered.compile()(*args)), "of_stack" in lowered.as_text()


def tolerance(dtype):
    return {"rtol": 2e-4, "atol": 2e-4} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-10}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_factors_and_exchanges_are_those_of_lapack(n, dtype):
    a = matrices(n, dtype)
    (factors, pivots, order), native = compiled(lax.linalg.lu, a)
    assert native
    for i in range(COUNT):
        wanted, exchanges = scipy.linalg.lu_factor(a[i])
        np.testing.assert_array_equal(pivots[i], exchanges)
        np.testing.assert_allclose(factors[i], wanted, **tolerance(dtype))
    below, above = np.tril(factors, -1) + np.eye(n, dtype=dtype), np.triu(factors)
    np.testing.assert_allclose(below @ above, np.take_along_axis(a, order[:, :, None], 1), **tolerance(dtype))


@pytest.mark.parametrize(
    "options",
    [
        dict(zip(("left_side", "lower", "transpose_a", "unit_diagonal"), v))
        for v in itertools.product((False, True), repeat=4)
    ],
    ids=str,
)
def test_triangular_systems_of_every_kind(options):
    a, b = matrices(4, "float64") + 3 * np.eye(4), matrices(4, "float64", seed=1)[:, :, :3]
    b = b if options["left_side"] else b.transpose(0, 2, 1)
    found, native = compiled(lambda a, b: lax.linalg.triangular_solve(a, b, **options), a, b)
    assert native
    triangle = np.tril(a) if options["lower"] else np.triu(a)
    if options["unit_diagonal"]:
        triangle = triangle * (1 - np.eye(4)) + np.eye(4)
    triangle = triangle.transpose(0, 2, 1) if options["transpose_a"] else triangle
    np.testing.assert_allclose(triangle @ found if options["left_side"] else found @ triangle, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_cholesky_is_that_of_lapack_and_does_not_read_above_the_diagonal(n, dtype):
    a = positive(n, dtype)
    above = np.triu(np.ones((n, n), bool), 1)
    for operand in (a, np.where(above, np.nan, a)):
        found, native = compiled(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), operand)
        assert native
        np.testing.assert_allclose(found, np.linalg.cholesky(a), **tolerance(dtype))


def test_cholesky_of_squares_is_exact():
    a = np.broadcast_to(np.diag([9.0, 25.0, 49.0]).astype("float32"), (COUNT, 3, 3))
    np.testing.assert_array_equal(compiled(lax.linalg.cholesky, a)[0], np.sqrt(a))


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan])
def test_cholesky_of_one_matrix_that_is_not_positive_is_nan_and_no_other(bad):
    a = positive(3)
    a[130, 1, 1] = bad
    found, _ = compiled(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), a)
    np.testing.assert_array_equal(np.isnan(found[130]), np.tril(np.ones((3, 3), bool)))
    assert np.isfinite(np.delete(found, 130, 0)).all()


@pytest.mark.parametrize("shape", [(5, 2), (5, 5), (5,)])
def test_solve_inv_and_det(shape):
    a, b = matrices(5, "float64"), np.random.default_rng(2).standard_normal((COUNT, *shape))
    b = b if len(shape) > 1 else b[..., None]
    for function, args, wanted in (
        (jnp.linalg.solve, (a, b), np.linalg.solve(a, b)),
        (jnp.linalg.inv, (a,), np.linalg.inv(a)),
        (jnp.linalg.det, (a,), np.linalg.det(a)),
    ):
        found, native = compiled(function, *args)
        assert native
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


def test_singular_matrices_have_lapacks_zeros_and_infinities():
    a = matrices(4)
    a[3], a[7, :, 2], a[9, 1] = 0, 0, 0
    a[200] = np.diag([1, 0, 2, 3])
    many = compiled(lax.linalg.lu, a)[0]
    b = np.ones((COUNT, 4, 1), "float32")
    for i in (3, 7, 9, 200):
        one, native = compiled(lax.linalg.lu, a[i])
        assert not native
        for found, wanted in zip(many, one):
            np.testing.assert_allclose(found[i], wanted, rtol=1e-5, atol=1e-6)
    solved, one = compiled(jnp.linalg.solve, a, b)[0], compiled(jnp.linalg.solve, a[200], b[200])[0]
    np.testing.assert_array_equal(solved[200], one)
    assert not np.isfinite(solved[[3, 7, 9, 200]]).all(axis=(1, 2)).any()
    assert np.isfinite(np.delete(solved, [3, 7, 9, 200], 0)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_matrix(bad):
    a, b = matrices(4), np.ones((COUNT, 4, 1), "float32")
    clean, _ = compiled(jnp.linalg.solve, a, b)
    a[150, 2, 1] = bad
    found, _ = compiled(jnp.linalg.solve, a, b)
    np.testing.assert_array_equal(np.delete(found, 150, 0), np.delete(clean, 150, 0))
    alone, _ = compiled(jnp.linalg.solve, a[150:151], b[150:151])
    np.testing.assert_array_equal(np.isnan(found[150]), np.isnan(alone[0]))


def test_a_pivot_of_nan_stays_where_it_is():
    a = matrices(3)
    a[40, 0, 0] = np.nan
    assert compiled(lax.linalg.lu, a)[0][1][40, 0] == scipy.linalg.lu_factor(a[40], check_finite=False)[1][0] == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: jnp.linalg.solve(a, b),
        lambda a, b: jnp.linalg.inv(a) * b,
        lambda a, b: jnp.linalg.det(a)[:, None, None] * b,
        lambda a, b: lax.linalg.cholesky(a @ a.mT + jnp.eye(3)) @ b,
        lambda a, b: lax.linalg.lu(a)[0] * b,
    ],
    ids=range(5),
)
def test_derivatives_are_those_of_single_matrices(function):
    a, b = matrices(3, "float64") + 4 * np.eye(3), matrices(3, "float64", seed=1)

    def total(a, b):
        return jnp.sum(jnp.sin(function(a, b)))

    few = [gradix.grad(total, (0, 1))(a[i : i + 1], b[i : i + 1]) for i in (0, 131, COUNT - 1)]
    for many, *ones in zip(gradix.jit(gradix.grad(total, (0, 1)))(a, b), *few):
        for i, one in zip((0, 131, COUNT - 1), ones):
            np.testing.assert_allclose(many[i], one[0], rtol=1e-9, atol=1e-9)


def test_stacks_of_stacks_and_mapped_matrices():
    a = matrices(4, "float64", 2 * COUNT).reshape(2, COUNT, 4, 4)
    wanted = np.linalg.inv(a)
    for function in (jnp.linalg.inv, gradix.vmap(gradix.vmap(jnp.linalg.inv)), gradix.vmap(jnp.linalg.inv, 1, 1)):
        found, native = compiled(function, a)
        assert native
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


def test_in_a_loop():
    a = matrices(3, "float64") + 4 * np.eye(3)

    def run(x):
        return lax.fori_loop(0, 5, lambda _, y: jnp.linalg.solve(a, y), x)

    found, _ = compiled(run, np.ones((COUNT, 3, 1)))
    np.testing.assert_allclose(found, np.linalg.matrix_power(np.linalg.inv(a), 5) @ np.ones((COUNT, 3, 1)), rtol=1e-9)


@pytest.mark.parametrize(
    "shape, dtype",
    [
        ((200, 4, 4), "float32"),
        ((300, 16, 16), "float32"),
        ((300, 10, 10), "float64"),
        ((300, 4, 4), "complex64"),
        ((300, 3, 4), "float32"),
    ],
)
def test_the_others_go_to_lapack(shape, dtype):
    assert not compiled(lax.linalg.lu, np.ones(shape, dtype))[1]
