"""Elements in another type: convert_element_type, bitcast_convert_type, reduce_precision."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.array import ArrayImpl, folded, scalar_array
from gradix._core.aval import located, make_aval
from gradix._core.divisions import entries, undivided
from gradix._core.dtypes import BOOL, COMPLEX, FLOAT, INEXACT, INTEGER, NARROW_INTEGER
from gradix._core.operators import Array
from gradix._core.primitive import MeshTraits
from gradix._core.trace import bind
from gradix._ops.basis import transpose as permute
from gradix._ops.canonicalization import memoised
from gradix._ops.families import Elementwise, NonDifferentiable, Structural
from gradix._ops.operands import arrays, as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike

# -- convert_element_type --------------------------------------------------------------------------

_WHOLE_WORDS = {np.dtype(t): np.iinfo(t).min for t in (np.int32, np.int64)}


def to_int(x, dtype):
    """Floats to integers as XLA converts them: truncated, clamped to the range, NaN to 0."""
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    # The processor returns the least integer for values that do not fit, else the right one.
    if dtype in _WHOLE_WORDS:
        y = x.astype(dtype)
        if not np.count_nonzero(y == _WHOLE_WORDS[dtype]):
            return y
    info = dtypes.iinfo(dtype)
    low, end = float(info.min), float(info.max) + 1.0
    if dtype in NARROW_INTEGER:
        return np.clip(np.nan_to_num(x), low, end - 1.0).astype(np.int8).astype(dtype)
    y = x.astype(dtype)
    inside = (x >= low) & (x < end)
    if inside.all():
        return y
    return np.where(inside, y, np.where(x >= end, info.max, np.where(x < low, info.min, 0)).astype(dtype))


@memoised
def converter(source, target):
    """A function from arrays of dtype `source` to arrays of dtype `target`."""
    if source in COMPLEX and target not in COMPLEX:
        real = converter(dtypes.real_dtype(source), target)
        return lambda x: real(x.real)
    if target in BOOL:
        return lambda x: x != 0
    if source in FLOAT and target in INTEGER:
        return lambda x: to_int(x, target)
    if target in NARROW_INTEGER and source in INTEGER:
        bits = dtypes.itemsize_bits(target)
        if target in dtypes.SIGNED:  # keep the low bits, then extend the sign
            return lambda x: ((x.astype(np.int8) << (8 - bits)) >> (8 - bits)).astype(target)
        return lambda x: (x.astype(np.uint8) & np.uint8(2**bits - 1)).astype(target)
    if dtypes.itemsize_bits(source) == 64 and dtypes.itemsize_bits(target) < 16 and target in FLOAT:
        return lambda x: x.astype(np.float32).astype(target)
    return lambda x: x.astype(target)


class ConvertElementType(Structural):
    """Each element's value in another dtype."""

    takes_sharding = True
    silent = False
    live = "elements"
    mesh = MeshTraits(sums="kept")
    formula = "simple"

    @memoised
    def abstract(self, x, *, new_dtype, weak_type):
        if dtypes.is_extended(x.dtype) != dtypes.is_extended(new_dtype):
            raise ValueError(
                f"Cannot convert_element_type from {x.dtype} to {new_dtype}. Random keys convert to no "
                "other dtype; gradix.random.key_data and wrap_key_data give and take their words."
            )
        return make_aval(x.shape, new_dtype, weak_type)

    def specialise(self, x, *, new_dtype, weak_type):
        return None if x.dtype is new_dtype or dtypes.is_extended(new_dtype) else converter(x.dtype, new_dtype)

    def host(self, x, *, new_dtype, weak_type):
        return x if x.dtype is new_dtype or dtypes.is_extended(new_dtype) else converter(x.dtype, new_dtype)(x)

    def jvp(self, primals, tangents, *, new_dtype, weak_type):
        (x,), (t,) = primals, tangents
        y = convert(x, new_dtype, weak_type)
        return y, None if t is None or new_dtype not in INEXACT else convert(t, new_dtype, weak_type)

    def transpose(self, ct, x, *, new_dtype, weak_type):
        return [convert(ct, x.aval.dtype, x.aval.weak_type)]

    def batch(self, size, args, axes, *, new_dtype, weak_type):
        return convert(args[0], new_dtype, weak_type), axes[0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, *, new_dtype, weak_type):
        if x.aval.dtype in COMPLEX and new_dtype not in COMPLEX:
            x = em.op("real", make_aval(out.shape, dtypes.real_dtype(x.aval.dtype)), x)
        return em.convert(x, new_dtype)


