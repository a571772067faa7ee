"""Factorizations of divided stacks stay divided: no device gets the matrices of another."""

import re

import numpy as np
import pytest

import gradix
from gradix import lax
from tests.devices.eight.common import mesh, on

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 2, 6, 6)).astype("float32")
SPD = X @ X.swapaxes(-1, -2) + 6 * np.eye(6, dtype="float32")
linalg = lax.linalg
FACTORIZATIONS = {
    "cholesky": (linalg.cholesky, SPD),
    "lu": (linalg.lu, X),
    "qr": (linalg.qr, X),
    "svd": (linalg.svd, X),
    "eigh": (linalg.eigh, SPD),
    "eig": (linalg.eig, X),
    "schur": (linalg.schur, X),
    "hessenberg": (linalg.hessenberg, X),
    "tridiagonal": (linalg.tridiagonal, SPD),
    "triangular_solve": (lambda a: linalg.triangular_solve(a, a, left_side=True), X),
    "tridiagonal_solve": (
        lambda b: linalg.tridiagonal_solve(b[..., 0] * 0.1, b[..., 1] * 0 + 1, b[..., 2] * 0.1, b),
        X,
    ),
    "solve": (lambda a: gradix.numpy.linalg.solve(a, a[..., :1]), SPD),
    "gradient": (gradix.grad(lambda a: gradix.numpy.linalg.slogdet(a)[1].sum()), SPD),
    "sort": (lax.sort, np.tile(X.reshape(8, 2, 36), (1, 1, 40))),
    "top_k": (lambda a: lax.top_k(a, 3), np.tile(X.reshape(8, 2, 36), (1, 1, 400))),
    "argsort": (lambda a: gradix.numpy.argsort(a, -1), np.tile(X.reshape(8, 2, 36), (1, 1, 40))),
}
MOVES = re.compile(r" (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)\(")


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_stacks_stay_divided(name):
    call, x = FACTORIZATIONS[name]
    is_real = name in ("tridiagonal", "sort", "top_k", "argsort")
    for dtype, spec in (("float32", ("x",)), *[("complex64", ("x", "y"))] * (not is_real)):
        a = gradix.device_put(x.astype(dtype), on(mesh(), *spec))
        function = gradix.jit(call)
        for found, want in zip(gradix.tree.leaves(function(a)), gradix.tree.leaves(gradix.jit(call)(x.astype(dtype)))):
            assert found.sharding.is_equivalent_to(on(mesh(), *spec), found.ndim), (spec, found.sharding)
            np.testing.assert_allclose(found, want, 1e-4, 1e-4)
        assert not MOVES.search(function.lower(a).compile().as_text()), spec


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_high_parts_of_products(dtype):
    info = np.iinfo(dtype)
    x, y = (
        np.random.default_rng(i).integers(info.min, info.max, (16, 64), dtype=dtype, endpoint=True) for i in range(2)
    )
    with gradix.enable_x64():
        found = gradix.jit(lax.mulhi)(*[gradix.device_put(v, on(mesh(), "x")) for v in (x, y)])
    np.testing.assert_array_equal(found, (x.astype(object) * y.astype(object) >> (8 * x.itemsize)).astype(dtype))


def test_error_functions_stay_divided():
    a = gradix.device_put(np.linspace(-3, 3, 1024, dtype="float32").reshape(16, 64), on(mesh(), "x", "y"))
    for call in (lax.erf, gradix.grad(lambda v: lax.erf(v).sum()), gradix.nn.gelu):
        function = gradix.jit(call)
        assert function(a).sharding == a.sharding and not MOVES.search(function.lower(a).compile().as_text())
        np.testing.assert_allclose(function(a), call(np.asarray(a)), 1e-5, 1e-6)
