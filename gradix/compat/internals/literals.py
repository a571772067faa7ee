"""`jax._src.literals`: NumPy arrays that know their type as arrays of gradix."""

from __future__ import annotations

import numpy as np

from gradix._core.array import typeof
from gradix.core import ShapedArray


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
