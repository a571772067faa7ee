"""Factorizations as operations of StableHLO, for platforms without LAPACK whose XLA has them."""

from __future__ import annotations

from gradix._core import dtypes
from gradix._ops.complex_parts import conj_p
from gradix._ops.linalg.base import emit_triangle
from gradix._ops.linalg.triangular import cholesky_p, triangular_solve_p
from gradix._platforms.records import CORRECTNESS, Rewrite


def _has_elements(site) -> bool:
    return site.is_static() and bool(site.out.size)


def _cholesky(em, site, x):
    # The elements above the diagonal of XLA's factor are undefined.
    return emit_triangle(em, em.op("cholesky", x.aval, x, attrs="lower = true"), lower=True)


def _triangular_solve(em, site, a, b):
    params = site.params
    conjugated, transposed = (params["conjugate_a"] and a.aval.dtype in dtypes.COMPLEX, params["transpose_a"])
    if conjugated and not transposed:
        a = em.lower(conj_p, a.aval, a, input_dtype=a.aval.dtype)
    transpose = "NO_TRANSPOSE" if not transposed else "ADJOINT" if conjugated else "TRANSPOSE"
    asked = [f"{k} = {str(params[k]).lower()}" for k in ("left_side", "lower", "unit_diagonal")]
    attrs = f"{', '.join(asked)}, transpose_a = #stablehlo<transpose {transpose}>"
    return em.op("triangular_solve", b.aval, a, b, attrs=attrs)


REWRITES = (
    Rewrite("cholesky_by_xla", (cholesky_p,), _cholesky, _has_elements, CORRECTNESS),
    Rewrite("triangular_solves_by_xla", (triangular_solve_p,), _triangular_solve, _has_elements, CORRECTNESS),
)