# -- bitcast_convert_type --------------------------------------------------------------------------


class BitcastConvertType(NonDifferentiable, Structural):
    """The same bits as another type; between widths the last axis is split or joined."""

    @memoised
    def abstract(self, x, *, new_dtype):
        if x.dtype == new_dtype:
            return x.strip_weak_type()
        if not {x.dtype, new_dtype}.isdisjoint(BOOL | COMPLEX):
            raise TypeError(
                "lax.bitcast_convert_type does not support bool or complex values unless the operand and "
                f"destination types match. Got operand dtype={x.dtype}, new_dtype={new_dtype}. "
                "x.view(dtype) of an array does."
            )
        old, new = _bits(x.dtype), _bits(new_dtype)
        shape = x.shape
        if old > new:
            shape = (*shape, old // new)
        elif old < new:
            if not shape or shape[-1] * old != new:
                raise ValueError(
                    f"Attempting to convert array of shape {shape} from {x.dtype} of size {old} bits to "
                    f"{new_dtype} of size {new} bits, but the last axis must hold {new // old} elements."
                )
            shape = shape[:-1]
        return make_aval(shape, new_dtype, False)

    def host(self, x, *, new_dtype):
        old, new = _bits(x.dtype), _bits(new_dtype)
        if old == new:
            return x.view(new_dtype)
        if min(old, new) < 8:
            return _join_bits(x, old, new_dtype) if old < new else _split_bits(x, new, new_dtype)
        if old > new:
            return np.ascontiguousarray(x).reshape(*x.shape, 1).view(new_dtype)
        return np.ascontiguousarray(x).view(new_dtype)[..., 0]

    def batch(self, size, args, axes, *, new_dtype):
        (x,), (a,) = args, axes
        if a == x.aval.ndim - 1 and x.aval.ndim > 1:
            x, a = _first(x, a), 0
        return bind(self, (x,), {"new_dtype": new_dtype}), a

    def divide(self, mesh, avals, outs, params):
        x, out = avals[0], outs[0]
        row = undivided(self.name, x, range(out.ndim, x.ndim), "the axis of an element's parts")
        return [(*row[: out.ndim], *[None] * (out.ndim - x.ndim))]

    def lower(self, em, out, x, *, new_dtype):
        return em.bitcast(x, out)


def _first(x, axis):
    return permute(x, (axis, *[i for i in range(x.aval.ndim) if i != axis]))


def _bits(dtype) -> int:
    return dtypes.itemsize_bits(dtypes.physical_dtype(dtype))


def _split_bits(x, new, dtype):
    """Split elements of at least a byte into elements of fewer bits, the low bits first."""
    octets = np.ascontiguousarray(x)[..., None].view(np.uint8)
    parts = (octets[..., None] >> np.arange(0, 8, new, dtype=np.uint8)) & np.uint8(2**new - 1)
    return parts.reshape(*x.shape, -1).view(dtype)


def _join_bits(x, old, dtype):
    parts = (x.view(np.uint8) & np.uint8(2**old - 1)).reshape(*x.shape[:-1], -1, 8 // old)
    octets = np.bitwise_or.reduce(parts << np.arange(0, 8, old, dtype=np.uint8), axis=-1)
    return np.ascontiguousarray(octets).view(dtype)[..., 0]


# -- reduce_precision ------------------------------------------------------------------------------


def _round_to(x, *, exponent_bits, mantissa_bits):
    """Round to nearest even at `mantissa_bits`; on overflow to infinity, on underflow to zero."""
    info = dtypes.finfo(x.dtype)
    words = np.dtype(f"u{x.dtype.itemsize}")
    bits, one, sign = x.view(words), words.type(1), words.type(1 << (info.bits - 1))
    kept = bits
    if mantissa_bits < info.nmant:
        drop = info.nmant - mantissa_bits
        last, cut = (bits >> words.type(drop)) & one, words.type((1 << drop) - 1)
        kept = (bits + last + words.type((1 << (drop - 1)) - 1)) & ~cut
    if exponent_bits < info.bits - 1 - info.nmant:
        bias, reach = (1 << (info.bits - 2 - info.nmant)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = (kept & ~sign) >> words.type(info.nmant)
        infinite = words.type(((1 << (info.bits - 1 - info.nmant)) - 1) << info.nmant)
        kept = np.where(exponent > bias + reach, (kept & sign) | infinite, kept)
        kept = np.where(exponent <= bias - reach, kept & sign, kept)
    return np.where(np.isnan(x), x, np.asarray(kept, words).view(x.dtype))


class ReducePrecision(Elementwise):
    """Rounds each element to a smaller floating-point format; its derivative does so, too."""

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tangents, params)

    def transpose(self, ct, x, **params):
        return [bind(self, (ct,), params)]

    def lower(self, em, out, x, *, exponent_bits, mantissa_bits):
        attrs = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
        y = em.op("reduce_precision", x.aval, x, attrs=attrs)
        # Without a mantissa NaN would become infinite.
        return y if mantissa_bits else em.select(em.compare(x, x, "NE"), x, y)


convert_element_type_p = ConvertElementType("convert_element_type")
bitcast_convert_type_p = BitcastConvertType("bitcast_convert_type")
# It is rounding, and so no less exact for summands than for their sum.
reduce_precision_p = ReducePrecision(
    "reduce_precision", _round_to, hlo="reduce_precision", dtypes=FLOAT, mesh=MeshTraits(sums="kept")
)


def convert(x, dtype, weak_type: bool = False):
    """An array in another dtype; `x` itself when its type is the one asked for."""
    aval = x.aval
    if aval.dtype is dtype or aval.dtype == dtype:
        if aval.weak_type == weak_type:
            return x
        if type(x) is ArrayImpl and x._buffer is None:
            new = ArrayImpl(x._host, located(make_aval(aval.shape, dtype, weak_type), aval.place))
            if aval.shape or folded(x, new):
                return new
    elif (
        type(x) is ArrayImpl
        and not aval.shape
        and x._host is not None
        and not dtypes.is_extended(dtype)
        and not dtypes.is_extended(aval.dtype)
    ):
        # A known scalar stays a literal of the program: constants fold while tracing.
        with np.errstate(all="ignore"):
            known = np.asarray(converter(aval.dtype, dtype)(x._host))
        new = ArrayImpl(known, located(make_aval((), dtype, weak_type), aval.place))
        if folded(x, new):
            return new
    return bind(convert_element_type_p, (x,), {"new_dtype": dtype, "weak_type": weak_type})


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """`operand` with its elements converted to `new_dtype`.

    Floats become integers by truncation; NaN becomes 0, and values out of range become the nearest
    integer. Complex numbers lose their imaginary part. Every number except 0 becomes True.

    Raises:
        ValueError: `new_dtype` is None.

    Example:
        >>> from gradix import lax
        >>> lax.convert_element_type(2.7, "int32")
        Array(2, dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified: convert_element_type(x, 'float32'), for example.")
    dtype = dtypes.requested_dtype(new_dtype, "convert_element_type")
    return convert(operand if isinstance(operand, Array) else _from_python(operand, dtype), dtype)


def _from_python(x, dtype) -> Array:
    """A Python number in a dtype, which may be wider than the default integer dtype."""
    if type(x) is int and dtype in INTEGER:
        return scalar_array(_wrapped(x, dtype), dtype, False)
    if type(x) is int and abs(x) >> 31 and dtype in INEXACT:
        return scalar_array(float(x), dtype, False)
    return as_operand("convert_element_type", x)


def _wrapped(x: int, dtype) -> int:
    info = dtypes.iinfo(dtype)
    low, span = int(info.min), int(info.max) - int(info.min) + 1
    return (x - low) % span + low


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of `operand` read as elements of `new_dtype`.

    A wider dtype joins the elements of the last axis, a narrower one adds an axis.

    Example:
        >>> from gradix import lax
        >>> lax.bitcast_convert_type(1.0, "int32")
        Array(1065353216, dtype=int32)
    """
    (operand,) = arrays("bitcast_convert_type", operand)
    return bind(
        bitcast_convert_type_p, (operand,), {"new_dtype": dtypes.requested_dtype(new_dtype, "bitcast_convert_type")}
    )


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """`operand` rounded to floats of `exponent_bits` and `mantissa_bits`, in its own dtype.

    Args:
        operand: floating-point numbers of any shape.
        exponent_bits: the bits of the exponent; numbers too large become infinite.
        mantissa_bits: the bits of the fraction.

    Raises:
        ValueError: `exponent_bits` is not positive, or `mantissa_bits` negative.

    Example:
        >>> from gradix import lax
        >>> lax.reduce_precision(3.14159, 5, 3)
        Array(3.25, dtype=float32, weak_type=True)
    """
    (operand,) = arrays("reduce_precision", operand)
    exponent_bits, mantissa_bits = index(exponent_bits), index(mantissa_bits)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    return bind(reduce_precision_p, (operand,), {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits})
