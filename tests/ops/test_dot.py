"""Contractions against einsum, on the host and compiled, and their derivatives and batching."""

import ml_dtypes
import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp

# (lhs shape, rhs shape, dimension numbers, einsum)
CONTRACTIONS = {
    "vector-vector": ((3,), (3,), (((0,), (0,)), ((), ())), "i,i->"),
    "matrix-vector": ((2, 3), (3,), (((1,), (0,)), ((), ())), "ij,j->i"),
    "vector-matrix": ((3,), (3, 4), (((0,), (0,)), ((), ())), "i,ij->j"),
    "matrix-matrix": ((2, 3), (3, 4), (((1,), (0,)), ((), ())), "ij,jk->ik"),
    "transposed": ((3, 2), (4, 3), (((0,), (1,)), ((), ())), "ji,kj->ik"),
    "batched": ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,))), "bij,bjk->bik"),
    "batch elsewhere": ((2, 3, 5), (3, 5, 4, 2), (((1,), (0,)), ((2,), (1,))), "ijb,jbkl->bikl"),
    "two contracted": ((2, 3, 5), (5, 3, 4), (((1, 2), (1, 0)), ((), ())), "ijk,kjl->il"),
    "outer": ((2, 3), (4,), (((), ()), ((), ())), "ij,k->ijk"),
    "all batch": ((4,), (4,), (((), ()), ((0,), (0,))), "i,i->i"),
    "nothing to sum": ((2, 0), (0, 3), (((1,), (0,)), ((), ())), "ij,jk->ik"),
}
MATMUL = CONTRACTIONS["matrix-matrix"][2]


def whole_numbers(shape, dtype, seed=0):
    """Small whole numbers, so that every order of summation gives the same."""
    values = np.random.default_rng(seed).integers(-4 if np.dtype(dtype).kind != "u" else 0, 5, shape)
    return (values > 0) if np.dtype(dtype).kind == "b" else values.astype(dtype)


@pytest.mark.parametrize("name", CONTRACTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16, "int8", "uint32", "complex64"])
def test_is_einsum(name, dtype):
    a, b, numbers, spelled = CONTRACTIONS[name]
    x, y = whole_numbers(a, dtype), whole_numbers(b, dtype, 1)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    want = np.einsum(spelled, x.astype(wide), y.astype(wide))
    for f in (lax.dot_general, gradix.jit(lax.dot_general, static_argnums=2)):
        got = np.asarray(f(x, y, numbers))
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got.astype(wide), want)


def test_integers_wrap_and_booleans_ask_for_any():
    x = np.full((1, 2), 100, np.int8)
    assert lax.dot_general(x, x.T, MATMUL).item() == np.int8(100 * 100 * 2 % 256)
    assert lax.dot_general(np.array([[True, False]]), np.array([[False], [True]]), MATMUL).item() is False


@pytest.mark.parametrize(
    "lhs, rhs, preferred, result",
    [
        ("int8", "int8", "int32", "int32"),
        ("bfloat16", "bfloat16", "float32", "float32"),
        ("float32", "bfloat16", None, "float32"),
        ("uint8", "int8", None, "int8"),
        ("float16", "bfloat16", None, "bfloat16"),
        ("float32", "complex64", None, "complex64"),
        ("int32", "float32", None, "float32"),
        ("float32", "float32", "bfloat16", "bfloat16"),
        ("bool", "int8", None, "int8"),
    ],
)
def test_dtype_of_the_result(lhs, rhs, preferred, result):
    dtype = {n: np.dtype(getattr(ml_dtypes, n, n)) for n in (lhs, rhs, preferred, result) if n}
    x, y = whole_numbers((2, 3), dtype[lhs]), whole_numbers((3, 4), dtype[rhs], 1)

    def f(x, y):
        return lax.dot_general(x, y, MATMUL, preferred_element_type=dtype.get(preferred))

    for got in (f(x, y), gradix.jit(f)(x, y)):
        assert got.dtype == dtype[result]
        np.testing.assert_array_equal(np.asarray(got).astype(complex), x.astype(complex) @ y.astype(complex))


def test_preferred_element_type_must_not_lose_integers():
    x = np.ones((2, 2), np.int32)
    with pytest.raises(TypeError, match="narrower.*int8.*int32"):
        lax.dot_general(x, x, MATMUL, preferred_element_type=np.int8)
    with pytest.raises(TypeError, match="narrower.*float16.*complex64"):
        lax.dot_general(x.astype(np.complex64), x, MATMUL, preferred_element_type=np.float16)


@pytest.mark.parametrize("name", [n for n in CONTRACTIONS if n != "nothing to sum"])
def test_gradients_are_the_adjoints(name):
    a, b, numbers, _ = CONTRACTIONS[name]
    x, y = whole_numbers(a, "float32"), whole_numbers(b, "float32", 1)
    z, back = gradix.vjp(lambda x, y: lax.dot_general(x, y, numbers), x, y)
    ct = whole_numbers(z.shape, "float32", 2)
    for primal, adjoint, of in (
        (x, back(ct)[0], lambda t: lax.dot_general(t, y, numbers)),
        (y, back(ct)[1], lambda t: lax.dot_general(x, t, numbers)),
    ):
        t = whole_numbers(primal.shape, "float32", 3)
        assert np.sum(np.asarray(of(t)) * ct) == np.sum(t * np.asarray(adjoint))


