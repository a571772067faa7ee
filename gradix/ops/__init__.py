"""Reductions over segments: of the rows of an array that have the same number.

Example:
    >>> import gradix.numpy as jnp
    >>> from gradix import ops
    >>> ops.segment_sum(jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 0, 1]))
    Array([3., 3.], dtype=float32)
"""

from gradix.ops.segments import (
    segment_max as segment_max,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
)
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
