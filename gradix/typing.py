"""Types for annotations of parameters that accept arrays or dtypes."""

from typing import Any

import numpy as _np

from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array as _Array

ArrayLike = _Array | _np.ndarray | _np.bool_ | _np.number | bool | int | float | complex
DTypeLike = str | type[Any] | _np.dtype | Any


__dir__ = _own_names(__name__, "ArrayLike", "DTypeLike")
