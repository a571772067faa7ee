"""Reductions of an array over axes: sum, prod, max, min, and, or, xor, argmax, argmin.

The primitive of reduce_sum is in `basis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base import config as _config
from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import entries
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, div, max_p, min_p, mul
from gradix._ops.basis import drop_axes, expand_axis, free_axes, reduce_sum as _sum, reduce_sum_p
from gradix._ops.comparison import eq
from gradix._ops.convert import convert_element_type
from gradix._ops.families import NonDifferentiable
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.operands import as_operand
from gradix._ops.reduction_identities import all_bits, highest, lowest
from gradix._ops.shape import squeeze
from gradix._ops.sharding import divided

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_options = _config.state
_HALF = (np.dtype("float16"), np.dtype(dtypes.bfloat16))
_WIDE = np.dtype("float32")

_cumulative = lazy_module("gradix._ops.cumulative")


class Reduction(Primitive):
    """Combine the elements along `axes` by an associative operation."""

    accepts: frozenset

    def __init__(self, name: str, ufunc, hlo: str, identity, accepts: frozenset):
        super().__init__(name)
        self.ufunc, self.hlo, self.identity, self.accepts = ufunc, hlo, identity, accepts
        self._types: BoundedCache[tuple, Any] = BoundedCache(4096)

    def abstract(self, x, *, axes, out_sharding=None):
        found = self._types.get((x, axes))
        if found is None:
            self.check_dtype(x)
            found = make_aval(drop_axes(self.name, x, axes), x.dtype, x.weak_type)
            self._types.keep((x, axes), found)
        return found

    def check_dtype(self, x) -> None:
        if x.dtype not in self.accepts:
            raise TypeError(
                f"{self.name} does not accept dtype {dtypes.dtype_name(x.dtype)}. "
                "Convert the operand with .astype(...) first."
            )

    def host(self, x, *, axes, out_sharding=None):
        if x.size:
            out = self.ufunc.reduce(x, axis=axes)
            # NumPy returns 8-bit integers for 4-bit ones.
            return out if out.dtype == x.dtype else out.astype(x.dtype)
        shape = [n for i, n in enumerate(x.shape) if i not in axes]
        return np.full(shape, self.identity(x.dtype), x.dtype)

    def batch(self, size, args, in_axes, *, axes, **params):
        (x,), (a,) = args, in_axes
        axes = tuple([i + (i >= a) for i in axes])
        return bind(self, (x,), {"axes": axes, **params}), a - sum(i < a for i in axes)

    def divide(self, mesh, avals, outs, params):
        return [tuple([e for i, e in enumerate(entries(avals[0])) if i not in params["axes"]])]

    def lower(self, em, out, x, *, axes, out_sharding=None):
        initial = em.constant(self.identity(out.dtype), make_aval((), out.dtype))
        return em.reduce([x], [initial], axes, [out], self.combine(em, out.dtype))[0]

    def combine(self, em, dtype):
        return self.hlo

    def show(self, params):
        return {"axes": params["axes"]}


_PLACED = frozenset("fdbhilqBHILQ")
# Up to so many elements, argmax and one fetch are quicker than a reduction by comparisons.
_PLACES = 1 << 12


class Extremum(Reduction):
    """reduce_max and reduce_min: a NaN is the result if there is one; ties share the tangent.

    With `drops_nan` a compiled program may ignore NaN, which lets XLA call a library routine. It is
    for a maximum that is only subtracted before exponentials, since these are NaN in any case.
    Lowering adds the flag itself where the equations of a program show such a use.
    """

    declines = dtypes.COMPLEX

    def abstract(self, x, *, axes, drops_nan=False, out_sharding=None):
        return super().abstract(x, axes=axes)

    def specialise(self, x, *, axes, drops_nan=False, out_sharding=None):
        if len(axes) != x.ndim or not 0 < x.size <= _PLACES or x.dtype.char not in _PLACED:
            return None
        return _SHORT_EXTREMA[self.hlo] if x.ndim == 1 else _WHOLE_EXTREMA[self.hlo]

    def host(self, x, *, axes, drops_nan=False, out_sharding=None):
        rule = self.specialise(x, axes=axes)
        if x.dtype.kind == "c" and np.isnan(x).any():
            # Which NaN is the result depends on the order of the comparisons, so leave it to XLA.
            return NotImplemented
        return rule(x) if rule else super().host(x, axes=axes)

    def jvp(self, primals, tangents, *, axes, **params):
        (x,), (t,) = primals, tangents
        y = bind(self, primals, {"axes": axes, **params})
        if t is None or x.aval.dtype not in dtypes.INEXACT:
            return y, None
        wide = y
        for a in sorted(axes):
            wide = expand_axis(wide, a)
        winners = convert_element_type(eq(x, wide), t.aval.dtype)
        return y, div(_sum(mul(t, winners), axes), _sum(winners, axes))

    def lower(self, em, out, x, *, axes, drops_nan=False, out_sharding=None):
        return super().lower(em, out, x, axes=axes)

    def combine(self, em, dtype):
        if dtype.kind != "c":
            return self.hlo
        scalar = make_aval((), dtype)
        p = max_p if self.hlo == "maximum" else min_p
        return lambda x, y: [p.lower(em, scalar, x, y)]


_SHORT_EXTREMA = {"maximum": lambda x: x[x.argmax()], "minimum": lambda x: x[x.argmin()]}
_WHOLE_EXTREMA = {"maximum": lambda x: x.take(x.argmax()), "minimum": lambda x: x.take(x.argmin())}


class Product(Reduction):
    def host(self, x, *, axes, out_sharding=None):
        if x.dtype in dtypes.FLOAT and x.dtype.itemsize < 4:
            return np.multiply.reduce(x, axis=axes, dtype=_WIDE).astype(x.dtype)
        return np.multiply.reduce(x, axis=axes, dtype=x.dtype)

    def jvp(self, primals, tangents, *, axes, **params):
        (x,), (t,) = primals, tangents
        if t is None:
            return bind(self, primals, {"axes": axes, **params}), None
        for a in sorted(axes, reverse=True):
            x, t = _product_along(x, t, a)
        return x, t


def _product_along(x, t, axis: int):
    """Product and tangent along one axis, by halving it, which needs no division by a factor."""
    n = x.aval.shape[axis]
    if n == 0:
        ones = bind(reduce_prod_p, (x,), {"axes": (axis,)})
        return ones, _sum(t, (axis,))
    if type(n) is not int:
        return _product_of_any_size(x, t, axis)
    left = None
    while n > 1:
        half = n // 2
        if n % 2:
            last = _part(x, axis, n - 1, n), _part(t, axis, n - 1, n)
            left = last if left is None else _times(left[0], left[1], last[0], last[1])
        x, t = _times(
            _part(x, axis, 0, half),
            _part(t, axis, 0, half),
            _part(x, axis, half, 2 * half),
            _part(t, axis, half, 2 * half),
        )
        n = half
    if left is not None:
        x, t = _times(x, t, *left)
    return squeeze(x, (axis,)), squeeze(t, (axis,))


def _product_of_any_size(x, t, axis: int):
    """Product and tangent along an axis of symbolic size: each factor's tangent times all others."""
    one = np.ones((), x.aval.dtype)
    shifts = [[(low, -low, 0) if i == axis else (0, 0, 0) for i in range(x.aval.ndim)] for low in (1, -1)]
    before = pad(_cumulative.cumprod(x, axis), one, shifts[0])
    after = pad(_cumulative.cumprod(x, axis, reverse=True), one, shifts[1])
    return bind(reduce_prod_p, (x,), {"axes": (axis,)}), _sum(mul(t, mul(before, after)), (axis,))


