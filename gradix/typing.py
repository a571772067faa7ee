"""Types for annotations of parameters that accept arrays or dtypes."""

from gradix._base.listing import own_names as _own_names
from gradix._core.annotations import ArrayLike as ArrayLike, DTypeLike as DTypeLike

__dir__ = _own_names(__name__, "ArrayLike", "DTypeLike")
