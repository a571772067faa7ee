"""StableHLO types as text."""

from __future__ import annotations

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._core.aval import AbstractToken
from gradix._core.dtypes import physical_dtype

# the type of the token that orders effects
TOKEN = AbstractToken()

_ELEMENTS = {
    "bool": "i1",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"{u}int{n}": f"{u and 'u'}i{n}" for u in ("", "u") for n in (2, 4, 8, 16, 32, 64)},
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}
_BOOL = np.dtype(bool)
_elements: dict = {}
# texts of types
known_types: BoundedCache = BoundedCache(1 << 16)


def storage_dtype(dtype) -> np.dtype:
    """The NumPy dtype of the buffer: that of the words for keys, bool for float0."""
    return _BOOL if getattr(dtype, "names", None) else physical_dtype(dtype)


def element_type(dtype) -> str:
    """How MLIR writes the physical form of a dtype: f32, i1, ui8, complex<f64>."""
    found = _elements.get(dtype)
    if found is None:
        found = _ELEMENTS.get(storage_dtype(dtype).name)
        if found is None:
            raise TypeError(
                f"dtype {dtype} has no XLA type. XLA knows {', '.join(_ELEMENTS)}; cast with x.astype(...)."
            )
        _elements[dtype] = found
    return found


def tensor_type(aval) -> str:
    """The MLIR type of an aval: tensor<3x4xf32>; a symbolic dimension is written `?`."""
    found = known_types.get(aval)
    if found is None:
        if type(aval) is AbstractToken:
            found = "!stablehlo.token"
        else:
            _check_size(aval)
            dims = "".join([f"{d}x" if isinstance(d, (int, np.integer)) else "?x" for d in aval.shape])
            found = f"tensor<{dims}{element_type(aval.dtype)}>"
        known_types.keep(aval, found)
    return found


def _check_size(aval) -> None:
    """Refuse a shape whose size in bytes overflows 63 bits, on which XLA ends the process."""
    bytes_ = storage_dtype(aval.dtype).itemsize
    for d in aval.shape:
        if isinstance(d, (int, np.integer)):
            bytes_ *= int(d) or 1
    if bytes_ >= 1 << 63:
        raise ValueError(
            f"array is too big: shape {tuple(aval.shape)} of {aval.dtype} needs {bytes_} bytes, "
            f"more than can be addressed. Check the sizes given."
        )
