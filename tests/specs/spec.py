"""What a record of a primitive holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

F32, F64, F16, BF16 = "float32", "float64", "float16", "bfloat16"
C64, BOOL, I8, I32, U8, U32 = "complex64", "bool", "int8", "int32", "uint8", "uint32"


@dataclass(frozen=True)
class Operand:
    """How to make one operand: shape, and the range or choice its values come from."""

    shape: tuple = ()
    low: float = -2.0
    high: float = 2.0
    dtype: str | None = None  # fixed, whatever the sample's dtype
    values: Any = None  # given, instead of random
    linear: bool = True  # takes part in differentiation and in mapping

    def make(self, dtype: str, rng) -> np.ndarray:
        kind = np.dtype(getattr(ml_dtypes, self.dtype or dtype, self.dtype or dtype))
        if self.values is not None:
            return np.asarray(self.values).astype(kind)
        if kind == bool:
            return rng.integers(0, 2, self.shape).astype(bool)
        if kind.kind in "iu":
            low = max(int(self.low), 0) if kind.kind == "u" else int(self.low)
            return rng.integers(low, max(int(self.high), low + 1) + 1, self.shape).astype(kind)
        x = rng.uniform(self.low, self.high, self.shape)
        if kind.kind == "c":
            x = x + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(x).astype(kind)


def distinct(shape, low=-2.0, high=2.0) -> Operand:
    """Values without ties, in random order: for extremes and sorts, whose derivatives jump at ties."""
    n = int(np.prod(shape))
    values = np.random.default_rng(n).permutation(np.linspace(low, high, max(n, 1))[:n]).reshape(shape)
    return Operand(shape, values=values)


@dataclass(frozen=True)
class Sample:
    """Operands, and the parameters the operation gets."""

    operands: tuple[Operand, ...]
    params: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """The record of one primitive.

    Args:
        call: `call(*arrays, **params)` through the public function.
        reference: the same on NumPy arrays of wide dtypes; None where there is no independent one.
        dtypes: those the primitive accepts, among the ones tested.
        derivative: "yes", "zero" (declared zero), or "none" (an error).
        errors: `(call, exception type, pattern)` of wrong uses.
        rtol: relative tolerance against the reference in float32.
        mapped: whether vmap is tested.
        edge: values for the comparison of host and compiled beyond the samples.
    """

    name: str
    call: Callable
    samples: tuple[Sample, ...]
    reference: Callable | None = None
    dtypes: tuple[str, ...] = (F32,)
    derivative: str = "yes"
    errors: tuple = ()
    rtol: float = 2e-6
    mapped: bool = True
    second: bool = True
    edge: tuple = ()

    def __repr__(self) -> str:
        return self.name
