"""`jax._src.numpy.util`: promotion of operands."""

from __future__ import annotations

from typing import Any

from gradix import lax
from gradix._core import dtypes
from gradix.numpy.promotion import promote_dtypes as _promoted, promote_dtypes_inexact as _promoted_inexact


def promote_dtypes(*args) -> list:
    """The operands as arrays of the dtype to which they promote."""
    return _promoted("promote_dtypes", *args)


def promote_dtypes_inexact(*args) -> list:
    """As `promote_dtypes`, in a floating or complex dtype."""
    return _promoted_inexact("promote_dtypes_inexact", *args)


def promote_dtypes_complex(*args) -> list:
    """As `promote_dtypes`, in the complex dtype that holds them."""
    xs = promote_dtypes_inexact(*args)
    dtype: Any = dtypes.joined_dtype(xs[0].dtype, "complex64") if xs else None
    return [lax.convert_element_type(x, dtype) for x in xs]
