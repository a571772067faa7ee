"""Factorizations that no library of a GPU has: the host computes them, and the program calls it."""

from __future__ import annotations

import numpy as np

from gradix._ops.linalg.eig import eig_p
from gradix._ops.linalg.qr import qr_p
from gradix._ops.linalg.schur import hessenberg_p, schur_p
from gradix._ops.linalg.tridiagonal import tridiagonal_solve_p
from gradix._platforms.records import CORRECTNESS, Rewrite


def _has_elements(site) -> bool:
    return site.is_static() and bool(site.values[0].aval.size)


def _by_host(em, site, *values):
    prim, params, is_single = site.primitive, site.params, not site.primitive.multiple_results

    def function(*arrays):
        with np.errstate(all="ignore"):
            found = prim.host(*arrays, **params)
        return [found] if is_single else found

    found = em.callback(function, [site.out] if is_single else site.out, *values)
    return found[0] if is_single else found


# After the rows that call a library, which decline what the library does not have.
REWRITES = (
    Rewrite("by_host", (eig_p, schur_p, hessenberg_p, qr_p, tridiagonal_solve_p), _by_host, _has_elements, CORRECTNESS),
)
