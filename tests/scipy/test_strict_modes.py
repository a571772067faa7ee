"""Functions of the library under the options that forbid users to broadcast over ranks, and to promote dtypes.

What the library does inside is not what the options forbid: the operands here have one rank and one dtype.
"""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import image, nn, random
from gradix.experimental import rnn, sparse
from gradix.experimental.pallas.ops.gpu.attention import mha_reference
from gradix.experimental.pallas.ops.gpu.layer_norm import layer_norm_reference
from gradix.experimental.pallas.ops.gpu.rms_norm import rms_norm_reference
from gradix.experimental.sparse import bcoo
from gradix.experimental.sparse.linalg import lobpcg_standard
from gradix.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, special, stats
from gradix.scipy.sparse import linalg as sparse_linalg
from gradix.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(0)
X, A, T = RNG.normal(size=64).astype("f"), RNG.normal(size=(5, 5)).astype("f"), RNG.normal(size=(2, 3, 16)).astype("f")
SPD = A @ A.T + 5 * np.eye(5, dtype="f")
C = (A + 1j * A.T).astype("c8")
FORMULAS = {
    "dct": lambda: fft.dct(T),
    "idct ortho": lambda: fft.idct(T, norm="ortho"),
    "dctn": lambda: fft.dctn(T, norm="ortho"),
    "idctn": lambda: fft.idctn(T),
    "stft": lambda: signal.stft(X, nperseg=16)[2],
    "istft": lambda: signal.istft(signal.stft(X, nperseg=16)[2], nperseg=16)[1],
    "csd": lambda: signal.csd(X, X, nperseg=16)[1],
    "welch": lambda: signal.welch(T, nperseg=8)[1],
    "detrend": lambda: signal.detrend(T),
    "fftconvolve": lambda: signal.fftconvolve(X, X[:5]),
    "convolve2d": lambda: signal.convolve2d(A, A),
    "multigammaln": lambda: special.multigammaln(jnp.array([3.0, 4.0]), 2),
    "bessel_jn": lambda: special.bessel_jn(jnp.array([1.0, 2.0]), v=3),
    "logsumexp": lambda: special.logsumexp(C, 1),
    "logsumexp with b": lambda: special.logsumexp(A, 1, b=A),
    "expi": lambda: special.expi(abs(X)),
    "expn": lambda: special.expn(2, abs(X)),
    "exp1": lambda: special.exp1(abs(X)),
    "gammainc": lambda: special.gammainc(abs(X), abs(X)),
    "betainc": lambda: special.betainc(abs(X), abs(X), abs(X) % 1),
    "zeta": lambda: special.zeta(abs(X) + 2, abs(X) + 1),
    "i0": lambda: special.i0(X),
    "hyp2f1": lambda: special.hyp2f1(abs(X), abs(X), abs(X) + 1, X % 1 * 0.5),
    "hyp1f1": lambda: special.hyp1f1(abs(X), abs(X) + 1, X),
    "sph_harm_y": lambda: special.sph_harm_y(
        jnp.array([2]), jnp.array([1]), jnp.array([0.5]), jnp.array([0.5]), n_max=2
    ),
    "polygamma": lambda: special.polygamma(1, abs(X) + 1),
    "wofz": lambda: special.wofz(C),
    "spence": lambda: special.spence(abs(X)),
    "eigh_tridiagonal": lambda: linalg.eigh_tridiagonal(abs(X[:9]), X[:8], eigvals_only=True),
    "expm": lambda: linalg.expm(A),
    "sqrtm": lambda: linalg.sqrtm(SPD),
    "funm": lambda: linalg.funm(A, jnp.sin),
    "polar": lambda: linalg.polar(A)[0],
    "schur": lambda: linalg.schur(A)[0],
    "rsf2csf": lambda: linalg.rsf2csf(*linalg.schur(A))[0],
    "sylvester": lambda: linalg.solve_sylvester(A, SPD, A),
    "lstsq": lambda: jnp.linalg.lstsq(A, X[:5])[0],
    "toeplitz": lambda: linalg.toeplitz(X[:4]),
    "pinv": lambda: jnp.linalg.pinv(A),
    "cond": lambda: jnp.linalg.cond(A),
    "svd": lambda: jnp.linalg.svd(A)[1],
    "matrix_rank": lambda: jnp.linalg.matrix_rank(A),
    "slogdet": lambda: jnp.linalg.slogdet(A)[1],
    "eig": lambda: jnp.linalg.eig(A)[0],
    "lobpcg": lambda: lobpcg_standard(
        jnp.asarray(SPD.repeat(4, 0).repeat(4, 1) + np.eye(20, dtype="f")), jnp.ones((20, 2)) + jnp.eye(20, 2)
    )[0],
    "bcoo": lambda: sparse.bcoo_sum_duplicates(sparse.BCOO.fromdense(A, nse=25), 25).data,
    "bcoo slice": lambda: sparse.BCOO.fromdense(A, nse=25)[1:3, 2:].todense(),
    "bcoo product": lambda: sparse.BCOO.fromdense(A, nse=25) @ A,
    "sparsify": lambda: sparse.sparsify(jnp.sum)(sparse.BCOO.fromdense(A, nse=25)),
    "spsolve": lambda: sparse.linalg.spsolve(*_csr(SPD), jnp.asarray(X[:5])),
    "rotations": lambda: (Rotation.from_euler("xyz", X[:3]) * Rotation.from_euler("xyz", X[3:6])).as_quat(),
    "inverse rotation": lambda: Rotation.from_rotvec(X[:3]).inv().as_matrix(),
    "rotvecs": lambda: Rotation.from_quat(A[:, :4]).as_rotvec(),
    "slerp": lambda: Slerp.init(jnp.arange(2.0), Rotation.from_rotvec(A[:2, :3]))(jnp.array([0.5])).as_quat(),
    "resize": lambda: image.resize(A, (7, 7), "cubic"),
    "lanczos": lambda: image.resize(A, (3, 3), "lanczos3"),
    "scale_and_translate": lambda: image.scale_and_translate(A, (7, 7), (0, 1), jnp.ones(2), jnp.ones(2), "linear"),
    "lstm": lambda: rnn.lstm(
        jnp.ones((2, 4, 3)),
        jnp.ones((1, 2, 5)),
        jnp.ones((1, 2, 5)),
        jnp.ones(rnn.get_num_params_in_lstm(3, 5, 1, False)),
        jnp.array([4, 2]),
        3,
        5,
        1,
        0.0,
        False,
    )[0],
    "map_coordinates": lambda: ndimage.map_coordinates(A, [jnp.array([0.5]), jnp.array([1.5])], 1),
    "interpolator": lambda: interpolate.RegularGridInterpolator((jnp.arange(5.0), jnp.arange(5.0)), A)(
        jnp.ones((3, 2))
    ),
    "trapezoid": lambda: integrate.trapezoid(T),
    "minimize": lambda: optimize.minimize(lambda v: (v**2).sum(), X[:3], method="BFGS").x,
    "softmax": lambda: nn.softmax(T),
    "logsumexp of nn": lambda: nn.logsumexp(T, 1),
    "standardize": lambda: nn.standardize(T),
    "glu": lambda: nn.glu(T),
    "attention": lambda: nn.dot_product_attention(*[T.reshape(2, 3, 4, 4)] * 3, is_causal=True),
    "one_hot": lambda: nn.one_hot(jnp.arange(3), 4),
    "gelu": lambda: nn.gelu(X),
    "celu": lambda: nn.celu(X),
    "normal pdf": lambda: stats.norm.pdf(X),
    "gaussian_kde": lambda: stats.gaussian_kde(T[0])(T[0]),
    "multivariate normal": lambda: stats.multivariate_normal.logpdf(X[:5], jnp.zeros(5), SPD),
    "dirichlet": lambda: stats.dirichlet.logpdf(jnp.ones(3) / 3, jnp.ones(3)),
    "multinomial": lambda: stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])),
    "rankdata": lambda: stats.rankdata(T),
    "mode": lambda: stats.mode(jnp.arange(4) % 2)[0],
    "sem": lambda: stats.sem(T),
    "normal": lambda: random.normal(random.key(0), (3, 4)),
    "gamma": lambda: random.gamma(random.key(0), jnp.ones(3)),
    "categorical": lambda: random.categorical(random.key(0), A),
    "choice": lambda: random.choice(random.key(0), 5, (3,), p=jnp.ones(5) / 5),
    "multivariate draws": lambda: random.multivariate_normal(random.key(0), jnp.zeros(5), SPD),
    "orthogonal": lambda: random.orthogonal(random.key(0), 3),
    "permutation": lambda: random.permutation(random.key(0), A),
    "cov": lambda: jnp.cov(A),
    "corrcoef": lambda: jnp.corrcoef(A),
    "histogram": lambda: jnp.histogram(X)[0],
    "istft of many": lambda: signal.istft(signal.stft(T, nperseg=4)[2], nperseg=4)[1],
    "sici": lambda: jnp.stack(special.sici(X)),
    "expm of many": lambda: linalg.expm(jnp.stack([SPD, SPD]) / 9),
    "lu of many": lambda: linalg.lu(jnp.stack([SPD, SPD]))[1],
    "complex cg": lambda: sparse_linalg.cg(SPD.astype("complex64"), X[:5].astype("complex64"))[0],
    "complex bicgstab": lambda: sparse_linalg.bicgstab(SPD.astype("complex64"), X[:5].astype("complex64"))[0],
    "complex gmres": lambda: sparse_linalg.gmres(SPD.astype("complex64"), X[:5].astype("complex64"))[0],
    "erfcx": lambda: special.erfcx(X.astype("complex64")),
    "interp": lambda: jnp.interp(X, jnp.arange(3.0), jnp.arange(3.0)),
    "polyfit": lambda: jnp.polyfit(X[:9], X[:9], 2),
    "quantile": lambda: jnp.quantile(T, 0.3, axis=1),
    "gradient": lambda: jnp.gradient(T)[0],
    "unwrap": lambda: jnp.unwrap(T),
    "median": lambda: jnp.median(T, 0),
    "average": lambda: jnp.average(A, 0, weights=A),
    "unique": lambda: jnp.unique(A, axis=0, size=5),
    "fft2": lambda: jnp.fft.fft2(A),
    "kron": lambda: jnp.kron(A, A),
    "var": lambda: jnp.var(T, 1),
    "sinc": lambda: jnp.sinc(X),
    "pinv of many": lambda: jnp.linalg.pinv(jnp.stack([A, SPD])),
    "matrix_rank of many": lambda: jnp.linalg.matrix_rank(jnp.stack([A, SPD]), 0.1),
    "sylvester of many": lambda: linalg.solve_sylvester(*[jnp.stack([SPD, SPD * 2])] * 3),
    "covariance of a fit": lambda: jnp.polyfit(X[:9], X[9:18], 2, cov=True)[1],
    "covariance of fits": lambda: jnp.polyfit(X[:9], X[9:27].reshape(9, 2), 2, cov=True)[1],
    "logical_xor.reduce": lambda: jnp.logical_xor.reduce(jnp.array([1, 0, 3], "int8")),
    "gmres": lambda: sparse_linalg.gmres(SPD, X[:5])[0],
    "lpmn": lambda: special.lpmn(2, 2, X % 1 * 0.5)[1],
    "entropy of poisson": lambda: stats.poisson.entropy(abs(X)),
    "mode of rows": lambda: stats.mode(jnp.arange(12).reshape(3, 4) % 3, axis=1)[1],
    "multinomial of many": lambda: stats.multinomial.logpmf(jnp.array([[1, 2], [3, 0]]), 3, jnp.array([0.5, 0.5])),
    "resample": lambda: stats.gaussian_kde(T[0]).resample(random.key(0), (4,)),
    "many multivariate draws": lambda: random.multivariate_normal(random.key(0), jnp.zeros(5), SPD, (3,)),
    "weibull_min": lambda: random.weibull_min(random.key(0), abs(X[:3]), abs(X[:3]), (2, 3)),
    "double_sided_maxwell": lambda: random.double_sided_maxwell(random.key(0), X[:3], abs(X[:3]), (2,)),
    "one rotation of many": lambda: (Rotation.from_quat(A[0, :4]) * Rotation.from_quat(A[:, :4])).as_quat(),
    "one rotation of vectors": lambda: Rotation.from_quat(A[0, :4]).apply(A[:, :3]),
    "many rotations of a vector": lambda: Rotation.from_quat(A[:, :4]).apply(X[:3]),
    "dense axes": lambda: sparse.BCOO.fromdense(A, nse=25).update_layout(n_dense=1, on_inefficient=None).todense(),
    "sparse booleans": lambda: sparse.BCOO.fromdense(A > 0, nse=25).todense(),
    "sparse product of booleans": lambda: sparse.BCOO.fromdense(A > 0, nse=25) @ (A > 0),
    "zeros of sparse booleans": lambda: bcoo.bcoo_eliminate_zeros(sparse.BCOO.fromdense(A > 0, nse=25), 25).data,
    "attention of short sequences": lambda: nn.dot_product_attention(
        *[T.reshape(2, 3, 4, 4)] * 3, key_value_seq_lengths=jnp.array([2, 3], "int8")
    ),
    "layer_norm of a kernel": lambda: layer_norm_reference(jnp.asarray(T), jnp.ones(16), jnp.zeros(16)),
    "rms_norm of a kernel": lambda: rms_norm_reference(jnp.asarray(T), jnp.ones(16), jnp.zeros(16)),
    "attention of segments": lambda: mha_reference(
        *[jnp.asarray(T.reshape(2, 4, 3, 4))] * 3, jnp.array([[0, 0, 1, 1]] * 2), causal=True
    ),
}


def _csr(a):
    m = sparse.BCSR.fromdense(a, nse=25)
    return m.data, m.indices, m.indptr


@pytest.mark.x32
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", FORMULAS)
def test_nothing_is_broadcast_or_promoted_inside(name, jitted):
    f = (lambda: gradix.jit(lambda: FORMULAS[name]())()) if jitted else FORMULAS[name]
    want = f()
    for mode in (gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict")):
        with mode:
            np.testing.assert_allclose(f(), want, rtol=1e-5, atol=1e-6)


WIDE = {
    "gmres": lambda: sparse_linalg.gmres(SPD.astype("float64"), X[:5].astype("float64"))[0],
    "attention of short sequences": lambda: nn.dot_product_attention(
        *[T.reshape(2, 3, 4, 4)] * 3, key_value_seq_lengths=jnp.array([2, 3], "int8")
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_indices_of_64_bits_meet_no_others_inside(name):
    with gradix.enable_x64(True):
        want = WIDE[name]()
        with gradix.numpy_dtype_promotion("strict"):
            np.testing.assert_allclose(WIDE[name](), want, rtol=1e-6)
