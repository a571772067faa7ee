"""Operands of `lax` functions: converted to arrays, and never promoted."""

from __future__ import annotations

from gradix._base.config import state as _options
from gradix._base.errors import NotAValueError
from gradix._core.array import ArrayImpl, as_array, check_number, scalar_array
from gradix._core.operators import Array

_CONVERTERS = (__file__,)


def operands(name: str, *xs):
    """The operands as arrays; a Python number becomes a weakly typed scalar of default width."""
    for x in xs:
        if not isinstance(x, Array):
            return tuple([as_operand(name, x) for x in xs])
    return xs


def arrays(name: str, *xs):
    """The operands as arrays, each converted on its own: structural operations promote nothing."""
    for x in xs:
        if not isinstance(x, Array):
            return tuple([x if isinstance(x, Array) else as_operand(name, x) for x in xs])
    return xs


def as_operand(name: str, x) -> Array:
    if _options.jax_transfer_guard_host_to_device is not None:
        check_number(x, _CONVERTERS)
    try:
        return as_array(x)
    except TypeError as e:
        kind = NotAValueError if isinstance(e, NotAValueError) else TypeError  # of a mutable array
        raise kind(f"{name} requires array or scalar arguments. {e}") from None


def scalar_like(x, value) -> ArrayImpl:
    """A scalar of the dtype and weak type of `x`, to be used beside it."""
    aval = x.aval
    return scalar_array(value, aval.dtype, aval.weak_type)
