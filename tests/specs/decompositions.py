"""Matrix factorizations and triangular systems."""

from __future__ import annotations

import itertools

import numpy as np

import gradix
from gradix import lax
from gradix.lax import linalg
from tests.specs.spec import C64, F32, Operand, Sample, Spec


def matrices(*shape) -> Operand:
    return Operand(shape)


def positive(*shape) -> Operand:
    """Values near a multiple of the identity, so that the Hermitian part is positive definite."""
    rng = np.random.default_rng(len(shape) + shape[-1])
    return Operand(shape, values=rng.uniform(-0.5, 0.5, shape) + 4 * np.eye(shape[-1]))


def triangular(*shape) -> Operand:
    return Operand(shape, values=np.random.default_rng(shape[-1]).uniform(0.2, 1, shape) + 2 * np.eye(shape[-1]))


def _solve(a, b, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        eye = np.eye(a.shape[-1])
        a = a * (1 - eye) + eye
    a = np.conj(a) if conjugate_a else a
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    return np.linalg.solve(a, b) if left_side else b @ np.linalg.inv(a)


def reflections(*shape, taus: int):
    """What a QR factorization leaves: vectors below the diagonal, and the factors of the reflections."""
    x = np.random.default_rng(shape[-1]).normal(size=shape)
    h, tau = np.empty(shape), np.empty((*shape[:-2], min(shape[-2:])))
    for i in np.ndindex(shape[:-2]):
        raw, tau[i] = np.linalg.qr(x[i], mode="raw")
        h[i] = raw.T
    return Operand(shape, values=h, linear=False), Operand((*shape[:-2], taus), values=tau[..., :taus], linear=False)


def _ormqr(a, taus, c, left=True, transpose=False):
    q = np.zeros((*a.shape[:-1], a.shape[-2]), a.dtype)
    for i in np.ndindex(a.shape[:-2]):
        whole = np.eye(a.shape[-2], dtype=a.dtype)
        for k, tau in enumerate(taus[i]):
            v = np.r_[np.zeros(k), 1, a[i][k + 1 :, k]].astype(a.dtype)
            whole = whole @ (np.eye(len(v)) - tau * np.outer(v, v.conj()))
        q[i] = np.conj(whole.T) if transpose else whole
    return q @ c if left else c @ q


def _tridiagonal_solve(dl, d, du, b):
    n = d.shape[-1]
    whole = np.zeros((*d.shape, n), d.dtype)
    for i in range(n):
        whole[..., i, i] = d[..., i]
        if i:
            whole[..., i, i - 1], whole[..., i - 1, i] = dl[..., i], du[..., i - 1]
    return np.linalg.solve(whole, b)


def diagonals(*shape):
    return Operand(shape, 0.2, 1), Operand(shape, 3, 4), Operand(shape, 0.2, 1)


def _cholesky_update(r, w):
    r = np.triu(r)
    return np.swapaxes(np.linalg.cholesky(np.swapaxes(r, -1, -2) @ r + w[..., None] * w[..., None, :]), -1, -2)


VALUES_ALONE = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}
FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def _systems():
    for flags in itertools.product((False, True), repeat=5):
        if sum(flags) in (1, 2, 5):
            yield Sample((triangular(3, 3), matrices(3, 2) if flags[0] else matrices(2, 3)), dict(zip(FLAGS, flags)))
    yield Sample((triangular(2, 3, 3), matrices(2, 3, 2)), {"left_side": True, "lower": True})
    yield Sample((triangular(3, 3), matrices(3, 0)), {"left_side": True})


def _transforms():
    for shape, kind, lengths in (
        ((5,), "FFT", (5,)),
        ((2, 4), "IFFT", (4,)),
        ((3, 4), "FFT", (3, 4)),
        ((5,), "RFFT", (5,)),
        ((2, 4), "RFFT", (2, 4)),
        ((3,), "IRFFT", (5,)),
        ((2, 3), "IRFFT", (2, 4)),
        ((2, 3, 2), "IRFFT", (3, 3)),
        ((1,), "RFFT", (1,)),
        ((0, 3), "FFT", (3,)),
    ):
        yield Sample((matrices(*shape),), {"kind": kind, "lengths": lengths})


