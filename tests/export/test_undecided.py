"""How many comparisons of symbolic dimensions are left undecided, beside the reference implementation's count."""

import importlib.util
import random

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import core, export
from gradix._core.dimensions.expression import larger, smaller
from gradix.errors import InconclusiveDimensionOperation
from tests.export.test_symbolic_dims import COMPARISONS, CONSTRAINTS, ENVIRONMENTS, allowed, drawn, value

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed"),
]
UNDECIDED = object()


def answer(compare, x, y, error):
    try:
        return compare(x(), y())
    except error:
        return UNDECIDED


def counts(seed: int, drawings: int) -> dict[str, int]:
    """Comparisons of drawn expressions: all, those that have one answer in small ranges, and those either library leaves undecided."""
    import jax
    from jax import export as peer

    found = dict.fromkeys(("asked", "one answer", "ours undecided", "theirs undecided"), 0)
    rng = random.Random(seed)
    for _ in range(drawings):
        constraints = rng.choice(CONSTRAINTS) if rng.random() < 0.5 else ()
        left, right = drawn(rng, 3), drawn(rng, 2)
        ours = dict(zip("abc", export.symbolic_shape("a, b, c", scope=export.SymbolicScope(constraints))))
        theirs = dict(zip("abc", peer.symbolic_shape("a, b, c", constraints=list(constraints))))
        x, y = (value(e, ours, larger, smaller) for e in (left, right))
        v, w = (
            (lambda e=e, theirs=theirs: value(e, theirs, jax.core.max_dim, jax.core.min_dim)) for e in (left, right)
        )
        if type(x) is type(y) is int:
            continue
        numbers = [(value(left, env), value(right, env)) for env in ENVIRONMENTS if allowed(constraints, env)]
        for compare in COMPARISONS:
            answers = {compare(n, m) for n, m in numbers}
            have = answer(compare, lambda x=x: x, lambda y=y: y, InconclusiveDimensionOperation)
            assert have is UNDECIDED or answers == {have}, (left, compare, right, constraints)
            found["asked"] += 1
            if len(answers) == 1:
                found["one answer"] += 1
                found["ours undecided"] += have is UNDECIDED
                found["theirs undecided"] += (
                    answer(compare, v, w, (jax.errors.InconclusiveDimensionOperation, AssertionError)) is UNDECIDED
                )
    return found


@pytest.mark.parametrize(("seed", "drawings"), [(1, 60), pytest.param(2, 14_000, marks=pytest.mark.slow)])
def test_fewer_comparisons_are_undecided(seed, drawings):
    found = counts(seed, drawings)
    print(found)
    assert found["asked"] > 3.5 * drawings
    assert found["ours undecided"] < 0.9 * found["theirs undecided"]


def test_larger_and_smaller_of_undecided_sizes():
    (b,) = export.symbolic_shape("b")
    assert str(core.max_dim(b - 5, 0)) == "max(b - 5, 0)" and core.max_dim(b + 5, 0) == b + 5

    def f(x):
        b = x.shape[0]
        return jnp.ones((core.max_dim(b - 5, 0), core.min_dim(b, 4)))

    exported = export.export(gradix.jit(f))(gradix.ShapeDtypeStruct((b,), np.float32))
    for n in (1, 3, 8):
        assert exported.call(np.ones(n, "float32")).shape == (max(n - 5, 0), min(n, 4))


@pytest.mark.parametrize(
    "function, shape",
    [
        (lambda x: jnp.linalg.qr(x), "b, 0, 4"),
        (lambda x: jnp.linalg.svd(x, full_matrices=False), "b, 0, 4"),
        (lambda x: jnp.linalg.eigh(x), "b, 0, 0"),
        (lambda x: gradix.scipy.linalg.lu_factor(x), "b, 0, 0"),
    ],
)
def test_factorizations_of_empty_matrices_in_open_batches(function, shape):
    spec = gradix.ShapeDtypeStruct(export.symbolic_shape(shape), np.float32)
    exported = export.export(gradix.jit(function))(spec)
    x = np.ones([2 if n == "b" else int(n) for n in shape.split(", ")], "float32")
    for got, want in zip(gradix.tree.leaves(exported.call(x)), gradix.tree.leaves(function(x)), strict=True):
        assert got.shape == want.shape


def _exported(function, shape, dtype="float32"):
    spec = gradix.ShapeDtypeStruct(export.symbolic_shape(shape), np.dtype(dtype))
    return export.export(gradix.jit(function))(spec)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "uint16"])
def test_words_drawn_by_halves_for_an_open_number(dtype):
    """The number of words may be odd, and then the last of the second half is padding."""

    def draw(x):
        key = gradix.random.key(0)
        return gradix.random.uniform(key, x.shape) if dtype == "float32" else gradix.random.bits(key, x.shape, dtype)

    with gradix.threefry_partitionable(False):
        exported = _exported(draw, "b")
        for n in (1, 4, 7, 10):
            x = np.zeros(n, "float32")
            np.testing.assert_array_equal(exported.call(x), draw(x))


def test_factorization_of_an_open_rectangle():
    exported = _exported(lambda x: gradix.lax.linalg.lu(x), "m, n")
    assert str(exported.out_avals[1].shape[0]) == "min(m, n)"
    for shape in ((5, 3), (3, 5), (4, 4)):
        x = np.random.RandomState(0).randn(*shape).astype("float32")
        for got, want in zip(exported.call(x), gradix.lax.linalg.lu(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_an_open_number_of_largest():
    exported = _exported(lambda x: gradix.lax.approx_max_k(x, x.shape[0] // 2 + 1), "n")
    x = np.arange(9.0, dtype="float32")[::-1] % 5
    np.testing.assert_array_equal(exported.call(x)[0], np.sort(x)[::-1][:5])