def _part(x, axis, start, stop):
    return slice_in_dim(x, start, stop, 1, axis)


def _times(x, tx, y, ty):
    return mul(x, y), add(mul(tx, y), mul(x, ty))


class BitReduction(NonDifferentiable, Reduction):
    """reduce_and, reduce_or and reduce_xor, bit by bit for integers."""

    def specialise(self, x, *, axes, out_sharding=None):
        """Any or all of a whole boolean array, by a count, which is quicker than `reduce`."""
        if x.dtype != bool or len(axes) != x.ndim:
            return None
        return _TRUTHS.get(self.hlo)

    def check_dtype(self, x):
        if x.dtype not in self.accepts:
            raise TypeError(
                "logical reduction requires operand dtype bool or int, got "
                f"{dtypes.dtype_name(x.dtype)} in {self.name}. Compare first, for example x != 0."
            )


_TRUTHS = {"or": lambda x: np.array(np.count_nonzero(x) > 0), "and": lambda x: np.array(np.count_nonzero(x) == x.size)}


def _zero(dtype):
    return 0


def _one(dtype):
    return 1


reduce_max_p = Extremum("reduce_max", np.maximum, "maximum", lowest, dtypes.SUPPORTED)
reduce_min_p = Extremum("reduce_min", np.minimum, "minimum", highest, dtypes.SUPPORTED)
reduce_prod_p = Product("reduce_prod", np.multiply, "multiply", _one, dtypes.NUMERIC)
reduce_and_p = BitReduction("reduce_and", np.bitwise_and, "and", all_bits, dtypes.BITWISE)
reduce_or_p = BitReduction("reduce_or", np.bitwise_or, "or", _zero, dtypes.BITWISE)
reduce_xor_p = BitReduction("reduce_xor", np.bitwise_xor, "xor", _zero, dtypes.BITWISE)


