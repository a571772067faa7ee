"""Checks of programs, and functions by which libraries query values and traces."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base.errors import ConcretizationTypeError, JaxprTypeError
from gradix._core import dtypes
from gradix._core.array import as_array, is_array_like
from gradix._core.dimensions.expression import larger, smaller
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, jaxprs_in_params
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown, state

if TYPE_CHECKING:
    pass


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that variables are defined once, before their uses, and equations are well typed.

    Raises:
        JaxprTypeError: the program violates this.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> core.check_jaxpr(gradix.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr)
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
    if len(avals) != len(have) or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(avals, have)):
        raise JaxprTypeError(f"Equation {eqn} has results of types {have}, but {prim.name} gives {avals}.")


def is_concrete(x: Any) -> bool:
    """Whether the numbers of a value are known: it is no tracer, or one of derivatives alone.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> known = []
        >>> _ = gradix.jit(lambda x: known.append(core.is_concrete(x)))(1.0)
        >>> known, core.is_concrete(1.0)
        ([False], True)
    """
    return not isinstance(_without_derivatives(x), Tracer)


def _without_derivatives(x):
    """The value of a tracer of derivatives, which may be a tracer of another transformation."""
    while isinstance(x, Tracer) and hasattr(x, "primal"):
        x = x.primal
    return x


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """Apply `force`, such as `int`, to a value that must be known while the program is traced.

    Raises:
        ConcretizationTypeError: the value is traced; `context` is added to the message.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import core
        >>> core.concrete_or_error(int, jnp.int32(3), "The number of steps must be known.")
        3
    """
    val = _without_derivatives(val)
    if is_unknown(val):
        raise ConcretizationTypeError(val, context)
    return val if force is None else force(val)


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` is an array or converts to one.

    Example:
        >>> from gradix import core
        >>> core.valid_jaxtype(1.5), core.valid_jaxtype("text")
        (True, False)
    """
    if not is_array_like(x):
        return False
    try:
        as_array(x)
    except (TypeError, OverflowError):
        return False
    return True


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of derivatives with respect to values of `primal_dtype`: itself, or float0.

    Example:
        >>> import numpy as np
        >>> from gradix import core
        >>> [core.primal_dtype_to_tangent_dtype(np.dtype(t)) for t in ("float32", "int32")]
        [dtype('float32'), dtype([('float0', 'V')])]
    """
    if isinstance(primal_dtype, dtypes.ExtendedDType) or np.dtype(primal_dtype) not in dtypes.INEXACT:
        return dtypes.float0
    return np.dtype(primal_dtype)


def is_constant_dim(d: Any) -> bool:
    """Whether a dimension is a number, not symbolic.

    Example:
        >>> from gradix import core, export
        >>> n, = export.symbolic_shape("n")
        >>> core.is_constant_dim(3), core.is_constant_dim(n)
        (True, False)
    """
    try:
        operator.index(d)
    except (TypeError, ValueError):
        return False
    return not isinstance(d, Array)


def is_constant_shape(shape: Sequence[Any]) -> bool:
    """Whether all sizes of a shape are numbers, and none is symbolic.

    Example:
        >>> from gradix import core, export
        >>> core.is_constant_shape((2, 3)), core.is_constant_shape(export.symbolic_shape("n, 3"))
        (True, False)
    """
    return all(is_constant_dim(d) for d in shape)


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two dimensions; an expression where it is not known which that is.

    Example:
        >>> from gradix import core, export
        >>> n, = export.symbolic_shape("n", constraints=["n >= 4"])
        >>> core.max_dim(2, 3), core.max_dim(n, 3), core.max_dim(n, 5)
        (3, n, max(n, 5))
    """
    return d1 if d1 is d2 else larger(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two dimensions; an expression where it is not known which that is.

    Example:
        >>> from gradix import core, export
        >>> n, = export.symbolic_shape("n", constraints=["n >= 4"])
        >>> core.min_dim(2, 3), core.min_dim(n, 3), core.min_dim(n, 5)
        (2, 3, min(n, 5))
    """
    return d1 if d1 is d2 else smaller(d1, d2)


def trace_state_clean() -> bool:
    """Whether no transformation is active: operations run eagerly, and results may be kept.

    Example:
        >>> trace_state_clean()
        True
    """
    return not state.depth and state.stage is None


def am_i_under_a_jit() -> bool:
    """Whether operations are recorded into a program now.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> seen = []
        >>> _ = gradix.jit(lambda x: seen.append(core.unsafe_am_i_under_a_jit_DO_NOT_USE()))(1.0)
        >>> seen, core.unsafe_am_i_under_a_jit_DO_NOT_USE()
        ([True], False)
    """
    return state.stage is not None


def am_i_under_a_vmap() -> bool:
    """Whether a named axis is bound now.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import core
        >>> seen = []
        >>> def f(x):
        ...     seen.append(core.nonempty_axis_env_DO_NOT_USE())
        ...     return x
        >>> _ = gradix.vmap(f, axis_name="i")(jnp.ones(2))
        >>> seen
        [True]
    """
    return bool(state.axes)


def axis_names() -> list:
    """The named axes bound now.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import core
        >>> seen = []
        >>> def f(x):
        ...     seen.append(core.unsafe_get_axis_names_DO_NOT_USE())
        ...     return x
        >>> _ = gradix.vmap(f, axis_name="i")(jnp.ones(2))
        >>> seen
        [['i']]
    """
    return list(state.axes)


class OpaqueTraceState:
    """The traces that are active now; states taken in the same traces are equal."""

    __slots__ = ("_key",)

    def __init__(self):
        self._key = state.depth, state.stage

    def __eq__(self, other) -> bool:
        return isinstance(other, OpaqueTraceState) and self._key[0] == other._key[0] and self._key[1] is other._key[1]

    def __hash__(self) -> int:
        return hash((self._key[0], id(self._key[1])))


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """A token of the active traces; comparing tokens shows whether the traces are the same.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> outside = core.get_opaque_trace_state()
        >>> same = []
        >>> @gradix.jit
        ... def f(x):
        ...     same.append(core.get_opaque_trace_state() == outside)
        ...     return x
        >>> _ = f(1.0)
        >>> same, core.get_opaque_trace_state() == outside
        ([False], True)
    """
    return OpaqueTraceState()


def gensym() -> Any:
    """A function that makes a new variable of the type it is given.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> new = core.gensym()
        >>> new(gradix.typeof(1.0)).aval
        ShapedArray(float32[], weak_type=True)
    """
    return Var
