"""Dtypes: promotion, canonical widths, limits and the extended types.

Example:
    >>> from gradix import dtypes
    >>> dtypes.result_type("int8", "uint8"), dtypes.itemsize_bits("int4")
    (dtype('int16'), 4)
"""
from gradix._core.dtypes import (
    TypePromotionError,
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)