class ArgExtremum(NonDifferentiable, Primitive):
    """The first index of the largest (or smallest) element along an axis; NaN is the extremum."""

    def __init__(self, name: str, find, hlo: str, identity):
        super().__init__(name)
        self.find, self.hlo, self.identity = find, hlo, identity

    def abstract(self, x, *, axes, index_dtype):
        if x.dtype not in dtypes.ORDERED:
            raise TypeError(
                f"{self.name} does not accept dtype {dtypes.dtype_name(x.dtype)}: it has no order. "
                "Give a real dtype, for example the absolute values."
            )
        if index_dtype not in dtypes.INTEGER:
            raise TypeError(f"index_dtype must be an integer type, but got {dtypes.dtype_name(index_dtype)}")
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"Invalid axis {axis} for operand shape {x.shape} in {self.name}: it must be in "
                f"[0, {x.ndim}); gradix.numpy.{self.name} also counts from the end."
            )
        if x.shape[axis] == 0:
            raise ValueError(
                f"argmin and argmax require non-empty reduced dimension. operand.shape={x.shape} axis={axis}"
            )
        dtypes.places_dtype(self.name, x.shape[axis], index_dtype)
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i != axis]), index_dtype)

    def host(self, x, *, axes, index_dtype):
        if x.dtype.isbuiltin != 1:
            x = x.astype(_WIDE if x.dtype in dtypes.FLOAT else np.int32)
        return self.find(x, axis=axes[0]).astype(index_dtype)

    def batch(self, size, args, in_axes, *, axes, index_dtype):
        (x,), (a,), (axis,) = args, in_axes, axes
        axis += axis >= a
        return bind(self, (x,), {"axes": (axis,), "index_dtype": index_dtype}), a - (axis < a)

    def divide(self, mesh, avals, outs, params):
        return [tuple([e for i, e in enumerate(entries(avals[0])) if i not in params["axes"]])]

    def lower(self, em, out, x, *, axes, index_dtype):
        # XLA vectorizes two plain reductions, but not one reduction over (value, index) pairs.
        aval, (axis,) = x.aval, axes
        extreme = make_aval(out.shape, aval.dtype)
        largest, least = (reduce_or_p, reduce_and_p) if aval.dtype == bool else (reduce_max_p, reduce_min_p)
        best = em.lower(largest if self.hlo == "maximum" else least, extreme, x, axes=axes)
        wide = em.broadcast_in_dim(best, make_aval(aval.shape, aval.dtype), free_axes(aval.ndim, axes))
        found = em.compare(x, wide, "EQ")
        if aval.dtype in dtypes.FLOAT:
            found = em.op("or", found.aval, found, em.compare(x, x, "NE"))
        n = aval.shape[axis]
        counter = np.dtype(np.int64 if type(n) is int and n >= 1 << 31 else np.int32)
        indices = make_aval(aval.shape, counter)
        last = em.constant(n - 1, indices) if type(n) is int else em.broadcast(em.number(n - 1, counter), aval.shape)
        candidates = em.select(found, em.iota(indices, axis), last)
        first = em.lower(reduce_min_p, make_aval(out.shape, counter), candidates, axes=axes)
        return em.convert(first, index_dtype)


argmax_p = ArgExtremum("argmax", np.argmax, "maximum", lowest)
argmin_p = ArgExtremum("argmin", np.argmin, "minimum", highest)


# -- faces -----------------------------------------------------------------------------------------


def _reduce(prim, operand, axes, **params):
    x = operand if isinstance(operand, Array) else as_operand(prim.name, operand)
    if type(axes) is not tuple:
        axes = tuple(axes)
    ndim = x.aval.ndim
    for a in axes:
        if type(a) is not int or not 0 <= a < ndim:
            return _reduce(prim, x, _whole_axes(x, axes), **params)
    if len(axes) > 1 and len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    return bind(prim, (x,), {"axes": axes, **params})


