"""XLA:TPU, with factorizations of its own. Nothing here has run on hardware."""

from gradix._platforms.records import Table

TABLE = Table(
    {
        "gradix._platforms.factorizations": ("cholesky", "triangular_solve"),
        "gradix._platforms.tpu.solvers": ("lu", "geqrf", "householder_product", "qr", "eigh"),
    }
)
