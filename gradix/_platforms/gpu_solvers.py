"""Factorizations by cuSOLVER and cuSPARSE, or hipSOLVER and hipSPARSE, as XLA's plug-ins name them."""

from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.complex_parts import conj_p
from gradix._ops.linalg.base import info_aval, nan_unless
from gradix._ops.linalg.eigh import eigh_p
from gradix._ops.linalg.lu import lu_p, lu_pivots_to_permutation_p
from gradix._ops.linalg.ormqr import ormqr_p
from gradix._ops.linalg.qr import geqrf_p, householder_product_p, qr_p
from gradix._ops.linalg.svd import svd_p
from gradix._ops.linalg.tridiagonal import tridiagonal_p, tridiagonal_solve_p
from gradix._platforms.records import CORRECTNESS, Rewrite

# The solvers for the routines of LAPACK, whose names stand without the letter of the dtype.
_NAMES = {
    "getrf": "getrf",
    "geqrf": "geqrf",
    "orgqr": "orgqr",
    "ungqr": "orgqr",
    "syevd": "syevd",
    "heevd": "syevd",
    "ormqr": "ormqr",
    "unmqr": "ormqr",
    "sytrd": "sytrd",
    "hetrd": "sytrd",
}
_SMALLEST_TRIDIAGONAL = 3  # rows, of cuSPARSE
_LARGEST_FOR_JACOBI = 1024


def _library(em) -> str:
    return "hipsolver" if em.platform == "rocm" else "cusolver"


def _solver(em, target: str, values, outs, layouts, *, config: dict, aliases) -> list:
    name = _NAMES[target[1:]]
    if "uplo" in config:
        config = {"lower": config["uplo"] == ord("L")}
    if name == "syevd":
        config["algorithm"] = np.uint8(0)
    return em.custom_call(
        f"{_library(em)}_{name}_ffi",
        outs,
        *values,
        backend_config=config,
        aliases=aliases,
        operand_layouts=layouts[: len(values)],
        result_layouts=layouts[len(values) :],
    )


def _has_elements(site) -> bool:
    return site.is_static() and bool(site.values[0].aval.size)


def _is_plain(site) -> bool:
    return _has_elements(site) and not site.params["pivoting"]


def _is_long(site) -> bool:
    return _has_elements(site) and site.values[1].aval.shape[-1] >= _SMALLEST_TRIDIAGONAL


def _by_solver(em, site, *values):
    with em.solved_by(_solver):
        return site.plain(em)


def _permutation(em, site, pivots):
    rows = list(range(pivots.aval.ndim - 1, -1, -1))
    (order,) = em.custom_call(
        f"{'hip' if em.platform == 'rocm' else 'cu'}_lu_pivots_to_permutation",
        [site.out],
        pivots,
        backend_config={},
        operand_layouts=[rows],
        result_layouts=[rows],
    )
    return order


def _tridiagonal_solve(em, site, dl, d, du, b):
    rows = [list(range(v.aval.ndim - 1, -1, -1)) for v in (dl, d, du)]
    lead = b.aval.ndim - 2
    columns = [lead, lead + 1, *range(lead - 1, -1, -1)]
    (x,) = em.custom_call(
        f"{'hip' if em.platform == 'rocm' else 'cu'}sparse_gtsv2_ffi",
        [site.out],
        dl,
        d,
        du,
        b,
        backend_config={},
        aliases={0: 3},
        operand_layouts=[*rows, columns],
        result_layouts=[columns],
    )
    return x


def _eigh(em, site, x):
    return _nan_where_given(em, x, _by_solver(em, site))


def _nan_where_given(em, x, results: list) -> list:
    """The results, with NaN for each matrix that holds NaN or infinity, which cuSOLVER ignores."""
    lead = x.aval.ndim - 2
    row = make_aval(x.shape[:-2], x.dtype)
    zeros = em.op("multiply", x.aval, x, em.constant(0, x.aval))
    zero = em.constant(0, make_aval((), x.dtype))
    (found,) = em.reduce([zeros], [zero], [lead, lead + 1], [row], "add")
    is_nan = em.compare(found, found, "NE")
    outs = []
    for v in results:
        mask = em.broadcast_in_dim(is_nan, make_aval(v.shape, np.dtype(bool)), range(lead))
        outs.append(em.select(mask, em.constant(np.nan, v.aval), v))
    return outs