def _fft(x, kind, lengths):
    return lax.fft(x.real if kind == "RFFT" else x, kind, lengths)


def _fft_reference(x, kind, lengths):
    if not x.size:
        return x
    transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind]
    return transform(x.real if kind == "RFFT" else x, lengths, range(-len(lengths), 0))


SPECS = [
    Spec(
        "cholesky",
        linalg.cholesky,
        tuple(Sample((positive(*s),)) for s in ((3, 3), (1, 1), (2, 4, 4))),
        lambda x: np.linalg.cholesky((x + np.conj(np.swapaxes(x, -1, -2))) / 2),
        (F32, C64),
        errors=(
            (lambda: linalg.cholesky(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
            (lambda: linalg.cholesky(np.ones((2, 2), "i4"), symmetrize_input=False), TypeError, "int32"),
        ),
    ),
    Spec(
        "triangular_solve",
        linalg.triangular_solve,
        tuple(_systems()),
        _solve,
        (F32, C64),
        errors=(
            (lambda: linalg.triangular_solve(np.ones((2, 3), "f4"), np.ones((2, 3), "f4")), ValueError, "square"),
            (
                lambda: linalg.triangular_solve(np.ones((3, 3), "f4"), np.ones((2, 2), "f4")),
                ValueError,
                "Incompatible shapes",
            ),
            (
                lambda: linalg.triangular_solve(np.ones((3, 3), "f4"), np.ones((3, 3), "c8")),
                TypeError,
                "float32, complex64",
            ),
        ),
    ),
    Spec(
        "lu",
        linalg.lu,
        tuple(Sample((matrices(*s),)) for s in ((3, 3), (4, 2), (2, 4), (2, 3, 3), (1, 1))),
        None,
        (F32, C64),
        rtol=1e-5,
        errors=((lambda: linalg.lu(np.ones(3, "f4")), TypeError, "rank at least 2"),),
    ),
    Spec(
        "lu_pivots_to_permutation",
        linalg.lu_pivots_to_permutation,
        (
            Sample((Operand((2,), values=[2, 2], dtype="int32", linear=False),), {"permutation_size": 4}),
            Sample(
                (Operand((2, 3), values=[[1, 2, 2], [0, 1, 2]], dtype="int32", linear=False),), {"permutation_size": 3}
            ),
        ),
        None,
        ("int32",),
        derivative="zero",
        mapped=False,
        errors=((lambda: linalg.lu_pivots_to_permutation(np.ones(3, "i4"), 2), ValueError, "permutation size 2"),),
    ),
    Spec(
        "eigh",
        linalg.eigh,
        tuple(
            Sample((matrices(*s),), p)
            for s, p in (((3, 3), {}), ((1, 1), {}), ((2, 4, 4), {}), ((3, 3), {"lower": False}), ((0, 0), {}))
        ),
        None,
        (F32, C64),
        rtol=3e-5,
        errors=(
            (lambda: linalg.eigh(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
            (lambda: linalg.eigh(np.ones((3, 3), "f4"), subset_by_index=(0, 2)), NotImplementedError, "slices"),
        ),
    ),
    Spec(
        "svd",
        linalg.svd,
        tuple(
            Sample((matrices(*s),), p)
            for s, p in (
                ((3, 3), {}),
                ((4, 2), {"full_matrices": False}),
                ((2, 4), {"full_matrices": False}),
                ((2, 4), {"compute_uv": False}),
                ((2, 3, 2), {"full_matrices": False}),
                ((0, 2), {"full_matrices": False}),
            )
        ),
        None,
        (F32, C64),
        rtol=3e-5,
        errors=(
            (lambda: linalg.svd(np.ones(3, "f4")), TypeError, "rank at least 2"),
            (
                lambda: gradix.jvp(linalg.svd, [np.ones((3, 2), "f4")], [np.ones((3, 2), "f4")]),
                NotImplementedError,
                "full matrices",
            ),
        ),
    ),
    Spec(
        "qr",
        linalg.qr,
        tuple(
            Sample((matrices(*s),), p)
            for s, p in (
                ((3, 3), {}),
                ((4, 2), {"full_matrices": False}),
                ((2, 4), {}),
                ((2, 3, 3), {}),
                ((4, 3), {"pivoting": True, "full_matrices": False}),
                ((2, 0), {}),
            )
        ),
        None,
        (F32, C64),
        rtol=1e-5,
        errors=((lambda: linalg.qr(np.ones(3, "f4")), TypeError, "rank at least 2"),),
    ),
    Spec(
        "householder_product",
        linalg.householder_product,
        tuple(Sample((matrices(*s), matrices(*t))) for s, t in (((3, 3), (3,)), ((4, 2), (2,)), ((2, 3, 3), (2, 2)))),
        None,
        (F32, C64),
        derivative="none",
        rtol=1e-5,
        errors=((lambda: linalg.householder_product(np.ones((2, 3), "f4"), np.ones(2, "f4")), ValueError, "rows"),),
    ),
    Spec(
        "eig",
        linalg.eig,
        tuple(Sample((matrices(*s),), VALUES_ALONE) for s in ((3, 3), (1, 1), (2, 4, 4), (0, 0))),
        None,
        (F32, C64),
        rtol=1e-4,
        errors=(
            (lambda: linalg.eig(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
            (
                lambda: gradix.jvp(linalg.eig, [np.ones((2, 2), "f4")], [np.ones((2, 2), "f4")]),
                NotImplementedError,
                "enable_eigvec_derivs",
            ),
        ),
    ),
    Spec(
        "schur",
        linalg.schur,
        tuple(
            Sample((matrices(*s),), p)
            for s, p in (
                ((3, 3), {}),
                ((2, 4, 4), {}),
                ((3, 3), {"compute_schur_vectors": False}),
                ((1, 1), {}),
                ((0, 0), {}),
            )
        ),
        None,
        (F32, C64),
        derivative="none",
        rtol=1e-4,
        errors=(
            (lambda: linalg.schur(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
            (lambda: linalg.schur(np.ones((2, 2), "f4"), sort_eig_vals=True), NotImplementedError, "does not sort"),
        ),
    ),
    Spec(
        "hessenberg",
        linalg.hessenberg,
        tuple(Sample((matrices(*s),)) for s in ((3, 3), (2, 4, 4), (1, 1), (0, 0))),
        None,
        (F32, C64),
        derivative="none",
        rtol=1e-5,
        errors=((lambda: linalg.hessenberg(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),),
    ),
    Spec(
        "tridiagonal",
        linalg.tridiagonal,
        tuple(
            Sample((matrices(*s),), p)
            for s, p in (((3, 3), {}), ((2, 4, 4), {"lower": False}), ((1, 1), {}), ((0, 0), {}))
        ),
        None,
        (F32, C64),
        derivative="none",
        rtol=1e-5,
        errors=((lambda: linalg.tridiagonal(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),),
    ),
    Spec(
        "tridiagonal_solve",
        linalg.tridiagonal_solve,
        tuple(Sample((*diagonals(*s[:-1]), matrices(*s))) for s in ((3, 2), (2, 4, 1), (1, 2), (2, 3), (0, 2), (3, 0))),
        _tridiagonal_solve,
        (F32, C64),
        rtol=1e-5,
        errors=(
            (lambda: linalg.tridiagonal_solve(*[np.ones(3, "f4")] * 4), TypeError, "rank at least 2"),
            (
                lambda: linalg.tridiagonal_solve(*[np.ones(3, "f4")] * 3, np.ones((4, 1), "f4")),
                TypeError,
                r"\(4, 1\) and \(3,\)",
            ),
            (
                lambda: linalg.tridiagonal_solve(np.ones(2, "f4"), *[np.ones(3, "f4")] * 2, np.ones((3, 1), "f4")),
                TypeError,
                "same shape",
            ),
            (
                lambda: linalg.tridiagonal_solve(*[np.ones(3, "f4")] * 3, np.ones((3, 1), "c8")),
                TypeError,
                "same dtypes",
            ),
        ),
    ),
    Spec(
        "tridiagonal_solve_perturbed",
        lambda *xs: linalg.tridiagonal_solve(*xs, perturb_singular=True),
        tuple(Sample((*diagonals(*s[:-1]), matrices(*s))) for s in ((3, 2), (2, 4, 1), (0, 2))),
        _tridiagonal_solve,
        (F32, C64),
        rtol=1e-5,
    ),
    Spec(
        "ormqr",
        linalg.ormqr,
        tuple(
            Sample((*reflections(*s, taus=t), matrices(*c)), p)
            for s, t, c, p in (
                ((4, 3), 3, (4, 2), {}),
                ((3, 3), 2, (3, 2), {"transpose": True}),
                ((3, 2), 2, (2, 3), {"left": False}),
                ((2, 3, 3), 3, (2, 4, 3), {"left": False, "transpose": True}),
                ((3, 2), 0, (3, 2), {}),
                ((3, 2), 2, (3, 0), {}),
            )
        ),
        _ormqr,
        (F32, C64),
        rtol=1e-5,
        errors=(
            (
                lambda: linalg.ormqr(np.ones((4, 3), "f4"), np.ones(3, "f4"), np.ones((3, 2), "f4")),
                ValueError,
                "number of rows",
            ),
            (lambda: linalg.ormqr(np.ones((4, 3), "f4"), np.ones(4, "f4"), np.ones((4, 2), "f4")), ValueError, "taus"),
            (
                lambda: linalg.ormqr(np.ones((2, 4, 3), "f4"), np.ones(3, "f4"), np.ones((4, 2), "f4")),
                TypeError,
                "leading axes",
            ),
            (
                lambda: gradix.jvp(
                    linalg.ormqr,
                    [np.ones((2, 2), "f4"), np.ones(2, "f4"), np.ones((2, 2), "f4")],
                    [np.ones((2, 2), "f4"), np.ones(2, "f4"), np.ones((2, 2), "f4")],
                ),
                NotImplementedError,
                "reflections",
            ),
        ),
    ),
    Spec(
        "cholesky_update",
        linalg.cholesky_update,
        tuple(Sample((triangular(*s), matrices(*s[:-1]))) for s in ((3, 3), (2, 4, 4), (1, 1), (0, 0))),
        _cholesky_update,
        (F32,),
        rtol=1e-5,
        errors=(
            (
                lambda: linalg.cholesky_update(np.ones((3, 3), "f4"), np.ones(4, "f4")),
                ValueError,
                r"\(3, 3\) and \(4,\)",
            ),
            (lambda: linalg.cholesky_update(np.ones((3, 3), "c8"), np.ones(3, "c8")), TypeError, "complex64"),
        ),
    ),
    Spec(
        "symmetric_product",
        linalg.symmetric_product,
        tuple(
            Sample((matrices(*s), matrices(*s[:-1], s[-2])), p)
            for s, p in (
                ((3, 2), {}),
                ((2, 2, 3), {"alpha": 2.0, "beta": 0.5}),
                ((3, 2), {"beta": 1.0, "symmetrize_output": True}),
                ((0, 2), {}),
            )
        ),
        lambda a, c, alpha=1.0, beta=0.0, symmetrize_output=False: (
            lambda x: np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2) if symmetrize_output else x
        )(alpha * a @ np.swapaxes(a, -1, -2) + beta * c),
        (F32,),
        errors=(
            (
                lambda: linalg.symmetric_product(np.ones((3, 4), "f4"), np.ones((4, 4), "f4")),
                ValueError,
                r"\(3, 4\) and \(4, 4\)",
            ),
            (lambda: linalg.symmetric_product(np.ones((3, 4), "i4"), np.ones((3, 3), "i4")), TypeError, "int32"),
        ),
    ),
    Spec(
        "fft",
        _fft,
        tuple(_transforms()),
        _fft_reference,
        (C64,),
        rtol=1e-5,
        errors=(
            (lambda: lax.fft(np.ones(3, "c8"), "RFFT", (3,)), ValueError, "complex64"),
            (lambda: lax.fft(np.ones(3, "c8"), "FFT", (4,)), ValueError, r"\(4,\).*\(3,\)"),
            (lambda: lax.fft(np.ones(3, "c8"), "DCT", (3,)), ValueError, "DCT"),
        ),
    ),
]
