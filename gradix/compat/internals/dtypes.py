"""`jax._src.dtypes`: the lattice of types, and its error."""
from gradix.dtypes import *  # noqa: F403
from gradix.dtypes import TypePromotionError as TypePromotionError