@pytest.mark.parametrize("name", ["matrix-matrix", "batched", "batch elsewhere", "outer"])
@pytest.mark.parametrize("in_axes", [(0, None), (1, None), (None, 1), (0, 0), (1, 0)])
def test_vmap_is_the_loop(name, in_axes):
    a, b, numbers, _ = CONTRACTIONS[name]
    x, y = [whole_numbers(s if i is None else (*s[:i], 2, *s[i:]), "float32") for s, i in zip((a, b), in_axes)]
    got = gradix.vmap(lambda x, y: lax.dot_general(x, y, numbers), in_axes=in_axes)(x, y)
    rows = [[v if i is None else np.take(v, k, i) for v, i in zip((x, y), in_axes)] for k in range(2)]
    np.testing.assert_array_equal(got, np.stack([lax.dot_general(*r, numbers) for r in rows]))


def test_one_mapped_operand_needs_no_transpose():
    program = gradix.make_jaxpr(gradix.vmap(lambda x, y: lax.dot_general(x, y, MATMUL), in_axes=(1, None), out_axes=1))(
        np.ones((2, 5, 3), np.float32), np.ones((3, 4), np.float32)
    )
    assert [e.primitive.name for e in program.eqns] == ["dot_general"]


@pytest.mark.parametrize(
    "given, canonical",
    [
        (None, None),
        ("high", (lax.Precision.HIGH,) * 2),
        ("float32", (lax.Precision.HIGHEST,) * 2),
        (("default", "highest"), (lax.Precision.DEFAULT, lax.Precision.HIGHEST)),
        ("F32_F32_F32", lax.DotAlgorithmPreset.F32_F32_F32),
    ],
)
def test_precision_spellings(given, canonical):
    x = np.ones(3, np.float32)
    program = gradix.make_jaxpr(lambda x: lax.dot(x, x, precision=given))(x)
    assert program.eqns[0].params["precision"] == canonical
    assert gradix.jit(lambda x: lax.dot(x, x, precision=given))(x) == 3


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: lax.dot_general(x, x, MATMUL), TypeError, r"contracting dimensions.*\(3,\).*\(2,\)"),
        (lambda x: lax.dot_general(x, x.T, (((2,), (0,)), ((), ()))), TypeError, "less than the number of axes"),
        (lambda x: lax.dot_general(x, x.T, (((-1,), (0,)), ((), ()))), TypeError, "nonnegative"),
        (lambda x: lax.dot_general(x, x.T, (((1,), (0,)), ((1,), (0,)))), TypeError, "disjoint"),
        (lambda x: lax.dot_general(x, x.T, (((1, 1), (0, 1)), ((), ()))), TypeError, "distinct"),
        (lambda x: lax.dot_general(x, x.T, (((1,), (0,)), ((0,), ()))), TypeError, "equal numbers"),
        (lambda x: lax.dot(x, x), ValueError, "dimension_numbers must be specified"),
        (lambda x: lax.dot(x, x.T, precision="exact"), ValueError, "precision must be"),
        (lambda x: lax.batch_matmul(x[0], x[0]), ValueError, "at least 2D"),
        (lambda x: lax.batch_matmul(x[None], x), ValueError, "same ndim"),
        (lambda x: lax.dot([[1.0]], x), TypeError, "list"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    "dtype, wanted, result",
    [
        ("float32", "int8", [[-6, 127], [-128, 127]]),
        ("float32", "uint8", [[0, 255], [0, 255]]),
        ("float32", "bool", [[1, 1], [1, 1]]),
        ("bfloat16", "int32", [[-6, 274], [-346, 9984]]),
        ("bfloat16", "float16", [[-6.65625, 274], [-346, 9984]]),
    ],
)
def test_sums_are_rounded_to_the_operands_dtype_before_they_become_integers_or_narrower_floats(dtype, wanted, result):
    x = jnp.array([[1.6, 2.7], [-3.4, 100.0]]).astype(dtype)
    product = lambda x: lax.dot_general(x, x, MATMUL, preferred_element_type=wanted)  # noqa: E731
    for found in (product(x), gradix.jit(product)(x)):
        assert found.dtype == wanted and found.tolist() == result


def test_integers_give_no_booleans():
    with pytest.raises(TypeError, match="must not be narrower"):
        lax.dot_general(np.ones((2, 2), "int8"), np.ones((2, 2), "int8"), MATMUL, preferred_element_type=bool)


@pytest.mark.parametrize(
    "dtype, other, wanted, result",
    [
        ("bool", "float32", "int32", [[1, -2, -1]]),
        ("int8", "float32", "int8", [[1, -2, -1]]),
        ("bool", "float32", "bool", [[1, 1, 1]]),
        ("bfloat16", "float32", "int32", [[1, -2, -1]]),
    ],
)
def test_operands_of_two_dtypes_become_the_dtype_of_the_result_first(dtype, other, wanted, result):
    x = jnp.array([[1, 0, 1]]).astype(dtype)
    y = jnp.array([[1.6, -2.7, 0.5], [3.3, 4.4, 5.5], [0.7, 0.6, -1.6]], other)
    product = lambda x, y: lax.dot_general(x, y, MATMUL, preferred_element_type=wanted)  # noqa: E731
    for found in (product(x, y), gradix.jit(product)(x, y)):
        assert found.dtype == wanted and found.tolist() == result
