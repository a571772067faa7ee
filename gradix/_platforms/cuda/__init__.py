"""XLA:GPU on CUDA: factorizations are by cuSOLVER, cuBLAS and cuSPARSE, and by the host."""

from gradix._platforms.records import Table

SOLVED = (
    "lu",
    "lu_pivots_to_permutation",
    "geqrf",
    "householder_product",
    "ormqr",
    "qr",
    "eigh",
    "svd",
    "tridiagonal",
    "tridiagonal_solve",
)
HOSTED = ("eig", "schur", "hessenberg", "qr", "tridiagonal_solve")
TABLE = Table(
    {
        "gradix._platforms.factorizations": ("cholesky", "triangular_solve"),
        "gradix._platforms.exactness": (*("asin", "acos", "atan", "asinh", "acosh", "atanh", "sqrt", "mul", "cbrt"),),
        "gradix._platforms.inner_products": ("dot_general",),
        "gradix._platforms.gpu_convolutions": ("conv_general_dilated",),
        "gradix._platforms.gpu_products": ("dot_general",),
        "gradix._platforms.gpu_solvers": SOLVED,
        "gradix._platforms.host_factors": HOSTED,
    }
)
