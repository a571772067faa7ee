"""Functions of SciPy on arrays, with their derivatives."""
from gradix.scipy import special as special
