"""Primitives and jaxprs, with their parts."""

from gradix._api.tokens import Token as Token
from gradix._base.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    JaxprTypeError as JaxprTypeError,
)
from gradix._control.library_calls import LibraryCall as CallPrimitive, call_impl as call_impl
from gradix._core.aval import AbstractToken as AbstractToken
from gradix._core.checks import (
    am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
    am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
    am_i_under_a_vmap as nonempty_axis_env_DO_NOT_USE,
    axis_names as unsafe_get_axis_names_DO_NOT_USE,
    check_jaxpr as check_jaxpr,
    concrete_or_error as concrete_or_error,
    gensym as gensym,
    get_opaque_trace_state as get_opaque_trace_state,
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
    valid_jaxtype as valid_jaxtype,
)
from gradix._core.current_trace import (
    TraceTag as TraceTag,
    find_top_trace as find_top_trace,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
)
from gradix._core.effects import Effect as Effect, no_effects as no_effects
from gradix._core.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    DebugInfo as DebugInfo,
    DropVar as DropVar,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Var as Var,
    jaxprs_in_params as jaxprs_in_params,
    new_jaxpr_eqn as new_jaxpr_eqn,
    subjaxprs as subjaxprs,
)
from gradix._core.user_primitive import Primitive as Primitive
from gradix._transforms.batch import mapped_aval as mapped_aval, unmapped_aval as unmapped_aval
from gradix._transforms.staging import jaxpr_as_fun as jaxpr_as_fun
from gradix.extend.core import primitives as primitives

Effects = frozenset[Effect]
