"""Dtypes: their promotion, canonical widths and limits, and extended dtypes.

Example:
    >>> from gradix import dtypes
    >>> dtypes.result_type("int8", "uint8"), dtypes.itemsize_bits("int4")
    (dtype('int16'), 4)
"""

from gradix._base.lazy import claim as _claim
from gradix._core.dtypes import (
    TypePromotionError as TypePromotionError,
    bfloat16 as bfloat16,
    canonicalize_dtype as canonicalize_dtype,
    extended as extended,
    finfo as finfo,
    float0 as float0,
    iinfo as iinfo,
    issubdtype as issubdtype,
    itemsize_bits as itemsize_bits,
    prng_key as prng_key,
    result_type as result_type,
    scalar_type_of as scalar_type_of,
)

_claim(__name__, "gradix._core.")
