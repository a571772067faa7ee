"""The functions that are `ufunc` objects, each with its reductions and updates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradix import lax
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy import arithmetic, cumulative, elementary, extremes, logic, reductions
from gradix.numpy.axes import axes_of
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.selection import where as choose
from gradix.numpy.universal import ufunc
from gradix.numpy.vectorization import vectorize


def _reduce_truth(op, identity: bool):
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        out = op(a, axis, None, keepdims, where=where)
        if initial is not None:
            start = convert(as_operand("reduce", initial), dtypes.as_dtype(bool))
            out = (lax.bitwise_and if identity else lax.bitwise_or)(start, out)
        return out if dtype is None else convert(out, dtypes.requested_dtype(dtype, "reduce"))

    return reduce


def _reduce_extreme(op):
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        if dtype is not None:
            a = convert(as_operand("reduce", a), dtypes.requested_dtype(dtype, "reduce"))
        return op(a, axis, None, keepdims, initial, where)

    return reduce


def _reduce_bits(name: str, op, combine, identity: int):
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        x = as_operand(name, a)
        if dtype is not None:
            x = convert(x, dtypes.requested_dtype(dtype, name))
        own, shape = x.aval.dtype, x.aval.shape
        axes = axes_of(axis, len(shape))
        fill = convert(number(identity, _INT), own)
        if where is not None:
            x = choose(reductions.where_mask(name, where), x, fill)
        out = op(x, axes)
        if initial is not None:
            out = combine(reductions.initial_value(name, initial, own), out)
        return reductions.keep_axes(out, shape, axes) if keepdims else out

    return reduce


_INT = dtypes.as_dtype("int32")
_BOOL = dtypes.as_dtype("bool")


_OF_BOOLS = {"add": "max", "mul": "min"}  # the sum of booleans is "or", and their product "and"


def _at(method: str):
    """The update `a.at[indices].method(b)`."""

    def at(a, indices, b):
        a = as_operand("at", a)
        if method in ("max", "min"):
            a = convert(a, dtypes.result_type(a, b))
        of_bools = _OF_BOOLS.get(method) if {a.aval.dtype, dtypes.dtype_of(b)} == {_BOOL} else None
        return getattr(a.at[indices], of_bools or method)(b)

    return at


if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

    class _Unary(ufunc):
        """The class that type checkers see for ufuncs of one array."""

        def __call__(self, x: ArrayLike, /, *, out: None = None, where: None = None) -> Array: ...  # type: ignore[override]

    class _Binary(ufunc):
        """The class that type checkers see for ufuncs of two arrays with one result."""

        def __call__(  # type: ignore[override]
            self, x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None
        ) -> Array: ...


def _unary(function) -> _Unary:
    made: Any = ufunc(function, nin=1, nout=1)
    return made


def _binary(function, identity=None, **rules) -> _Binary:
    made: Any = ufunc(function, nin=2, nout=1, identity=identity, **rules)
    return made


add = _binary(arithmetic.add, 0, reduce=reductions.sum, accumulate=cumulative.accumulated_sum, at=_at("add"))
multiply = _binary(
    arithmetic.multiply, 1, reduce=reductions.prod, accumulate=cumulative.accumulated_product, at=_at("mul")
)
subtract = _binary(arithmetic.subtract, at=_at("subtract"))
maximum = _binary(arithmetic.maximum, reduce=_reduce_extreme(extremes.max), at=_at("max"))
minimum = _binary(arithmetic.minimum, reduce=_reduce_extreme(extremes.min), at=_at("min"))
negative = _unary(arithmetic.negative)
bitwise_and = _binary(logic.bitwise_and, -1, reduce=_reduce_bits("bitwise_and", lax.reduce_and, lax.bitwise_and, -1))
bitwise_or = _binary(logic.bitwise_or, 0, reduce=_reduce_bits("bitwise_or", lax.reduce_or, lax.bitwise_or, 0))
bitwise_xor = _binary(logic.bitwise_xor, 0, reduce=_reduce_bits("bitwise_xor", lax.reduce_xor, lax.bitwise_xor, 0))
logical_and = _binary(logic.logical_and, True, reduce=_reduce_truth(reductions.all, True))
logical_or = _binary(logic.logical_or, False, reduce=_reduce_truth(reductions.any, False))
logical_xor = _binary(logic.logical_xor, False)
logaddexp = _binary(elementary.logaddexp, -math.inf)
logaddexp2 = _binary(elementary.logaddexp2, -math.inf)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc made of a function of scalars.

    Args:
        func: a function of `nin` scalars with `nout` results; it is vectorized.
        nin: the number of its arguments.
        nout: the number of its results.
        identity: the value with which reductions start, if there is one.

    Returns:
        A `ufunc`, whose results have the dtype of those of `func`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)(jnp.arange(3), 2)
        Array([1, 3, 5], dtype=int32)
    """
    return ufunc(
        func,
        nin,
        nout,
        name=getattr(func, "__name__", None),
        identity=identity,
        call=vectorize(func, excluded=(), signature=None),
    )
