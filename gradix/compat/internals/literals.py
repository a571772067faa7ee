"""`jax._src.literals`: NumPy arrays and Python numbers that carry a dtype of gradix arrays."""

from __future__ import annotations

import numpy as np

from gradix._core.array import typeof
from gradix.core import ShapedArray


class _Typed:
    """A Python number with a given dtype; an array made of it is weakly typed."""

    dtype: np.dtype

    def __new__(cls, value, dtype):
        new = super().__new__(cls, value)  # type: ignore[call-arg]
        new.dtype = np.dtype(dtype)
        return new

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray((), self.dtype, True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype})"


class TypedInt(_Typed, int):
    """A Python integer with a given dtype."""


class TypedFloat(_Typed, float):
    """A Python float with a given dtype."""


class TypedComplex(_Typed, complex):
    """A Python complex number with a given dtype."""


class TypedNdArray(np.ndarray):
    """A NumPy array with an abstract value, whose type may be weak."""

    aval: ShapedArray

    def __new__(cls, val: np.ndarray, aval: ShapedArray | None = None) -> TypedNdArray:
        new = np.asarray(val).view(cls)
        new.aval = typeof(np.asarray(val)) if aval is None else aval
        return new

    def __array_finalize__(self, obj) -> None:
        # Arrays that NumPy makes of this one get a type of their own.
        if type(obj) is not TypedNdArray:
            return
        self.aval = typeof(np.asarray(self))

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type
