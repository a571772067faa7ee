"""XLA:GPU on CUDA: factorizations are its own, by cuSOLVER and cuBLAS.

Nothing here has run on hardware.
"""

from gradix._platforms.records import Table

SOLVED = ("lu", "geqrf", "householder_product", "qr", "eigh", "svd")
TABLE = Table(
    {
        "gradix._platforms.factorizations": ("cholesky", "triangular_solve"),
        "gradix._platforms.gpu_solvers": SOLVED,
    }
)
