"""Factorizations of matrices, with their derivatives; contractions in groups; polynomials through points."""

import numpy as np

from tests.parity.case import Case, call, sample

DTYPES = ("float32", "complex64")
SQUARE = ((3, 3), (2, 4, 4), (1, 1))
ANY = (*SQUARE, (4, 2), (2, 4))
SMOOTH = {
    "det": lambda ns, x: ns.jnp.linalg.det(x),
    "slogdet": lambda ns, x: ns.jnp.linalg.slogdet(x)[1],
    "inv": lambda ns, x: ns.jnp.linalg.inv(x).sum(),
    "solve": lambda ns, x: (ns.jnp.linalg.solve(x, x[0]) ** 2).sum(),
    "cholesky": lambda ns, x: ns.jnp.linalg.cholesky(x @ x.T).sum(),
    "eigh values": lambda ns, x: (ns.jnp.linalg.eigvalsh(x + x.T) ** 3).sum(),
    "eigh vectors": lambda ns, x: (ns.jnp.linalg.eigh(x + x.T)[1] ** 4).sum(),
    "eig values": lambda ns, x: ns.jnp.abs(ns.jnp.linalg.eigvals(x)).sum(),
    "svd": lambda ns, x: (ns.jnp.linalg.svd(x)[0] ** 4).sum(),
    "qr": lambda ns, x: (ns.jnp.linalg.qr(x)[0] ** 3).sum(),
    "lu": lambda ns, x: (ns.lax.linalg.lu(x)[0] ** 2).sum(),
    "pinv": lambda ns, x: ns.jnp.linalg.pinv(x[:, :2]).sum(),
    "lstsq": lambda ns, x: ns.jnp.linalg.lstsq(x[:, :2], x[:, 2])[0].sum(),
    "tridiagonal_solve": lambda ns, x: (ns.lax.linalg.tridiagonal_solve(x[0], x[1] + 9, x[2], x) ** 2).sum(),
}


def positive(x):
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 3 * np.eye(x.shape[-1])).astype(x.dtype)


def restored(ns, triangle, vectors):
    """The matrix a Schur form was made of. The vectors' phases, and the order of values, differ between processors."""
    return ns.jnp.matmul(ns.jnp.matmul(vectors, triangle), ns.jnp.conj(ns.jnp.swapaxes(vectors, -1, -2)))


def sizes(ns, triangle):
    """The norm and determinant of a Schur form, the same whatever the order of its blocks."""
    return (
        ns.jnp.linalg.norm(triangle, axis=(-2, -1)),
        ns.jnp.abs(ns.jnp.linalg.det(triangle)),
        ns.jnp.trace(triangle, axis1=-2, axis2=-1),
    )


def cases():
    for dtype in DTYPES:
        yield from _factors(dtype)
        yield from _rest(dtype)
    yield from _derivatives()
    yield from _groups()
    yield from _fitting()


def _factors(dtype):
    for shape in ANY:
        x = sample(dtype, shape, 1)
        yield call("jnp.linalg.svd", x, full_matrices=False, rtol=1e-4)
        yield call("jnp.linalg.svdvals", x, rtol=1e-4)
        for mode in ("reduced", "complete", "r", "raw"):
            yield call("jnp.linalg.qr", x, mode=mode, rtol=1e-4)
        yield call("lax.linalg.qr", x, pivoting=True, rtol=1e-4)
        yield call("lax.linalg.lu", x, rtol=1e-4)
        yield call("jnp.linalg.pinv", x, rtol=1e-3)
        yield call("jnp.linalg.matrix_rank", x)
    for shape in SQUARE:
        x = sample(dtype, shape, 2)
        for name in (
            "lax.linalg.hessenberg",
            "lax.linalg.tridiagonal",
            "jnp.linalg.eig",
            "jnp.linalg.eigvals",
            "jnp.linalg.eigh",
            "jnp.linalg.eigvalsh",
            "jnp.linalg.det",
            "jnp.linalg.slogdet",
            "jnp.linalg.inv",
        ):
            yield call(name, x, rtol=1e-3)
        yield call("lax.linalg.tridiagonal", x, lower=False, rtol=1e-3)
        yield Case(f"schur {dtype}{list(shape)}", lambda ns, x=x: restored(ns, *ns.lax.linalg.schur(x)), 1e-3)
        yield Case(
            f"schur values {dtype}{list(shape)}",
            lambda ns, x=x: sizes(ns, *ns.lax.linalg.schur(x, compute_schur_vectors=False)),
            1e-3,
        )
        for upper in (False, True):
            yield call("jnp.linalg.cholesky", positive(x), upper=upper, rtol=1e-4)


