"""`jax._src.dtypes`: dtypes, their kinds and their limits."""

from typing import Any, Protocol

import numpy as np

from gradix._core.scalar_types import ExtendedDType as ExtendedDType
from gradix.dtypes import *  # noqa: F403
from gradix.dtypes import TypePromotionError as TypePromotionError, extended as extended
from gradix.numpy import finfo as finfo, iinfo as iinfo

DType = np.dtype


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> Any: ...


def supports_inf(dtype) -> bool:
    """Whether a float dtype has an infinity."""
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.asarray(np.inf, np.float32).astype(dtype).astype(np.float32)))
