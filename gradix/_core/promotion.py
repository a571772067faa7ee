"""Type promotion: the least upper bound of operands' dtypes in JAX's lattice.

A node of the lattice is a dtype or, for weakly typed operands, `int`, `float` or `complex`. The
lattice is the one documented in JAX's type promotion design note (JEP 9407).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradix._core.scalar_types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    NARROW_FLOAT,
    NARROW_INTEGER,
    SUPPORTED,
    as_dtype,
    dtype_name,
)

# A promotion's mode is is_x64(), plus STRICT under numpy_dtype_promotion="strict".
STRICT = 2

# It is a set, as NumPy says dtype("int64") == int, and only the hash distinguishes them.
_WEAK = frozenset((int, float, complex))
_DEFAULT = {
    int: (np.dtype("int32"), np.dtype("int64")),
    float: (np.dtype("float32"), np.dtype("float64")),
    complex: (np.dtype("complex64"), np.dtype("complex128")),
}


class TypePromotionError(ValueError):
    """Raised for operands whose dtypes have no common dtype; cast one of them with `astype`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import dtypes
        >>> try:
        ...     jnp.ones(2, "float8_e5m2") + jnp.ones(2, "float8_e4m3fn")
        ... except dtypes.TypePromotionError as e:
        ...     print(str(e).partition(" have ")[0])
        Input dtypes (float8_e4m3fn, float8_e5m2)
    """

    __module__ = "gradix.dtypes"  # where users find it


def _edges(mode: int) -> dict[Any, tuple]:
    """A map from each node to its direct successors."""
    if mode >= STRICT:
        return {int: (*INTEGER, float), float: (*FLOAT, complex), complex: tuple(COMPLEX)}
    named = {
        "uint8": "int16 uint16",
        "uint16": "int32 uint32",
        "uint32": "int64 uint64" if mode else "int32 uint64",
        "int8": "int16",
        "int16": "int32",
        "int32": "int64",
        "bfloat16": "float32",
        "float16": "float32",
        "float32": "float64 complex64",
        "float64": "complex128",
        "complex64": "complex128",
    }
    edges: dict[Any, tuple] = {np.dtype(as_dtype(a)): tuple(map(as_dtype, b.split())) for a, b in named.items()}
    edges[np.dtype("uint64")] = edges[np.dtype("int64")] = (float,)
    edges[np.dtype("bool")] = (int,)
    edges[int] = (np.dtype("uint8"), np.dtype("int8"), *NARROW_INTEGER)
    edges[float] = (as_dtype("bfloat16"), np.dtype("float16"), complex, *NARROW_FLOAT)
    edges[complex] = (np.dtype("complex64"),)
    return edges


@cache
def _uppers(mode: int) -> dict[Any, frozenset]:
    """A map from each node to its upper bounds, which include itself."""
    edges = _edges(mode)

    @cache
    def above(node) -> frozenset:
        return frozenset({node}).union(*map(above, edges.get(node, ())))

    return {node: above(node) for node in (*SUPPORTED, *_WEAK)}


def _join(nodes: frozenset, mode: int) -> Any:
    """The least upper bound of some nodes."""
    uppers = _uppers(mode)
    bad = [n for n in nodes if n not in uppers]
    if bad:
        raise ValueError(
            f"dtype={dtype_name(bad[0])} is not a valid dtype for type promotion with "
            f"{_names(nodes - {bad[0]})}. Convert one of the operands explicitly with x.astype(...)."
        )
    common = frozenset.intersection(*(uppers[n] for n in nodes))
    for node in common:
        if len(uppers[node]) == len(common):
            return node
    raise TypePromotionError(_no_path(nodes, mode))


def _names(nodes) -> str:
    return ", ".join(sorted(f"Python {n.__name__}" if n in _WEAK else dtype_name(n) for n in nodes))


def _no_path(nodes: frozenset, mode: int) -> str:
    text = f"Input dtypes ({_names(nodes)}) have no available implicit dtype promotion path"
    if mode >= STRICT:
        return text + (
            " under numpy_dtype_promotion='strict'. Cast the inputs to one dtype with x.astype(...), or "
            "set numpy_dtype_promotion='standard'."
        )
    if nodes & NARROW_INTEGER:
        return text + (
            ": 2-bit and 4-bit integers are never promoted implicitly. Cast explicitly, "
            "for example with x.astype('int32')."
        )
    return text + ": 8-bit floats are never promoted implicitly. Cast explicitly, for example with x.astype('float32')."


def _node(dtype, weak: bool) -> Any:
    if not weak or dtype in BOOL:
        return dtype
    return int if dtype in INTEGER else complex if dtype in COMPLEX else float


def _bound(operands: frozenset, mode: int) -> tuple[Any, bool]:
    """The least upper bound of pairs (dtype, weak), and whether it is weak."""
    if len(operands) == 1:
        return next(iter(operands))
    if all(weak for _, weak in operands) and mode < STRICT:
        # Weak operands keep their widths: weak float16 and weak int32 give weak float16.
        node, weak = _join(frozenset(d for d, _ in operands), mode), True
    else:
        node = _join(frozenset(_node(d, w) for d, w in operands), mode)
        weak = node in _WEAK
    return (_DEFAULT[node][mode & 1] if node in _WEAK else node), weak


_pairs: dict[tuple, tuple[Any, bool]] = {}


def promote_pair(dtype_a, weak_a: bool, dtype_b, weak_b: bool, x64: int) -> tuple[Any, bool]:
    """The dtype of a binary operation, and whether it is weak; `x64` is is_x64(), plus STRICT.

    Example:
        >>> promote_pair(np.dtype("int8"), False, np.dtype("float32"), True, False)
        (dtype('float32'), True)
    """
    if dtype_a is dtype_b and weak_a == weak_b:
        return dtype_a, weak_a
    try:
        return _pairs[dtype_a, weak_a, dtype_b, weak_b, x64]
    except KeyError:
        pair = frozenset({(dtype_a, bool(weak_a)), (dtype_b, bool(weak_b))})
        return _pairs.setdefault((dtype_a, weak_a, dtype_b, weak_b, x64), _bound(pair, int(x64)))


def promote_all(operands, mode: int) -> tuple[Any, bool]:
    """The dtype of an operation on any number of pairs (dtype, weak), and whether it is weak."""
    if len(operands) == 2:
        (a, weak_a), (b, weak_b) = operands
        return promote_pair(a, weak_a, b, weak_b, mode)
    return _bound(frozenset(operands), mode)


def promote_nodes(a, b, mode: int) -> np.dtype:
    """The least upper bound of two dtypes or Python scalar types, of 64 bits if it is weak."""
    node = _join(frozenset({a, b}), mode)
    return _DEFAULT[node][1] if node in _WEAK else node


def default_dtype(kind: type, x64: bool) -> np.dtype:
    """The dtype of a Python scalar type: int32 or int64 for int, bool for bool."""
    return np.dtype("bool") if kind is bool else _DEFAULT[kind][bool(x64)]
