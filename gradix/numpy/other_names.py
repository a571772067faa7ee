"""Names that stand for others."""

from gradix._core.operators import Array
from gradix.numpy.scalar_types import bool_

ndarray = Array
bool = bool_  # noqa: A001  (It is a dtype, as in NumPy.)
