"""Linear algebra, as `scipy.linalg`."""
from gradix.scipy.linalg.factorizations import (
    cho_factor,
    cholesky,
    eigh,
    hessenberg,
    lu,
    lu_factor,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from gradix.scipy.linalg.functions import expm, expm_frechet, funm, sqrtm
from gradix.scipy.linalg.numbered import dft, hadamard, helmert, hilbert, invhilbert, invpascal, pascal
from gradix.scipy.linalg.polar_factors import polar
from gradix.scipy.linalg.solving import cho_solve, det, inv, lu_solve, solve, solve_sylvester, solve_triangular
from gradix.scipy.linalg.structured import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    fiedler,
    fiedler_companion,
    hankel,
    leslie,
    toeplitz,
)
from gradix.scipy.linalg.tridiagonal import eigh_tridiagonal
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