def _svd(em, site, x):
    """Decompose small matrices by Jacobi rotations, others by QR steps, which need m >= n."""
    *lead, m, n = x.shape
    full, compute_uv = site.params["full_matrices"], site.params["compute_uv"]
    values = site.out[0]
    matrix = lambda rows, columns: make_aval((*lead, rows, columns), x.dtype)
    ndim, is_turned = x.aval.ndim, m < n
    rest = list(range(ndim - 3, -1, -1))
    columns, rows = [ndim - 2, ndim - 1, *rest], [ndim - 1, ndim - 2, *rest]
    if is_small := max(m, n) <= _LARGEST_FOR_JACOBI:
        name, layout, sides = "gesvdj", columns, [matrix(m, m), matrix(n, n)]
        config = {"compute_uv": compute_uv, "full_matrices": True}
    else:
        name, layout = "gesvd", rows if is_turned else columns
        k = min(m, n)
        sides = [matrix(m, m if full else k), matrix(n if full else k, n)]
        sides = sides[::-1] if is_turned else sides
        if not compute_uv:
            sides = [make_aval((), x.dtype)] * 2
        config = {"compute_uv": compute_uv, "full_matrices": full, "transposed": is_turned}
    side = layout if compute_uv or is_small else []
    info = info_aval(tuple(lead))
    row = list(range(values.ndim - 1, -1, -1))
    _, s, first, second, failed = em.custom_call(
        f"{_library(em)}_{name}_ffi",
        [x.aval, values, *sides, info],
        x,
        backend_config=config,
        aliases={0: 0},
        operand_layouts=[layout],
        result_layouts=[layout, row, side, side, list(range(info.ndim - 1, -1, -1))],
    )
    if not compute_uv:
        return _nan_where_given(em, x, nan_unless(em, failed, [s]))
    if is_small:
        wanted = site.out[1:]
        u = _first(em, first, wanted[0])
        vh = _first(em, _adjoint(em, second), wanted[1])
    else:
        u, vh = (second, first) if is_turned else (first, second)
    return _nan_where_given(em, x, nan_unless(em, failed, [s, u, vh]))


def _adjoint(em, x):
    n = x.aval.ndim
    turned = em.transpose(x, (*range(n - 2), n - 1, n - 2))
    is_complex = x.dtype in dtypes.COMPLEX
    return em.lower(conj_p, x.aval, turned, input_dtype=x.dtype) if is_complex else turned


def _first(em, x, aval):
    """The leading rows and columns, in the shape of `aval`."""
    return x if x.shape == aval.shape else em.slice(x, [0] * x.aval.ndim, aval.shape)


REWRITES = (
    Rewrite("permutations_by_gpu", (lu_pivots_to_permutation_p,), _permutation, _has_elements, CORRECTNESS),
    Rewrite("lu_by_gpu", (lu_p,), _by_solver, _has_elements, CORRECTNESS),
    Rewrite("qr_parts_by_gpu", (geqrf_p, householder_product_p), _by_solver, _has_elements, CORRECTNESS),
    Rewrite("qr_by_gpu", (qr_p,), _by_solver, _is_plain, CORRECTNESS),
    Rewrite("reflections_by_gpu", (ormqr_p, tridiagonal_p), _by_solver, _has_elements, CORRECTNESS),
    Rewrite("tridiagonal_solves_by_gpu", (tridiagonal_solve_p,), _tridiagonal_solve, _is_long, CORRECTNESS),
    Rewrite("eigh_by_gpu", (eigh_p,), _eigh, _has_elements, CORRECTNESS),
    Rewrite("svd_by_gpu", (svd_p,), _svd, _has_elements, CORRECTNESS),
)
