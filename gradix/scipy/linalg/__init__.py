"""Linear algebra, as in `scipy.linalg`."""

from gradix.scipy.linalg.factorizations import (
    cho_factor as cho_factor,
    cholesky as cholesky,
    eigh as eigh,
    hessenberg as hessenberg,
    lu as lu,
    lu_factor as lu_factor,
    qr as qr,
    qr_multiply as qr_multiply,
    rsf2csf as rsf2csf,
    schur as schur,
    svd as svd,
)
from gradix.scipy.linalg.functions import expm as expm, expm_frechet as expm_frechet, funm as funm, sqrtm as sqrtm
from gradix.scipy.linalg.numbered import (
    dft as dft,
    hadamard as hadamard,
    helmert as helmert,
    hilbert as hilbert,
    invhilbert as invhilbert,
    invpascal as invpascal,
    pascal as pascal,
)
from gradix.scipy.linalg.polar_factors import polar as polar
from gradix.scipy.linalg.solving import (
    cho_solve as cho_solve,
    det as det,
    inv as inv,
    lu_solve as lu_solve,
    solve as solve,
    solve_sylvester as solve_sylvester,
    solve_triangular as solve_triangular,
)
from gradix.scipy.linalg.structured import (
    block_diag as block_diag,
    circulant as circulant,
    companion as companion,
    convolution_matrix as convolution_matrix,
    fiedler as fiedler,
    fiedler_companion as fiedler_companion,
    hankel as hankel,
    leslie as leslie,
    toeplitz as toeplitz,
)
from gradix.scipy.linalg.tridiagonal import eigh_tridiagonal as eigh_tridiagonal
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
