"""XLA:TPU: factorizations are its own; products take the precision that they are given. Nothing of this has run on hardware."""
from gradix._platforms.factorizations import REWRITES as _FACTORIZATIONS

REWRITES: tuple = _FACTORIZATIONS
CHOICES: tuple = ()
