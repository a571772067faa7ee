"""Every record of an operation on the platform under test, against the host: values, gradients, mapping.

The records are those of `tests/specs`. Products are asked for in full precision, which a GPU does not take by default.
"""

import os
from itertools import product

import numpy as np
import pytest

import gradix
from tests.rules.test_rules import ALL, DIFFERENTIABLE, crossing, operands, outputs, tolerance
from tests.specs import decompositions

pytestmark = pytest.mark.filterwarnings("ignore")
PLATFORM = os.environ["GRADIX_TEST_PLATFORM"]
# A factorization is unique up to signs and order only; their own test checks what they promise.
FACTORS = {spec.name for spec in decompositions.SPECS}
NAMED = [s for s in ALL if s.name not in FACTORS]


def same(got, want, dtype: str, rtol: float):
    """Bit for bit for integers and booleans; for floats to a tolerance, relative to the largest number of the array."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    if want.dtype.kind == "V":
        got, want = got.astype("f4"), want.astype("f4")
    scale = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=1.0)
    bound = tolerance(dtype, rtol)
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound * scale)


def on(platform: str, function, given):
    """The results of a compiled function of lists of arrays, on the first device of a platform."""
    device = gradix.devices(platform)[0]
    with gradix.default_device(device), gradix.default_matmul_precision("highest"):
        placed = gradix.tree.map(lambda x: gradix.device_put(x, device), given)
        out = gradix.jit(function)(placed)
        assert all(device in x.devices() for x in gradix.tree.leaves(out))
        return gradix.tree.map(np.asarray, out)


def given(pairs):
    with gradix.default_device(gradix.devices("cpu")[0]):
        return [operands(sample, dtype) for sample, dtype in pairs]


def on_host(function, args):
    with gradix.default_device(gradix.devices("cpu")[0]), gradix.default_matmul_precision("highest"):
        return gradix.tree.map(np.asarray, function(args))


@pytest.mark.parametrize("spec", NAMED, ids=repr)
def test_values(spec):
    pairs = crossing(spec.samples, spec.dtypes)
    args = given(pairs)

    def run(given):
        return [outputs(spec, sample, xs) for (sample, _), xs in zip(pairs, given)]

    for (_, dtype), got, want in zip(pairs, on(PLATFORM, run, args), on_host(run, args)):
        for g, w in zip(got, want, strict=True):
            same(g, w, dtype, max(10 * spec.rtol, 2e-5))


def pullback(spec, sample, args):
    """The gradient of the sum of squares of what is real, by the operands that take part."""
    at = [i for i, (a, o) in enumerate(zip(args, sample.operands)) if o.linear and a.dtype.kind == "f"]

    def total(*xs):
        full = list(args)
        for i, x in zip(at, xs):
            full[i] = x
        return sum(abs(y * y).sum() for y in outputs(spec, sample, full) if y.dtype.kind in "fc")

    return gradix.grad(total, tuple(range(len(at))))(*[args[i] for i in at]) if at else ()


@pytest.mark.parametrize(
    "spec", [s for s in DIFFERENTIABLE if s.name not in FACTORS and "float32" in s.dtypes], ids=repr
)
def test_gradients(spec):
    pairs = [(sample, "float32") for sample in spec.samples[:3]]
    args = given(pairs)

    def run(given):
        return [pullback(spec, sample, xs) for (sample, _), xs in zip(pairs, given)]

    for got, want in zip(on(PLATFORM, run, args), on_host(run, args)):
        for g, w in zip(got, want, strict=True):
            same(g, w, "float32", 2e-4)


@pytest.mark.parametrize("spec", [s for s in NAMED if s.mapped], ids=repr)
def test_vmap(spec):
    sample, dtype = spec.samples[0], spec.dtypes[0]
    axes = tuple([0 if o.linear or o.values is None else None for o in sample.operands])
    if not any(a == 0 for a in axes):
        pytest.skip("its operands are given")
    ones, others = (operands_of(sample, dtype, seed) for seed in range(2))
    args = [np.stack([a, b]) if axis == 0 else a for a, b, axis in zip(ones, others, axes)]

    def run(given):
        return gradix.vmap(lambda *xs: outputs(spec, sample, xs), in_axes=axes)(*given)

    for g, w in zip(on(PLATFORM, run, args), on_host(run, args), strict=True):
        same(g, w, dtype, max(10 * spec.rtol, 2e-5))


def operands_of(sample, dtype, seed):
    rng = np.random.default_rng(seed)
    return [o.make(dtype, rng) for o in sample.operands]


@pytest.mark.parametrize(
    "name, dtype", list(product(["cholesky", "qr", "svd", "eigh", "solve", "lu"], ["float32", "complex64"]))
)
def test_factorizations(name, dtype):
    """The factors multiply to the matrix, alone and in a batch."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 8, 8)) + (1j * rng.normal(size=(3, 8, 8)) if dtype == "complex64" else 0)
    a = a.astype(dtype)
    square = a @ a.conj().swapaxes(-1, -2) + np.eye(8, dtype=dtype)
    linalg = gradix.numpy.linalg

    def rebuilt(xs):
        a, square = xs
        if name == "cholesky":
            c = linalg.cholesky(square)
            return c @ c.conj().swapaxes(-1, -2), square
        if name == "qr":
            q, r = linalg.qr(a)
            return q @ r, a
        if name == "svd":
            u, s, v = linalg.svd(a, full_matrices=False)
            return u * s[..., None, :].astype(u.dtype) @ v, a
        if name == "eigh":
            w, v = linalg.eigh(square)
            return v * w[..., None, :].astype(v.dtype) @ v.conj().swapaxes(-1, -2), square
        if name == "solve":
            return square @ linalg.solve(square, a), a
        p, low, up = gradix.scipy.linalg.lu(a[0])
        return p @ low @ up, a[0]

    for args in ([a, square], [a[:1], square[:1]]):
        got, want = on(PLATFORM, rebuilt, args)
        same(got, want, dtype, 1e-4)
