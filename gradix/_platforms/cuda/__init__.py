"""XLA:GPU on CUDA: factorizations are its own, by cuSOLVER and cuBLAS. Nothing of this has run on hardware."""
from gradix._platforms.factorizations import REWRITES as _FACTORIZATIONS

REWRITES: tuple = _FACTORIZATIONS
CHOICES: tuple = ()
