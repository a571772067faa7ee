"""Types for annotations of parameters that accept arrays or dtypes."""

from typing import Any

import numpy as _np

from gradix._core.operators import Array as _Array

ArrayLike = _Array | _np.ndarray | _np.bool_ | _np.number | bool | int | float | complex
DTypeLike = str | type[Any] | _np.dtype | Any