def _whole_axes(x, axes) -> tuple:
    whole = tuple([index(a) for a in axes])
    if not all(0 <= a < x.aval.ndim for a in whole):
        raise ValueError(
            f"reduction axes {whole} contains out-of-bounds indices for {x.aval.str_short()}: each must "
            f"be in [0, {x.aval.ndim}). The reductions of gradix.numpy also count axes from the end."
        )
    return whole


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """The sum over `axes`.

    Raises:
        TypeError: the operand is of booleans or random keys.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_sum(jnp.ones((2, 3)), axes=(1,))
        Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return divided(reduce_sum, out_sharding, operand, axes, leaves_sums=_sum_left)
    x = operand if isinstance(operand, Array) else as_operand("reduce_sum", operand)
    if x.aval.dtype not in dtypes.NUMERIC:
        raise TypeError(
            f"reduce_sum does not accept dtype {dtypes.dtype_name(x.aval.dtype)}. Convert the operand to a "
            "numeric dtype with .astype(...) first; gradix.numpy.sum counts booleans."
        )
    if not _options.jax_allow_f16_reductions and x.aval.dtype in _HALF and any(x.aval.shape[a] != 1 for a in axes):
        raise ValueError(
            f"reduce_sum on operand {x.aval.str_short(True)} is not allowed when jax_allow_f16_reductions=False. "
            "Convert it to float32 with .astype(...) first, as gradix.numpy.sum does."
        )
    return _reduce(reduce_sum_p, x, axes)


def _sum_left(sharding, operand, axes) -> Array:
    """The sum over `axes` that is unreduced over mesh axes, as `sharding` says."""
    return _reduce(reduce_sum_p, operand, axes, out_sharding=sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over `axes`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_prod(jnp.array([2.0, 3.0]), axes=(0,))
        Array(6., dtype=float32)
    """
    return _reduce(reduce_prod_p, operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The largest element over `axes`; NaN if any is, and the dtype's lowest value of no elements.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_max(jnp.array([2.0, 3.0]), axes=(0,))
        Array(3., dtype=float32)
    """
    return _reduce(reduce_max_p, operand, axes)


def max_of_numbers(operand, axes):
    """The largest element over `axes`.

    Where one is NaN, the result is either NaN or the largest of the others.
    """
    return _reduce(reduce_max_p, operand, axes, drops_nan=True)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The smallest element over `axes`; NaN if any is, the dtype's highest value if there is none.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_min(jnp.array([2.0, 3.0]), axes=(0,))
        Array(2., dtype=float32)
    """
    return _reduce(reduce_min_p, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether all elements over `axes` are true; for integers, the bitwise and.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_and(jnp.array([True, False]), axes=(0,))
        Array(False, dtype=bool)
    """
    return _reduce(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether any element over `axes` is true; for integers, the bitwise or.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_or(jnp.array([True, False]), axes=(0,))
        Array(True, dtype=bool)
    """
    return _reduce(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether an odd number of elements over `axes` is true; for integers, the bitwise xor.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.reduce_xor(jnp.array([True, True]), axes=(0,))
        Array(False, dtype=bool)
    """
    return _reduce(reduce_xor_p, operand, axes)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The first index of the largest element along `axis`; of the first NaN if there is one.

    Args:
        operand: an array of real numbers or booleans.
        axis: the axis, which the result lacks.
        index_dtype: the integer dtype of the result.

    Raises:
        ValueError: the axis is absent or empty.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.argmax(jnp.array([1.0, 3.0, 3.0]), 0, "int32")
        Array(1, dtype=int32)
    """
    return _arg_reduce(argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The first index of the smallest element along `axis`; of the first NaN if there is one.

    Args:
        operand: an array of real numbers or booleans.
        axis: the axis, which the result lacks.
        index_dtype: the integer dtype of the result.

    Raises:
        ValueError: the axis is absent or empty.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.argmin(jnp.array([1.0, 3.0, 3.0]), 0, "int32")
        Array(0, dtype=int32)
    """
    return _arg_reduce(argmin_p, operand, axis, index_dtype)


def _arg_reduce(prim, operand, axis, index_dtype):
    x = as_operand(prim.name, operand)
    index_dtype = dtypes.requested_dtype(index_dtype, prim.name, stacklevel=4)
    return bind(prim, (x,), {"axes": (index(axis),), "index_dtype": index_dtype})
