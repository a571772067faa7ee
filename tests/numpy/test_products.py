"""Products of arrays, einsum, norms and polynomials: NumPy is the reference."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from tests.same import assert_same

R = np.random.RandomState(0)
A = R.randn(2, 3).astype(np.float32)
B = R.randn(3, 4).astype(np.float32)
V = R.randn(3).astype(np.float32)
S = R.randn(5, 2, 3).astype(np.float32)
T = R.randn(5, 3, 4).astype(np.float32)
Q = R.randn(3, 3).astype(np.float32)
C = (R.randn(2, 3) + 1j * R.randn(2, 3)).astype(np.complex64)
N = np.arange(6, dtype=np.int32).reshape(2, 3)
GIVEN = {"A": A, "B": B, "V": V, "S": S, "T": T, "Q": Q, "C": C, "N": N}


CASES = """
jnp.matmul(A, B), jnp.matmul(S, T), jnp.matmul(A, T), jnp.matmul(S, B), jnp.matmul(S, V), jnp.matmul(V, T)
jnp.matmul(V, V)
jnp.matmul(S[:, None], T), jnp.matmul(S[None, :1], T), jnp.matmul(S[:1], T[:1]), jnp.matmul(A, V), jnp.matmul(C, B)
jnp.matmul(N, N.T), jnp.matmul(N, B), jnp.matmul(A[:, :0], B[:0])
jnp.dot(A, B), jnp.dot(V, V), jnp.dot(A, V), jnp.dot(S, T), jnp.dot(2.0, A), jnp.dot(A, 2), jnp.dot(V, B), jnp.dot(S, V)
jnp.inner(A, Q), jnp.inner(V, V), jnp.inner(A, 2.0), jnp.vdot(C, A), jnp.vdot(C, C), jnp.outer(A, V), jnp.outer(C, C)
jnp.vecdot(C, A), jnp.vecdot(S, V), jnp.vecdot(A, A, axis=0), jnp.vecdot(S[:, None], A), jnp.vecdot(S, A)
jnp.matvec(A, V), jnp.matvec(S, S[:, 0]), jnp.matvec(A, S[:, 0]), jnp.vecmat(V, B), jnp.vecmat(C, B), jnp.vecmat(V, T)
jnp.tensordot(A, B, 1), jnp.tensordot(S, Q.T, 1), jnp.tensordot(S, T, ([0, 2], [0, 1])), jnp.tensordot(V, V, 0)
jnp.tensordot(S, A, 2), jnp.tensordot(A, Q, (1, 0)), jnp.tensordot(S, S, 3), jnp.tensordot(S, T, ([-1], [1]))
jnp.kron(A, B), jnp.kron(V, A), jnp.kron(S, V), jnp.kron(N, 2)
jnp.cross(A, V), jnp.cross(Q, Q[::-1]), jnp.cross(A.T, A.T, axis=0), jnp.cross(S, A), jnp.cross(N, N[::-1])
jnp.cross(Q, Q[::-1], axisa=0, axisb=1, axisc=0)
jnp.linalg.norm(V), jnp.linalg.norm(A), jnp.linalg.norm(S), jnp.linalg.norm(C), jnp.linalg.norm(N)
jnp.linalg.norm(A, axis=1)
jnp.linalg.norm(V, 1), jnp.linalg.norm(V, np.inf), jnp.linalg.norm(V, -np.inf), jnp.linalg.norm(V, 0)
jnp.linalg.norm(V, 3)
jnp.linalg.norm(V, -2), jnp.linalg.norm(V, 0.5), jnp.linalg.norm(A, 1), jnp.linalg.norm(A, -1)
jnp.linalg.norm(A, np.inf)
jnp.linalg.norm(A, -np.inf), jnp.linalg.norm(A, "fro"), jnp.linalg.norm(S, 1, axis=(2, 0))
jnp.linalg.norm(S, axis=(0, 1))
jnp.linalg.norm(S, 2, axis=1, keepdims=True), jnp.linalg.norm(S, 1, axis=(1, 2), keepdims=True), jnp.linalg.norm(C, 1)
jnp.linalg.vector_norm(S), jnp.linalg.vector_norm(S, axis=(0, 1))
jnp.linalg.vector_norm(S, axis=1, ord=1, keepdims=True)
jnp.linalg.matrix_norm(S), jnp.linalg.matrix_norm(S, ord=1), jnp.linalg.matrix_norm(A, ord=np.inf, keepdims=True)
jnp.linalg.matrix_power(Q, 0), jnp.linalg.matrix_power(Q, 1), jnp.linalg.matrix_power(Q, 5)
jnp.linalg.matrix_power(Q, 6)
jnp.linalg.multi_dot([A, B]), jnp.linalg.multi_dot([A, Q, B]), jnp.linalg.multi_dot([V, Q, B])
jnp.linalg.multi_dot([V, Q, V])
jnp.linalg.multi_dot([A, Q, Q, V])
jnp.linalg.outer(V, V), jnp.linalg.cross(V, Q[0]), jnp.linalg.diagonal(S), jnp.linalg.trace(T, offset=1)
jnp.linalg.tensordot(A, B, axes=1), jnp.linalg.vecdot(A, A), jnp.linalg.matmul(A, B), jnp.linalg.matrix_transpose(S)
jnp.polyval(V, 2.0), jnp.polyval(V, A), jnp.polyadd(V, A[0, :2]), jnp.polysub(A[0, :2], V), jnp.polymul(V, A[0, :2])
jnp.polyder(V), jnp.polyder(V, 2), jnp.polyint(V), jnp.polyint(V, 3, k=[1, 2, 3]), jnp.polyint(V, 2, k=4), jnp.poly(V)
jnp.polyder(V, 3), jnp.polyint(V, 0), jnp.polyder(V, 0)
""".strip().splitlines()


@pytest.mark.parametrize("text", CASES)
def test_as_numpy(text):
    if "matvec" in text and not hasattr(np, "matvec"):
        pytest.skip("this NumPy has no matvec and vecmat")
    jnp_names = {"jnp": jnp, "np": np, **{k: jnp.asarray(v) for k, v in GIVEN.items()}}
    wide = {k: v.astype(np.float64 if v.dtype == np.float32 else v.dtype) for k, v in GIVEN.items()}
    got, want = (
        eval(text.replace("k=[1, 2, 3]", "k=jnp.array([1, 2, 3])"), jnp_names),
        eval(text, {"jnp": np, "np": np, **wide}),
    )
    assert_same(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("text", CASES)
def test_compiled_as_eager(text):
    text = text.replace("k=[1, 2, 3]", "k=jnp.array([1, 2, 3])")
    arrays = {k: jnp.asarray(v) for k, v in GIVEN.items()}
    f = gradix.jit(lambda given: eval(text, {"jnp": jnp, "np": np, **given}))
    assert_same(f(arrays), eval(text, {"jnp": jnp, "np": np, **arrays}), rtol=1e-5, atol=1e-5)


SUMS = [
    "ij,jk",
    "ij,jk->ki",
    "ij->ji",
    "ij->",
    "ij->j",
    "ij",
    "ij,jk->i",
    "ij,ij->i",
    "ij,ij",
    "ij,ij->ji",
    "ij,kl->ikjl",
    "ii",
    "ii->i",
    "iij->ij",
    "iij,jk->ik",
    "iii->i",
    "bij,bjk->bik",
    "bij,bjk->ijk",
    "...ij,...jk",
    "...ij,...jk->...ik",
    "i...,i...",
    "...",
    "...,...",
    "ij,...j->...i",
    "ij,->ij",
    ",->",
    "i,j,k->kji",
    "ij,jk,kl->il",
    "ij,jk,kl",
    "i,ij,j",
    "ij,kj,lj->ikl",
    "ab,bc,cd,da",
    "abc,abd,acd->bcd",
    "ij , jk -> ik",
    "bqhd,bkhd->bhqk",
    "bhqk,bkhd->bqhd",
    "Ab,bC->AC",
    "a,a,a->a",
    "ab,ab,ab->",
    "xyz,zw->wyx",
    "ba,dca,ed->abe",
]


def operands(text):
    """Arrays whose shapes fit the subscripts; "..." stands for two axes."""
    sizes = {}
    out = []
    for term in text.replace(" ", "").partition("->")[0].split(","):
        shape = [sizes.setdefault(c, 2 + len(sizes) % 3) for c in term.replace("...", "XY")]
        out.append(np.asarray(R.randn(*shape)))
    return out


@pytest.mark.parametrize("text", SUMS)
def test_einsum(text):
    xs = operands(text)
    want = np.einsum(text, *xs)
    small = [x.astype(np.float32) for x in xs]
    assert_same(jnp.einsum(text, *small), want, rtol=1e-4, atol=1e-4)
    assert_same(gradix.jit(lambda *xs: jnp.einsum(text, *xs))(*small), want, rtol=1e-4, atol=1e-4)
    for optimize in ("optimal", "greedy", False, True):
        assert_same(jnp.einsum(text, *small, optimize=optimize), want, rtol=1e-4, atol=1e-4)
    if text not in ("...",):
        total = gradix.grad(lambda x, *rest: (jnp.einsum(text, x, *rest) ** 2).sum())(*map(jnp.asarray, small))
        eps = 1e-4 * R.randn(*xs[0].shape)
        up = (np.einsum(text, xs[0] + eps, *xs[1:]) ** 2).sum() - (np.einsum(text, xs[0] - eps, *xs[1:]) ** 2).sum()
        assert_same((np.asarray(total, np.float64) * eps).sum(), up / 2, rtol=1e-2, atol=1e-5)


def test_other_ways_to_call_einsum():
    assert_same(jnp.einsum(A, [0, 1], B, [1, 2], [0, 2]), A @ B)
    assert_same(jnp.einsum(S, [..., 0, 1], T, [..., 1, 2]), np.einsum(S, [..., 0, 1], T, [..., 1, 2]))
    assert_same(jnp.einsum("ij,jk", A[:, :1], B), A[:, :1] * B.sum(0))  # axes of size 1 broadcast
    assert_same(jnp.einsum("ij,jk,kl->il", A, Q, B, optimize=[(1, 2), (0, 1)]), A @ Q @ B)
    assert jnp.einsum("ij,jk", N, N.T).dtype == jnp.int32
    assert jnp.einsum("ij,jk", N, B).dtype == jnp.float32
    assert jnp.einsum("ij,jk", A, B, preferred_element_type="float16").dtype == jnp.float16
    path, text = jnp.einsum_path("ij,jk,k->i", A, B, B[0])
    assert path == [(1, 2), (0, 1)] and "jk" in str(text)


@pytest.mark.x32
def test_dtypes_of_products():
    weak = jnp.full((2,), 2.0)
    assert weak.weak_type and jnp.dot(weak, weak).weak_type
    assert jnp.dot(N, 2.0).dtype == jnp.float32 and jnp.dot(N, 2.0).weak_type
    assert jnp.matmul(N, B).dtype == jnp.float32
    assert jnp.matmul(jnp.ones((2, 2), "bfloat16"), jnp.ones((2, 2), "float16")).dtype == jnp.float32
    assert jnp.matmul(N.astype("int8"), N.T.astype("int8")).dtype == jnp.int8
    assert jnp.matmul(N.astype("int8"), N.T.astype("int8"), preferred_element_type="int32").dtype == jnp.int32


def test_division_of_polynomials():
    for u, v in (([1.0, 3, 2], [1.0, 1]), ([2.0, 0, 1, 5], [1.0, 2, 3]), ([1.0, 2], [1.0, 2, 3])):
        quotient, rest = jnp.polydiv(jnp.array(u), jnp.array(v), trim_leading_zeros=True)
        assert_same((quotient, rest), np.polydiv(u, v), atol=1e-5)
    assert_same(jnp.polymul(jnp.array([0.0, 1, 1]), jnp.array([0.0, 2]), trim_leading_zeros=True), [2, 2])
    assert_same(gradix.grad(lambda p: jnp.polyval(p, 2.0))(jnp.asarray(V)), [4, 2, 1])


PRODUCTS = [
    (jnp.matmul, (A, B)),
    (jnp.matmul, (S, T)),
    (jnp.dot, (S, T)),
    (lambda a, b: jnp.einsum("ij,jk", a, b), (A, B)),
    (lambda s, t: jnp.einsum("bij,bjk->bik", s, t), (S, T)),
    (lambda a, b: jnp.tensordot(a, b, 1), (A, B)),
]


@pytest.mark.parametrize("f,xs", PRODUCTS)
def test_a_matrix_product_is_one_equation(f, xs):
    assert [e.primitive.name for e in gradix.make_jaxpr(f)(*xs).jaxpr.eqns] == ["dot_general"]


WRONG = [
    (lambda: jnp.matmul(A, 2.0), ValueError, "operand 1 is a scalar"),
    (lambda: jnp.matmul(A, A), TypeError, r"matmul: shapes \(2, 3\) and \(2, 3\)"),
    (lambda: jnp.matmul(S, T[:3]), ValueError, "broadcasting"),
    (lambda: jnp.dot(A, A), TypeError, r"dot: shapes \(2, 3\) and \(2, 3\)"),
    (lambda: jnp.dot([1, 2], [3, 4]), TypeError, "list"),
    (lambda: jnp.tensordot(A, B, 3), TypeError, "is more than the arrays of shapes"),
    (lambda: jnp.tensordot(A, B, ([0, 1], [0])), TypeError, "as many axes of a as of b"),
    (lambda: jnp.vecdot(V, A.T), ValueError, "same size"),
    (lambda: jnp.matvec(V, V), ValueError, "do not fit"),
    (lambda: jnp.cross(B, B), ValueError, "2 or 3"),
    (lambda: jnp.einsum("ij,jk", A), ValueError, "names 2 operands, got 1"),
    (lambda: jnp.einsum("ijk", A), ValueError, "names 3 axes"),
    (lambda: jnp.einsum("i", A), ValueError, "names 1 axes"),
    (lambda: jnp.einsum("ij->k", A), ValueError, "'k'"),
    (lambda: jnp.einsum("ij->ii", A), ValueError, "more than once"),
    (lambda: jnp.einsum("ij,jk", A, A), ValueError, "'j' .* sizes 3 and 2"),
    (lambda: jnp.einsum("ij,jk", A, B, out=A), NotImplementedError, "out"),
    (lambda: jnp.linalg.norm(V, "fro"), ValueError, "for vectors"),
    (lambda: jnp.linalg.norm(A, 3), ValueError, "for matrices"),
    (lambda: jnp.linalg.norm(S, 1), ValueError, "shape"),
    (lambda: jnp.linalg.norm(S, axis=(0, 1, 2)), ValueError, "axis"),
    (lambda: jnp.linalg.matrix_power(A, 2), TypeError, "square"),
    (lambda: jnp.linalg.matrix_power(Q, 1.5), TypeError, "integer"),
    (lambda: jnp.linalg.multi_dot([A]), ValueError, "at least two"),
    (lambda: jnp.linalg.multi_dot([A, A]), ValueError, "do not fit"),
    (lambda: jnp.linalg.outer(A, V), ValueError, "must be vectors"),
    (lambda: jnp.linalg.cross(V[:2], V[:2]), ValueError, "must have size 3"),
    (lambda: jnp.polyder(V, -1), ValueError, "must not be negative"),
    (lambda: jnp.polyint(V, 2, k=V), ValueError, "scalar or a vector of 1"),
]


@pytest.mark.parametrize("f,error,text", WRONG)
def test_misuse(f, error, text):
    with pytest.raises(error, match=text):
        f()


def test_labels_of_einsum_are_numbers_or_words():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(2, 4)
    want = np.einsum("ab,ac->bc", x, y)
    for a, b, c in ((0, 1, 2), (40, 7, 1000), ("rows", "left", "right"), (np.int8(1), 2, 3)):
        np.testing.assert_array_equal(jnp.einsum(x, [a, b], y, [a, c], [b, c]), want)
    np.testing.assert_array_equal(jnp.einsum(x, ["z", "a"]), x.T)
    np.testing.assert_array_equal(jnp.einsum(x, [..., "n"], x, [..., "n"], [...]), (x * x).sum(1))
    with pytest.raises(TypeError, match="labels of one kind"):
        jnp.einsum(x, ["a", 0], [0])