def _rest(dtype):
    d, b = sample(dtype, (2, 4), 3), sample(dtype, (2, 4, 3), 4)
    yield call("lax.linalg.tridiagonal_solve", d, d + 9, d, b, rtol=1e-4)
    yield call("lax.linalg.tridiagonal_solve", d[0], d[0] + 9, d[0], b[0], perturb_singular=True, rtol=1e-4)
    yield call("lax.linalg.tridiagonal_solve", d[0], d[0], d[0], b)
    yield call("lax.linalg.tridiagonal_solve", d[0], d[0][:3], d[0], b[0])
    a, taus = sample(dtype, (4, 3), 5), sample(dtype, (3,), 6)
    for left in (True, False):
        for transpose in (True, False):
            yield call("lax.linalg.ormqr", a, taus, sample(dtype, (4, 4), 7), left=left, transpose=transpose, rtol=1e-3)
    yield call("lax.linalg.ormqr", a, taus, sample(dtype, (3, 4), 7))
    yield call("lax.linalg.householder_product", a, taus, rtol=1e-3)
    x = sample(dtype, (4, 3), 8)
    yield Case(f"qdwh {dtype}", lambda ns: ns.lax.linalg.qdwh(ns.jnp.asarray(x))[:2], 1e-3)
    real = np.real(x[:3]).astype("float32")
    yield call(
        "lax.linalg.symmetric_product",
        x,
        sample(dtype, (4, 4), 9),
        alpha=2.0,
        beta=0.5,
        symmetrize_output=True,
        rtol=1e-4,
    )
    yield call("lax.linalg.cholesky_update", np.triu(real) + 5 * np.eye(3, dtype="f4"), real[0], rtol=1e-4)


def _derivatives():
    x = sample("float32", (3, 3), 10) + 4 * np.diag(np.arange(1, 4, dtype=np.float32))
    for name, f in SMOOTH.items():
        yield Case(f"grad {name}", lambda ns, f=f: ns.jax.grad(lambda v: f(ns, v))(ns.jnp.asarray(x)), 1e-3)
        yield Case(
            f"vmap grad {name}",
            lambda ns, f=f: ns.jax.vmap(ns.jax.grad(lambda v: f(ns, v)))(
                ns.jnp.stack([ns.jnp.asarray(x), ns.jnp.asarray(x).T + 1])
            ),
            1e-3,
        )
    for name in ("det", "inv", "solve", "cholesky", "slogdet"):
        f = SMOOTH[name]
        yield Case(f"hessian {name}", lambda ns, f=f: ns.jax.hessian(lambda v: f(ns, v))(ns.jnp.asarray(x)), 3e-3)


def _groups():
    lhs, rhs = sample("float32", (6, 3), 11), sample("float32", (2, 3, 4), 12)
    for sizes in ((2, 3), (5, 3), (0, 6)):
        yield call("lax.ragged_dot", lhs, rhs, np.array(sizes, np.int32), rtol=1e-5)
    yield call("lax.ragged_dot", lhs, rhs, np.ones(3, np.int32))
    yield call("lax.ragged_dot", lhs, rhs, np.ones(2, np.float32))
    yield call("lax.ragged_dot", lhs[:, :2], rhs, np.ones(2, np.int32))
    yield call("lax.ragged_dot", lhs.astype(np.int32), rhs.astype(np.int32), np.array([2, 3], np.int32))
    for dtype in ("bfloat16", "float32"):
        yield call("lax.scaled_dot", lhs, rhs[0], lhs_scale=lhs[:, :1], preferred_element_type=dtype, rtol=2e-2)
    for name in ("approx_max_k", "approx_min_k"):
        for axis in (0, 1, -1):
            yield call(f"lax.{name}", lhs, 2, axis)
        yield call(f"lax.{name}", lhs, 0)
        yield call(f"lax.{name}", lhs, 9)
        yield call(f"lax.{name}", lhs.astype(np.int32), 2)
    yield call("lax.broadcast_like", lhs[:1], lhs)
    yield call("lax.broadcast_like", lhs, lhs[0])
    yield call("lax.mul", lhs, lhs, out_dtype="bfloat16")


def _fitting():
    x, y = np.arange(5, dtype=np.float32), sample("float32", (5,), 13)
    for kw in ({}, {"full": True}, {"cov": True}, {"cov": "unscaled"}, {"w": x + 1}):
        yield call("jnp.polyfit", x, y, 2, rtol=3e-3, **kw)
        yield call("jnp.polyfit", x, np.stack([y, y * y], 1), 1, rtol=3e-3, **kw)
    for wrong in ((x, y, -1), (x[:, None], y, 1), (x, y[:3], 1)):
        yield call("jnp.polyfit", *wrong)
    for p in ((1, -3, 2), (0, 0, 1, -3, 2, 0), (0, 0), (2,), (1, 2, 3, 4)):
        for strip in (True, False):
            yield call("jnp.roots", np.array(p, np.float32), strip_zeros=strip, rtol=1e-3)
    yield call("jnp.poly", x[:3], rtol=1e-4)
    yield call("jnp.poly", np.array([[1, 2], [3, 4]], np.float32), rtol=1e-4)
