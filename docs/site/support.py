"""What a function supports: found by asking it, with arrays of each type, under each transformation."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, NamedTuple

import numpy as np
from public import Name

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._core.primitive import Primitive
from gradix._ops import rule_table

DTYPES = (
    "bool",
    "int8",
    "int32",
    "int64",
    "uint32",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
# Modules of functions of arrays, whose functions may be asked.
ASKED = ("gradix.numpy", "gradix.lax", "gradix.nn", "gradix.scipy")
_SHAPES = ((3, 3), (3,), ())


class Support(NamedTuple):
    """What was found: result dtypes by operand dtype, what each transformation gives, and the primitives of a program."""

    dtypes: dict[str, str]
    transformations: dict[str, bool]
    primitives: tuple[str, ...]


def operands_of(function: Any) -> int:
    """How many arrays a function needs, or 0 if its parameters do not tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.default is p.empty and p.kind is p.KEYWORD_ONLY for p in parameters):
        return 0
    if not needed and type(function).__name__ == "ufunc":
        return function.nin
    return len(needed)


def support_of(name: Name) -> Support | None:
    """What the function does with arrays, or None where a call with arrays alone says nothing of it."""
    if name.kind not in ("function", "value") or not name.home.startswith(ASKED) or not callable(name.value):
        return None
    count = operands_of(name.value)
    if not 1 <= count <= 2:
        return None
    with warnings.catch_warnings(), gradix.enable_x64(True):
        warnings.simplefilter("ignore")
        for shape in _SHAPES:
            found = {d: r for d in DTYPES if (r := _result(name.value, [gradix.ShapeDtypeStruct(shape, d)] * count))}
            if found:
                return Support(
                    found,
                    _transformations(name.value, shape, count, found),
                    _primitives(name.value, shape, count, found),
                )
    return None


def rules_of(name: Name) -> list[tuple[str, dict[str, str]]]:
    """The rows of the table of rules for a primitive, or for a function of `lax` with one of its name."""
    if name.kind == "primitive":
        return [(name.value.name, _row(name.value))]
    own = getattr(lax, f"{name.last}_p", None) if name.home.startswith("gradix.lax") else None
    return [(own.name, _row(own))] if isinstance(own, Primitive) else []


def _row(primitive: Primitive) -> dict[str, str]:
    return dict(zip(rule_table.COLUMNS, rule_table.row(primitive)))


def _result(function: Any, operands: list) -> str:
    """The dtypes of the results, or nothing where the call raises or gives no array."""
    facts = []

    def watched(*xs):
        out = function(*xs)
        facts.append(all(isinstance(leaf, gradix.Array) for leaf in gradix.tree.leaves(out)))
        return out

    try:
        out = gradix.tree.leaves(gradix.eval_shape(watched, *operands))
    except Exception:
        return ""
    return ", ".join(dict.fromkeys(str(leaf.dtype) for leaf in out)) if facts[0] else ""


def _transformations(function: Any, shape: tuple, count: int, found: dict[str, str]) -> dict[str, bool]:
    # A derivative is asked for in a floating type, and so only where the function takes one.
    dtype = next((d for d in ("float32", "float64", "complex64") if d in found), None)
    one = gradix.ShapeDtypeStruct(shape, dtype or next(iter(found)))
    many = gradix.ShapeDtypeStruct((2, *shape), one.dtype)

    def forward(*xs):
        return gradix.jvp(function, xs, xs)

    def reverse(*xs):
        out, pull = gradix.vjp(function, *xs)
        return pull(gradix.tree.map(_cotangent, out))

    asked = {"jit": (gradix.jit(function), one), "vmap": (gradix.vmap(function), many)}
    if dtype:
        asked |= {"jvp": (forward, one), "grad": (reverse, one)}
    return {what: _runs(f, [x] * count) for what, (f, x) in asked.items()}


def _cotangent(out: Any) -> Any:
    if jnp.issubdtype(out.dtype, jnp.inexact):
        return jnp.ones_like(out)
    return np.zeros(out.shape, gradix.float0)


def _runs(function: Any, operands: list) -> bool:
    try:
        gradix.eval_shape(function, *operands)
    except Exception:
        return False
    return True


def _primitives(function: Any, shape: tuple, count: int, found: dict[str, str]) -> tuple[str, ...]:
    dtype = "float32" if "float32" in found else next(iter(found))
    try:
        closed = gradix.make_jaxpr(function)(*[gradix.ShapeDtypeStruct(shape, dtype)] * count)
    except Exception:
        return ()
    seen: dict[str, None] = {}
    _collect(closed.jaxpr, seen)
    return tuple(seen)


def _collect(jaxpr: Any, seen: dict[str, None]) -> None:
    for equation in jaxpr.eqns:
        inner = [getattr(p, "jaxpr", p) for p in equation.params.values() if hasattr(getattr(p, "jaxpr", p), "eqns")]
        if not inner:
            seen[equation.primitive.name] = None
        for body in inner:
            _collect(body, seen)
