"""Constants as dense literals, exact to the bit."""

from __future__ import annotations

import numpy as np

from gradix._stablehlo.types import element_type

_DECIMAL_LIMIT = 32  # so few integers are written in decimal, for readability
_INT32, _LIMIT = np.dtype("int32"), 1 << 31
_DECIMAL_FLOATS = frozenset({"f16", "f32", "f64", "bf16"})


def dense(array: np.ndarray) -> str:
    """`dense<...>` for an array of a physical dtype, without the tensor type that follows."""
    if array.size == 0:
        return "dense<>"
    element = element_type(array.dtype)
    if array.ndim == 0 or _is_splat(array):
        return f"dense<{_scalar(array[(0,) * array.ndim], element)}>"
    if array.size <= _DECIMAL_LIMIT and element == "i1":
        return f"dense<{str(array.tolist()).lower()}>"
    if array.size <= _DECIMAL_LIMIT and element[0] in "iu":
        return f"dense<{array.astype('u8' if element[0] == 'u' else 'i8').tolist()}>"
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return f'dense<"0x{little.tobytes().hex().upper()}">'


def scalar_text(value, dtype: np.dtype) -> str:
    """The text inside `dense<>` for one value of a physical dtype."""
    kind = type(value)
    if kind is int and dtype is _INT32:
        return str(value) if -_LIMIT <= value < _LIMIT else str(np.asarray(value, dtype)[()])
    return _scalar(
        value if isinstance(value, np.generic) and value.dtype == dtype else np.asarray(value, dtype)[()],
        element_type(dtype),
    )


def _scalar(x, element: str) -> str:
    if element == "i1":
        return "true" if x else "false"
    if element[0] in "iu":
        return str(int(x))
    if element[0] == "c":
        part = element[8:-1]
        return f"({_scalar(x.real, part)}, {_scalar(x.imag, part)})"
    return _decimal(x) if element in _DECIMAL_FLOATS and np.isfinite(x) else _bits(x)


def _decimal(x) -> str:
    """A finite float in decimal; MLIR requires a point before the exponent."""
    text = repr(float(x))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def _bits(x) -> str:
    size = x.dtype.itemsize
    return f"0x{int(np.asarray(x).view(f'u{size}')):0{2 * size}X}"


def _is_splat(array: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    if array.size == 1 or not any(s for s, d in zip(array.strides, array.shape) if d > 1):
        return True
    if array.flat[0].tobytes() != array.flat[array.size - 1].tobytes():
        return False
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return bool((flat == flat[0]).all())
