"""XLA:TPU: factorizations are its own; products take the precision that they are given. Nothing of this has run on hardware."""
from gradix._platforms.records import Table

TABLE = Table({"gradix._platforms.factorizations": ("cholesky", "triangular_solve")})
