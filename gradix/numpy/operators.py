"""The operators of arrays: `x + y`, `x < y`, `x @ y`, ... and their reflected forms."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix._base.config import state
from gradix._base.tracebacks import filter_frames
from gradix._core import dtypes
from gradix._core.array import check_number
from gradix._core.dtypes import COMPLEX, INEXACT, INTEGER, NUMERIC, SIGNED, SUPPORTED
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix.numpy import arithmetic, division, logic, products
from gradix.numpy.promotion import BESIDE, number

_OPERANDS = (Array, int, float, complex, np.ndarray, np.generic)
_FITTING_WEAK = (
    frozenset(map(np.dtype, ("int32", "float32", "complex64"))),
    frozenset(map(np.dtype, ("int64", "float64", "complex128"))),
)


def _operand(x):
    """`x`, or what its `__jax_array__` gives, which may be NotImplemented, as for other objects."""
    if isinstance(x, _OPERANDS):
        return x
    convert = getattr(x, "__jax_array__", None)
    return NotImplemented if convert is None else convert()


def _named(method, name: str, doc: str | None):
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    method.__doc__ = doc
    return method


def _keeps_weak(dtype) -> bool:
    """Whether a weakly typed array keeps this dtype beside a Python number that fits it."""
    return dtype in _FITTING_WEAK[state.jax_enable_x64]


def _forward(name: str, prim, function, direct: frozenset):
    """`self op other`; it applies `prim` at once to operands of one type, or to a number that fits."""

    def method(self, other):
        try:
            a = self.aval
            if isinstance(other, Array):
                if a is other.aval and a.dtype in direct:
                    return bind(prim, (self, other), {})
                return function(self, other)
            kinds = BESIDE.get(type(other))
            if kinds is not None:
                if state.jax_transfer_guard_host_to_device is not None:
                    check_number(other, ())
                dtype = a.dtype
                if dtype in kinds and dtype in direct and (not a.weak_type or _keeps_weak(dtype)):
                    return bind(prim, (self, number(other, dtype, a.weak_type)), {})
            elif (other := _operand(other)) is NotImplemented:
                return NotImplemented
            return function(self, other)
        except Exception as error:
            filter_frames(error)
            raise

    return _named(method, f"__{name}__", function.__doc__)


def _reflected(name: str, prim, function, direct: frozenset):
    """`other op self`, where `other` is not an `Array`."""

    def method(self, other):
        kinds = BESIDE.get(type(other))
        if kinds is not None:
            if state.jax_transfer_guard_host_to_device is not None:
                check_number(other, ())
            a = self.aval
            dtype = a.dtype
            if dtype in kinds and dtype in direct and (not a.weak_type or _keeps_weak(dtype)):
                return bind(prim, (number(other, dtype, a.weak_type), self), {})
        elif (other := _operand(other)) is NotImplemented:
            return NotImplemented
        return function(other, self)

    return _named(method, f"__r{name}__", function.__doc__)


def _equality(name: str, prim, function, symbol: str):
    """`==` or `!=`; objects that are not arrays are unequal, and lists are refused as a mistake."""
    forward = _forward(name, prim, function, SUPPORTED)

    def method(self, other):
        if state.jax_transfer_guard_host_to_device is not None:
            check_number(other, ())
        out = forward(self, other)
        if out is NotImplemented and isinstance(other, (list, tuple)):
            raise TypeError(
                f"x {symbol} y compares an array with arrays and numbers, got a "
                f"{type(other).__name__}. Write jnp.array(...) around it."
            )
        return out

    return _named(method, f"__{name}__", function.__doc__)


def _unary(name: str, function):
    def method(self):
        return function(self)

    return _named(method, f"__{name}__", function.__doc__)


def _neg(self):
    return bind(lax.neg_p, (self,), {})


def _pow(self, other, modulo=None):
    if modulo is not None:
        raise TypeError(f"pow(x, y, {modulo!r}): arrays take no modulo. Write (x ** y) % modulo.")
    t, a = type(other), self.aval
    if t is int and a.dtype in NUMERIC:
        return lax.integer_pow(self, other)
    if state.jax_transfer_guard_host_to_device is not None:
        check_number(other, ())
    if t is float and a.dtype in INEXACT and not a.weak_type:
        return lax.pow(self, number(other, a.dtype))
    return NotImplemented if (x := _operand(other)) is NotImplemented else arithmetic.power(self, x)


def _rpow(self, other, modulo=None):
    if state.jax_transfer_guard_host_to_device is not None:
        check_number(other, ())
    return NotImplemented if (x := _operand(other)) is NotImplemented else arithmetic.power(x, self)


def _matmul(self, other):
    if isinstance(other, Array):
        a, b = self.aval, other.aval
        if a.ndim == 2 and b.ndim == 2 and a.dtype is b.dtype and not (a.weak_type or b.weak_type):
            try:
                return lax._dot_general(self, other, products.MATRICES, None, a.dtype)
            except TypeError:
                pass  # `matmul` raises an error with the user's shapes.
        return products.matmul(self, other)
    return NotImplemented if (x := _operand(other)) is NotImplemented else products.matmul(self, x)


def _rmatmul(self, other):
    return NotImplemented if (x := _operand(other)) is NotImplemented else products.matmul(x, self)


_REAL = SUPPORTED - COMPLEX
_BITS = dtypes.INTEGER | dtypes.BOOL
_NONE: frozenset = frozenset()

# The values are a primitive, a function of this package, and the dtypes for which they agree.
_ARITHMETIC = {
    "add": (lax.add_p, arithmetic.add, NUMERIC),
    "sub": (lax.sub_p, arithmetic.subtract, NUMERIC),
    "mul": (lax.mul_p, arithmetic.multiply, NUMERIC),
    "truediv": (lax.div_p, division.true_divide, INEXACT),
    "floordiv": (None, division.floor_divide, _NONE),
    "mod": (None, division.remainder, _NONE),
    "divmod": (None, division.divmod, _NONE),
    "and": (lax.and_p, logic.bitwise_and, _BITS),
    "or": (lax.or_p, logic.bitwise_or, _BITS),
    "xor": (lax.xor_p, logic.bitwise_xor, _BITS),
    "lshift": (lax.shift_left_p, logic.left_shift, INTEGER),
    "rshift": (lax.shift_right_arithmetic_p, logic.right_shift, SIGNED),
}
_COMPARISONS = {
    "lt": (lax.lt_p, logic.less),
    "le": (lax.le_p, logic.less_equal),
    "gt": (lax.gt_p, logic.greater),
    "ge": (lax.ge_p, logic.greater_equal),
}

OPERATORS = {
    **{f"__{n}__": _forward(n, *row) for n, row in _ARITHMETIC.items()},
    **{f"__r{n}__": _reflected(n, *row) for n, row in _ARITHMETIC.items()},
    **{f"__{n}__": _forward(n, *row, _REAL) for n, row in _COMPARISONS.items()},
    "__eq__": _equality("eq", lax.eq_p, logic.equal, "=="),
    "__ne__": _equality("ne", lax.ne_p, logic.not_equal, "!="),
    "__pow__": _named(_pow, "__pow__", arithmetic.power.__doc__),
    "__rpow__": _named(_rpow, "__rpow__", arithmetic.power.__doc__),
    "__matmul__": _named(_matmul, "__matmul__", "The matrix product."),
    "__rmatmul__": _named(_rmatmul, "__rmatmul__", "The matrix product `other @ self`."),
    "__neg__": _named(_neg, "__neg__", arithmetic.negative.__doc__),
    "__pos__": _unary("pos", arithmetic.positive),
    "__abs__": _unary("abs", arithmetic.absolute),
    "__invert__": _unary("invert", logic.invert),
}
