"""Functions of SciPy on arrays, with their derivatives."""
from gradix.scipy import linalg as linalg
from gradix.scipy import special as special
