"""Values of any dtype as a row of 32-bit words, so that one buffer holds what any check met."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.dtypes import BOOL, COMPLEX, FLOAT, SIGNED, ExtendedDType
from gradix._ops.complex_parts import imag, real
from gradix._ops.convert import bitcast_convert_type, convert_element_type
from gradix._ops.joining import concatenate
from gradix._ops.shape import reshape

_WORD = np.dtype(np.uint32)


def _sent_as(dtype) -> np.dtype:
    """The type of 32 or 64 bits that holds all values of `dtype`."""
    if dtype.itemsize in (4, 8) and dtype not in BOOL:
        return dtype
    return np.dtype(np.float32 if dtype in FLOAT else np.int32 if dtype in SIGNED else np.uint32)


def size_of(aval) -> int:
    """How many words the values of a type take."""
    each = aval.dtype.itemsize // 4 if aval.dtype in COMPLEX else _sent_as(aval.dtype).itemsize // 4
    return prod(aval.shape) * each


def pack(values) -> list:
    """The words of each array."""
    parts = []
    for x in values:
        if isinstance(x.aval.dtype, ExtendedDType):
            raise TypeError(
                f"Formatting arguments to checkify.check need to be arrays of numbers, but got {x.aval}. "
                "Pass random.key_data(key) for a key."
            )
        for part in (real(x), imag(x)) if x.aval.dtype in COMPLEX else (x,):
            part = convert_element_type(part, _sent_as(part.aval.dtype))
            parts.append(reshape(bitcast_convert_type(part, _WORD), (size_of(part.aval),)))
    return [concatenate(parts, 0)] if len(parts) > 1 else parts


def unpack(words: np.ndarray, avals) -> list[np.ndarray]:
    """The arrays that `pack` was given, of these types."""
    values, at = [], 0
    for aval in avals:
        pair = aval.dtype in COMPLEX
        sent = np.dtype(f"f{aval.dtype.itemsize // 2}") if pair else _sent_as(aval.dtype)
        parts = []
        for _ in range(2 if pair else 1):
            n = prod(aval.shape) * sent.itemsize // 4
            parts.append(np.ascontiguousarray(words[at : at + n]).view(sent).reshape(aval.shape))
            at += n
        values.append((parts[0] + 1j * parts[1] if pair else parts[0]).astype(aval.dtype))
    return values
