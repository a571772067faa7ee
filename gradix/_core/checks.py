"""Checks of programs, and functions by which libraries query values and traces."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradix._base.errors import ConcretizationTypeError, JaxprTypeError
from gradix._core import dtypes
from gradix._core.array import as_array, is_array_like
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, jaxprs_in_params
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown, state


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that variables are defined once, before their uses, and equations are well typed.

    Raises:
        JaxprTypeError: the program violates this.
    """
    program = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    known: dict[Any, Any] = {}
    for v in (*program.constvars, *program.invars):
        _define(v, known, "an input")
    for eqn in program.eqns:
        _check_equation(eqn, known)
        for v in eqn.outvars:
            _define(v, known, f"a result of {eqn.primitive.name}")
    for v in program.outvars:
        _check_read(v, known, "the program's results")
    for eqn in program.eqns:
        if not eqn.effects <= program.effects:
            raise JaxprTypeError(
                f"Equation effects are not a subset of the program's: {set(eqn.effects)} of {eqn} and "
                f"{set(program.effects)}."
            )


def _define(var, known, what: str) -> None:
    if var in known:
        raise JaxprTypeError(f"Variable {var} is defined twice: as {known[var]} and as {what}.")
    known[var] = what


def _check_read(var, known, where: str) -> None:
    if not isinstance(var, Literal) and var not in known:
        raise JaxprTypeError(f"Variable {var} in {where} is not defined before it is read.")


def _check_equation(eqn, known) -> None:
    for v in eqn.invars:
        _check_read(v, known, f"equation {eqn}")
    for inner in jaxprs_in_params(eqn.params):
        check_jaxpr(inner)
    prim = eqn.primitive
    out = prim.abstract(*[v.aval for v in eqn.invars], **eqn.params)
    avals = list(out) if prim.multiple_results else [out]
    have = [v.aval for v in eqn.outvars]
    if len(avals) != len(have) or any(
        a.shape != b.shape or a.dtype != b.dtype for a, b in zip(avals, have)
    ):
        raise JaxprTypeError(
            f"Equation {eqn} has results of types {have}, but {prim.name} gives {avals}."
        )


def is_concrete(x) -> bool:
    """Whether the numbers of a value are known: it is no tracer, or one of derivatives alone."""
    return not isinstance(_without_derivatives(x), Tracer)


def _without_derivatives(x):
    """The value of a tracer of derivatives, which may be a tracer of another transformation."""
    while isinstance(x, Tracer) and hasattr(x, "primal"):
        x = x.primal
    return x


def concrete_or_error(force, val, context: str = ""):
    """Apply `force`, such as `int`, to a value that must be known while the program is traced.

    Raises:
        ConcretizationTypeError: the value is traced; `context` is added to the message.
    """
    val = _without_derivatives(val)
    if is_unknown(val):
        raise ConcretizationTypeError(val, context)
    return val if force is None else force(val)


def valid_jaxtype(x) -> bool:
    """Whether `x` is an array or converts to one."""
    if not is_array_like(x):
        return False
    try:
        as_array(x)
    except (TypeError, OverflowError):
        return False
    return True


def primal_dtype_to_tangent_dtype(primal_dtype):
    """The dtype of derivatives with respect to values of `primal_dtype`: itself, or float0."""
    if (
        isinstance(primal_dtype, dtypes.ExtendedDType)
        or np.dtype(primal_dtype) not in dtypes.INEXACT
    ):
        return dtypes.float0
    return np.dtype(primal_dtype)


def is_constant_dim(d) -> bool:
    """Whether a dimension is a number, not symbolic."""
    try:
        operator.index(d)
    except (TypeError, ValueError):
        return False
    return not isinstance(d, Array)


def is_constant_shape(shape) -> bool:
    """Whether all sizes of a shape are numbers, and none is symbolic."""
    return all(is_constant_dim(d) for d in shape)


def max_dim(d1, d2):
    """The larger of two dimensions."""
    return d1 if d1 is d2 or (d1 >= d2) else d2


def min_dim(d1, d2):
    """The smaller of two dimensions."""
    return d1 if d1 is d2 or (d1 <= d2) else d2


def trace_state_clean() -> bool:
    """Whether no transformation is active: operations run eagerly, and results may be kept.

    Example:
        >>> trace_state_clean()
        True
    """
    return not state.depth and state.stage is None


def am_i_under_a_jit() -> bool:
    """Whether operations are recorded into a program now."""
    return state.stage is not None


def am_i_under_a_vmap() -> bool:
    """Whether a named axis is bound now."""
    return bool(state.axes)


def axis_names() -> list:
    """The named axes bound now."""
    return list(state.axes)


class OpaqueTraceState:
    """The traces that are active now; states taken in the same traces are equal."""

    __slots__ = ("_key",)

    def __init__(self):
        self._key = state.depth, state.stage

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, OpaqueTraceState)
            and self._key[0] == other._key[0]
            and self._key[1] is other._key[1]
        )

    def __hash__(self) -> int:
        return hash((self._key[0], id(self._key[1])))


def get_opaque_trace_state(convention=None) -> OpaqueTraceState:
    """A token of the active traces; comparing tokens shows whether the traces are the same."""
    return OpaqueTraceState()


def gensym():
    """A function that makes a new variable of the type it is given."""
    return Var
