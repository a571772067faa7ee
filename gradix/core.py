"""The parts of programs and traces; see also `gradix.extend.core`."""

from typing import Any

import numpy as _np

from gradix._api.inspect import (
    ensure_compile_time_eval as ensure_compile_time_eval,
    eval_context as eval_context,
    eval_jaxpr as eval_jaxpr,
)
from gradix._base.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    JaxprTypeError as JaxprTypeError,
)
from gradix._base.listing import own_names as _own_names
from gradix._core.array import typeof as _typeof
from gradix._core.aval import (
    AbstractValue as AbstractValue,
    ShapedArray as ShapedArray,
    abstract_token as abstract_token,
)
from gradix._core.checks import (
    am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
    am_i_under_a_vmap as nonempty_axis_env_DO_NOT_USE,
    am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
    axis_names as unsafe_get_axis_names_DO_NOT_USE,
    check_jaxpr as check_jaxpr,
    concrete_or_error as concrete_or_error,
    gensym as gensym,
    get_opaque_trace_state as get_opaque_trace_state,
    is_concrete as is_concrete,
    is_constant_dim as is_constant_dim,
    is_constant_shape as is_constant_shape,
    max_dim as max_dim,
    min_dim as min_dim,
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
    valid_jaxtype as valid_jaxtype,
)
from gradix._core.current_trace import find_top_trace as find_top_trace
from gradix._core.effects import Effect as Effect, no_effects as no_effects
from gradix._core.jaxpr import (
    DebugInfo as DebugInfo,
    DropVar as DropVar,
    Literal as _Literal,
    Var as _Var,
    jaxprs_in_params as jaxprs_in_params,
    new_jaxpr_eqn as new_jaxpr_eqn,
)
from gradix._core.library_values import ClassRules as _ClassRules, converters as _converters, types as _types
from gradix._core.trace import Trace as Trace, Tracer as Tracer

Atom = _Var | _Literal
Effects = frozenset[Effect]
ParamDict = dict[str, Any]
Value = Any

# A library makes its class array-like by `pytype_aval_mappings[Class] =
# pytype_aval_mappings[numpy.ndarray]`.
pytype_aval_mappings = _ClassRules(_types, _typeof, lambda cls: _converters.setdefault(cls, _np.asarray))

__all__ = [
    "AbstractValue",
    "Atom",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "JaxprTypeError",
    "ParamDict",
    "ShapedArray",
    "Trace",
    "Tracer",
    "Value",
    "abstract_token",
    "check_jaxpr",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "is_concrete",
    "is_constant_dim",
    "is_constant_shape",
    "jaxprs_in_params",
    "max_dim",
    "min_dim",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "pytype_aval_mappings",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]


__dir__ = _own_names(__name__)
