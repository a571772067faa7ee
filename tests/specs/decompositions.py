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


VALUES_ALONE = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}
FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def _systems():
    for flags in itertools.product((False, True), repeat=5):
        if sum(flags) in (1, 2, 5):
            yield Sample((triangular(3, 3), matrices(3, 2) if flags[0] else matrices(2, 3)), dict(zip(FLAGS, flags)))
    yield Sample((triangular(2, 3, 3), matrices(2, 3, 2)), {"left_side": True, "lower": True})
    yield Sample((triangular(3, 3), matrices(3, 0)), {"left_side": True})




def _transforms():
    for shape, kind, lengths in (((5,), "FFT", (5,)), ((2, 4), "IFFT", (4,)), ((3, 4), "FFT", (3, 4)), ((5,), "RFFT", (5,)),
                                 ((2, 4), "RFFT", (2, 4)), ((3,), "IRFFT", (5,)), ((2, 3), "IRFFT", (2, 4)),
                                 ((2, 3, 2), "IRFFT", (3, 3)), ((1,), "RFFT", (1,)), ((0, 3), "FFT", (3,))):
        yield Sample((matrices(*shape),), {"kind": kind, "lengths": lengths})


def _fft(x, kind, lengths):
    return lax.fft(x.real if kind == "RFFT" else x, kind, lengths)


def _fft_reference(x, kind, lengths):
    if not x.size:
        return x
    transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind]
    return transform(x.real if kind == "RFFT" else x, lengths, range(-len(lengths), 0))


SPECS = [
    Spec("cholesky", linalg.cholesky, tuple(Sample((positive(*s),)) for s in ((3, 3), (1, 1), (2, 4, 4))),
         lambda x: np.linalg.cholesky((x + np.conj(np.swapaxes(x, -1, -2))) / 2), (F32, C64), errors=(
             (lambda: linalg.cholesky(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
             (lambda: linalg.cholesky(np.ones((2, 2), "i4")), TypeError, "int32"))),
    Spec("triangular_solve", linalg.triangular_solve, tuple(_systems()), _solve, (F32, C64), errors=(
        (lambda: linalg.triangular_solve(np.ones((2, 3), "f4"), np.ones((2, 3), "f4")), ValueError, "square"),
        (lambda: linalg.triangular_solve(np.ones((3, 3), "f4"), np.ones((2, 2), "f4")), ValueError, "Incompatible shapes"),
        (lambda: linalg.triangular_solve(np.ones((3, 3), "f4"), np.ones((3, 3), "c8")), TypeError, "float32, complex64"))),
    Spec("lu", linalg.lu, tuple(Sample((matrices(*s),)) for s in ((3, 3), (4, 2), (2, 4), (2, 3, 3), (1, 1))), None,
         (F32, C64), rtol=1e-5, errors=((lambda: linalg.lu(np.ones(3, "f4")), TypeError, "rank at least 2"),)),
    Spec("lu_pivots_to_permutation", linalg.lu_pivots_to_permutation, (
        Sample((Operand((2,), values=[2, 2], dtype="int32", linear=False),), {"permutation_size": 4}),
        Sample((Operand((2, 3), values=[[1, 2, 2], [0, 1, 2]], dtype="int32", linear=False),), {"permutation_size": 3})),
        None, ("int32",), derivative="zero", mapped=False, errors=(
            (lambda: linalg.lu_pivots_to_permutation(np.ones(3, "i4"), 2), ValueError, "permutation size 2"),)),
    Spec("eigh", linalg.eigh, tuple(Sample((matrices(*s),), p) for s, p in (
        ((3, 3), {}), ((1, 1), {}), ((2, 4, 4), {}), ((3, 3), {"lower": False}), ((0, 0), {}))), None, (F32, C64),
        rtol=3e-5, errors=((lambda: linalg.eigh(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
                           (lambda: linalg.eigh(np.ones((3, 3), "f4"), subset_by_index=(0, 2)), NotImplementedError, "slices"))),
    Spec("svd", linalg.svd, tuple(Sample((matrices(*s),), p) for s, p in (
        ((3, 3), {}), ((4, 2), {"full_matrices": False}), ((2, 4), {"full_matrices": False}), ((2, 4), {"compute_uv": False}),
        ((2, 3, 2), {"full_matrices": False}), ((0, 2), {"full_matrices": False}))), None, (F32, C64), rtol=3e-5, errors=(
            (lambda: linalg.svd(np.ones(3, "f4")), TypeError, "rank at least 2"),
            (lambda: gradix.jvp(linalg.svd, [np.ones((3, 2), "f4")], [np.ones((3, 2), "f4")]), NotImplementedError, "full matrices"))),
    Spec("qr", linalg.qr, tuple(Sample((matrices(*s),), p) for s, p in (
        ((3, 3), {}), ((4, 2), {"full_matrices": False}), ((2, 4), {}), ((2, 3, 3), {}),
        ((4, 3), {"pivoting": True, "full_matrices": False}), ((2, 0), {}))), None, (F32, C64), rtol=1e-5,
        errors=((lambda: linalg.qr(np.ones(3, "f4")), TypeError, "rank at least 2"),)),
    Spec("householder_product", linalg.householder_product, tuple(Sample((matrices(*s), matrices(*t))) for s, t in (
        ((3, 3), (3,)), ((4, 2), (2,)), ((2, 3, 3), (2, 2)))), None, (F32, C64), derivative="none", rtol=1e-5, errors=(
            (lambda: linalg.householder_product(np.ones((2, 3), "f4"), np.ones(2, "f4")), ValueError, "rows"),)),
    Spec("eig", linalg.eig, tuple(Sample((matrices(*s),), VALUES_ALONE) for s in ((3, 3), (1, 1), (2, 4, 4), (0, 0))),
         None, (F32, C64), rtol=1e-4, errors=(
             (lambda: linalg.eig(np.ones((2, 3), "f4")), ValueError, r"square.*\(2, 3\)"),
             (lambda: gradix.jvp(linalg.eig, [np.ones((2, 2), "f4")], [np.ones((2, 2), "f4")]), NotImplementedError,
              "enable_eigvec_derivs"))),
    Spec("fft", _fft, tuple(_transforms()), _fft_reference, (C64,), rtol=1e-5, errors=(
        (lambda: lax.fft(np.ones(3, "f4"), "FFT", (3,)), ValueError, "complex.*float32"),
        (lambda: lax.fft(np.ones(3, "c8"), "FFT", (4,)), ValueError, r"\(4,\).*\(3,\)"),
        (lambda: lax.fft(np.ones(3, "c8"), "DCT", (3,)), ValueError, "DCT"))),
]
