"""Factorizations of matrices, and solvers that use them, for matrices in the last two axes."""

# fmt: off
from gradix._ops.linalg.eig import EigImplementation as EigImplementation, eig as eig, eig_p as eig_p
from gradix._ops.linalg.eigh import EighImplementation as EighImplementation, eigh as eigh, eigh_p as eigh_p
from gradix._ops.linalg.lu import (
    lu as lu,
    lu_p as lu_p,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from gradix._ops.linalg.ormqr import ormqr as ormqr, ormqr_p as ormqr_p
from gradix._ops.linalg.qr import (
    householder_product as householder_product,
    householder_product_p as householder_product_p,
    qr as qr,
    qr_p as qr_p,
)
from gradix._ops.linalg.schur import (
    hessenberg as hessenberg,
    hessenberg_p as hessenberg_p,
    schur as schur,
    schur_p as schur_p,
)
from gradix._ops.linalg.svd import SvdAlgorithm as SvdAlgorithm, svd as svd, svd_p as svd_p
from gradix._ops.linalg.triangular import (
    cholesky as cholesky,
    cholesky_p as cholesky_p,
    triangular_solve as triangular_solve,
    triangular_solve_p as triangular_solve_p,
)
from gradix._ops.linalg.tridiagonal import (
    tridiagonal as tridiagonal,
    tridiagonal_p as tridiagonal_p,
    tridiagonal_solve as tridiagonal_solve,
    tridiagonal_solve_p as tridiagonal_solve_p,
)
from gradix._ops.linalg.update import (
    cholesky_update as cholesky_update,
    cholesky_update_p as cholesky_update_p,
    symmetric_product as symmetric_product,
    symmetric_product_p as symmetric_product_p,
)
from gradix._api.polar_decomposition import qdwh as qdwh
from gradix._ops.linalg.qr import geqrf as _geqrf
from gradix._ops.linalg.base import adjoint as _adjoint, check_matrices as _check_matrices, diagonal as _diagonal
from gradix._ops.linalg.base import product as _product, triangle as _triangle
from gradix._ops.linalg.solve import solve_factored as _solve_factored
from gradix._ops.linalg.solve import solve_factored_transposed as _solve_factored_transposed
