"""Matrix factorizations and what is computed with them, on stacks of matrices in the last two axes."""
# fmt: off
from gradix._ops.linalg.eig import EigImplementation, eig, eig_p
from gradix._ops.linalg.eigh import EighImplementation, eigh, eigh_p
from gradix._ops.linalg.lu import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from gradix._ops.linalg.ormqr import ormqr, ormqr_p
from gradix._ops.linalg.qr import householder_product, householder_product_p, qr, qr_p
from gradix._ops.linalg.schur import hessenberg, hessenberg_p, schur, schur_p
from gradix._ops.linalg.svd import SvdAlgorithm, svd, svd_p
from gradix._ops.linalg.triangular import cholesky, cholesky_p, triangular_solve, triangular_solve_p
from gradix._ops.linalg.tridiagonal import tridiagonal, tridiagonal_p, tridiagonal_solve, tridiagonal_solve_p
from gradix._ops.linalg.update import cholesky_update, cholesky_update_p, symmetric_product, symmetric_product_p
from gradix._api.polar_decomposition import qdwh
from gradix._ops.linalg.qr import geqrf as _geqrf
from gradix._ops.linalg.base import adjoint as _adjoint, check_matrices as _check_matrices, diagonal as _diagonal
from gradix._ops.linalg.base import product as _product, triangle as _triangle
from gradix._ops.linalg.solve import solve_factored as _solve_factored
from gradix._ops.linalg.solve import solve_factored_transposed as _solve_factored_transposed
