"""Factorizations by XLA's functions for TPUs, on which none has run; XLA:CPU expands some."""

from __future__ import annotations

from gradix._ops.linalg.eigh import eigh_p
from gradix._ops.linalg.lu import lu_p
from gradix._ops.linalg.qr import geqrf_p, householder_product_p, qr_p
from gradix._platforms.records import CORRECTNESS, Rewrite

_NAMES = {
    "geqrf": "Qr",
    "orgqr": "ProductOfElementaryHouseholderReflectors",
    "ungqr": "ProductOfElementaryHouseholderReflectors",
}
_SWEEPS = "100,1e-6"  # the largest number of sweeps, and the tolerance that ends them


def _solver(em, target: str, values, outs, layouts, *, config: dict, aliases) -> list:
    return em.custom_call(_NAMES[target[1:]], outs, *values, api_version=1)


def _has_elements(site) -> bool:
    return site.is_static() and bool(site.values[0].aval.size)


def _is_plain(site) -> bool:
    return _has_elements(site) and not site.params["pivoting"]


def _by_solver(em, site, *values):
    with em.solved_by(_solver):
        return site.plain(em)


def _lu(em, site, x):
    return em.custom_call("LuDecomposition", site.out, x, api_version=2)


def _eigh(em, site, x):
    lower = int(site.params["lower"])
    return em.custom_call("Eigh", site.out, x, backend_config=f"{lower},1,{_SWEEPS}", api_version=1)


REWRITES = (
    Rewrite("lu_by_tpu", (lu_p,), _lu, _has_elements, CORRECTNESS),
    Rewrite("qr_parts_by_tpu", (geqrf_p, householder_product_p), _by_solver, _has_elements, CORRECTNESS),
    Rewrite("qr_by_tpu", (qr_p,), _by_solver, _is_plain, CORRECTNESS),
    Rewrite("eigh_by_tpu", (eigh_p,), _eigh, _has_elements, CORRECTNESS),
)
