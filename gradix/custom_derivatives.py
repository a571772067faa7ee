"""Functions whose derivatives are defined by the user."""

from gradix._api.derivatives.custom_jvp import custom_jvp as custom_jvp
from gradix._api.derivatives.custom_vjp import custom_gradient as custom_gradient, custom_vjp as custom_vjp
from gradix._api.derivatives.linear_call import linear_call as linear_call
from gradix._api.derivatives.symbolic_zeros import (
    CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)
from gradix._api.inspect import closure_convert as closure_convert
from gradix._control.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from gradix._control.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
