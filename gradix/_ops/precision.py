"""How exactly products and convolutions are computed: `Precision`, `DotAlgorithm` and presets."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from gradix._base.config import state

_ALIASES = {
    "highest": 2,
    "float32": 2,
    "high": 1,
    "bfloat16_3x": 1,
    "tensorfloat32": 1,
    "default": 0,
    "bfloat16": 0,
    "fastest": 0,
    None: 0,
}


class Precision(enum.Enum):
    """How far an accelerator may round the operands of a product; the CPU never does.

    Example:
        >>> Precision("float32")
        Precision.HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return cls(_ALIASES[value]) if value in _ALIASES else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """How a product is computed: types of operands and accumulator, number of partial products.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> how = lax.DotAlgorithm("bfloat16", "bfloat16", "float32", num_primitive_operations=3)
        >>> how.accumulation_type, how.num_primitive_operations
        ('float32', 3)
        >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.DotAlgorithm("float32", "float32", "float32"))
        Array(3., dtype=float32)
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms, by operand types, accumulator and number of products.

    The CPU ignores these hints.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.DotAlgorithmPreset.F32_F32_F32)
        Array(3., dtype=float32)
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)


def canonicalize_precision(precision) -> Any:
    """The `precision` argument of a user as None, a pair of `Precision`, or an algorithm.

    Raises:
        ValueError: for anything that names no precision.

    Example:
        >>> canonicalize_precision("high")
        (Precision.HIGH, Precision.HIGH)
    """
    if precision is None:
        precision = state.jax_default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    if len(pair) == 2 and all(
        p is None or isinstance(p, Precision) or (isinstance(p, str) and p in _ALIASES) for p in pair
    ):
        return tuple([Precision(p) for p in pair])
    raise ValueError(
        f"precision must be None, one of the strings {[k for k in _ALIASES if k]}, a lax.Precision, a "
        "pair of these, or a lax.DotAlgorithm, a lax.DotAlgorithmPreset or the name of one; "
        f"got {precision!r}."
    )


_TYPES = {"F16": "f16", "BF16": "bf16", "TF32": "tf32", "F32": "f32", "F64": "f64"}


def precision_asked(precision, lhs_dtype) -> tuple[str, ...] | dict[str, Any] | None:
    """The precision for the emitter: a name per operand, the fields of an algorithm, or None."""
    if isinstance(precision, tuple) and isinstance(precision[0], Precision):
        return tuple([p.name for p in precision])
    if precision is None or precision is DotAlgorithmPreset.DEFAULT:
        return None
    lhs, rhs, accumulator, *counts, imprecise = _algorithm(precision, lhs_dtype)
    names = "lhs_component_count", "rhs_component_count", "num_primitive_operations"
    return {
        "lhs_precision_type": lhs,
        "rhs_precision_type": rhs,
        "accumulation_type": accumulator,
        **dict(zip(names, counts)),
        "allow_imprecise_accumulation": str(imprecise).lower(),
    }


def _algorithm(precision, lhs_dtype) -> tuple:
    """The seven fields of an algorithm, with types as MLIR writes them."""
    if isinstance(precision, DotAlgorithm):
        return (*map(_type_name, precision[:3]), *precision[3:])
    name = precision.name
    if name.startswith("ANY"):
        element = _type_name(lhs_dtype)
        return (element, element, "f32" if "F32" in name else element, 1, 1, 1, name.endswith("FAST_ACCUM"))
    lhs, rhs, accumulator, *times = name.split("_")
    count = int(times[0][1:]) if times else 1
    parts = {1: 1, 3: 2 if lhs == "BF16" else 1, 6: 3, 9: 3}[count]
    return (_TYPES[lhs], _TYPES[rhs], _TYPES[accumulator], parts, parts, count, False)


_MLIR_FLOATS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "tf32": "tf32"}


def _type_name(dtype) -> str:
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name in _MLIR_FLOATS:
        return _MLIR_FLOATS[name]
    if name.startswith("float8"):
        return "f8" + np.dtype(getattr(ml_dtypes, name)).name.removeprefix("float8_").upper()
    raise ValueError(f"a DotAlgorithm takes floating types, got {dtype!r}; give for example numpy.float32 or 'tf32'.")
