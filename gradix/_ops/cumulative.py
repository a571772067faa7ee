"""Running reductions along an axis: cumsum, cummax, …, and the recurrence of their derivatives."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import merged, undivided
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import abs, max_p, min_p, mul, sub
from gradix._ops.basis import add_any, to_axis
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import eq, ne
from gradix._ops.complex_parts import real
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.cumulative_lowering import emit_recurrence, emit_window
from gradix._ops.indexing.slicing import pad
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.reduction_identities import highest, lowest
from gradix._ops.select import choose
from gradix._ops.transcendental import exp, exp_p

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_WIDE = np.dtype("float32")


def _along(function, x, axis: int, reverse: bool):
    """Apply a function that runs forward along `axis`; in `reverse`, to the flipped array."""
    if not reverse:
        return function(x)
    flip = (slice(None),) * axis + (slice(None, None, -1),)
    return function(x[flip])[flip]


class Cumulative(Primitive):
    """Element i of the result reduces the elements up to i; from i on in `reverse`."""

    def __init__(self, name: str, accumulate, combine, identity, accepts=dtypes.NUMERIC, widen: bool = True):
        super().__init__(name)
        self.accumulate, self.combine, self.identity = accumulate, combine, identity
        self.accepts, self.widen = accepts, widen

    def abstract(self, x, *, axis, reverse):
        if x.dtype not in self.accepts:
            raise TypeError(
                f"{self.name} does not accept dtype {dtypes.dtype_name(x.dtype)}. It runs over "
                f"{'floats' if self.accepts is dtypes.INEXACT else 'numbers'}; convert the operand with "
                ".astype(...) first."
            )
        if axis < 0:
            raise ValueError(
                f"XLA operations do not allow negative axes: {self.name} got axis={axis} for shape "
                f"{x.shape}. Write axis={axis + x.ndim}, or use gradix.numpy."
            )
        if axis >= x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape} in {self.name}")
        return x

    def _is_narrow(self, dtype) -> bool:
        return self.widen and dtype in dtypes.FLOAT and dtype.itemsize < 4

    def host(self, x, *, axis, reverse):
        wide = x.astype(_WIDE) if self._is_narrow(x.dtype) else x
        out = _along(lambda v: self.accumulate(v, axis), wide, axis, reverse)
        return out if out.dtype == x.dtype else out.astype(x.dtype)

    def batch(self, size, args, axes, *, axis, reverse):
        (a,) = axes
        return bind(self, args, {"axis": axis + (axis >= a), "reverse": reverse}), a

    def divide(self, mesh, avals, outs, params):
        return [undivided(self.name, avals[0], (params["axis"],), "the axis of the running result")]

    def lower(self, em, out, x, *, axis, reverse):
        x = self.widened(em, x)
        return em.convert(emit_window(em, x, axis, reverse, self.combine, self.identity(x.aval.dtype)), out.dtype)

    def widened(self, em, x):
        """The operand in the dtype that it is combined in."""
        return em.convert(x, _WIDE) if self._is_narrow(x.aval.dtype) else x


class CumulativeSum(Cumulative):
    mesh = MeshTraits(sums="kept")

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, *, axis, reverse):
        return [bind(self, (ct,), {"axis": axis, "reverse": not reverse})]


class CumulativeDerived(Cumulative):
    """A running reduction with tangents `t'_i = a_i t'_(i-1) + b_i`.

    Subclasses give `a` and `b`.
    """

    def jvp(self, primals, tangents, *, axis, reverse):
        (x,), (t,) = primals, tangents
        y = bind(self, primals, {"axis": axis, "reverse": reverse})
        if t is None or not x.aval.size:
            return y, t
        before = _before(y, self.identity(y.aval.dtype), axis, reverse)
        a, b = self.step(x, y, before, t, axis, reverse)
        return y, recurrence(a, b, axis, reverse)


class CumulativeProduct(CumulativeDerived):
    def step(self, x, y, before, t, axis, reverse):
        return x, mul(t, before)  # d(x_i y_(i-1))


class CumulativeLogSumExp(CumulativeDerived):
    def step(self, x, y, before, t, axis, reverse):
        # weights exp(y_(i-1) - y_i) and exp(x_i - y_i)
        finite = _zero_where_infinite(y, both=True)
        past, now = [exp(sub(_zero_where_infinite(v, both=False), finite)) for v in (before, x)]
        return past, mul(t, now)


class CumulativeExtremum(CumulativeDerived):
    declines = dtypes.COMPLEX

    def host(self, x, *, axis, reverse):
        if x.dtype.kind == "c" and np.isnan(x).any():
            return NotImplemented  # NumPy keeps a NaN, which the comparisons of XLA skip
        return super().host(x, axis=axis, reverse=reverse)

    def step(self, x, y, before, t, axis, reverse):
        place = broadcasted_iota(np.dtype("int32"), x.aval.shape, axis)
        first = scalar_like(place, x.aval.shape[axis] - 1 if reverse else 0)
        tied = bitwise_and(eq(x, before), ne(place, first))
        wins, ties = [convert_element_type(v, x.aval.dtype) for v in (eq(x, y), tied)]
        new = mul(wins, sub(scalar_like(x, 1.0), mul(scalar_like(x, 0.5), ties)))
        return sub(scalar_like(x, 1.0), new), mul(t, new)


def _before(y, identity, axis, reverse):
    """`y` shifted by one place, with `identity` in the first place."""
    config = [(0, 0, 0)] * y.aval.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(y, scalar_like(y, identity.item() if hasattr(identity, "item") else identity), config)


def _zero_where_infinite(x, both: bool):
    real_x = real(x) if x.aval.dtype in dtypes.COMPLEX else x
    size = abs(real_x) if both else real_x
    return choose(eq(size, scalar_like(size, np.inf)), x, scalar_like(x, 0.0))


class Recurrence(Primitive):
    """`y_i = a_i y_(i-1) + b_i` along an axis, from the other end in `reverse`; linear in `b`."""

    mesh = MeshTraits(linear="last")

    def abstract(self, a, b, *, axis, reverse):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise TypeError(f"{self.name} takes two arrays of one type, got {a} and {b}.")
        return b.strip_weak_type()

    def host(self, a, b, *, axis, reverse):
        a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
        out = np.empty_like(b)
        y = 0
        for i in range(len(b) - 1, -1, -1) if reverse else range(len(b)):
            y = out[i] = a[i] * y + b[i] if type(y) is not int else b[i]
        return np.moveaxis(out, 0, axis)

    def jvp(self, primals, tangents, *, axis, reverse):
        a, (ta, tb) = primals[0], tangents
        y = bind(self, primals, {"axis": axis, "reverse": reverse})
        if ta is not None:
            moved = mul(ta, _before(y, np.zeros(()), axis, reverse))
            tb = moved if tb is None else add_any(moved, tb)
        return y, None if tb is None else recurrence(a, tb, axis, reverse)

    def transpose(self, ct, a, b, *, axis, reverse):
        if type(a) is Linear:
            raise self.missing("transpose", "reverse-mode differentiation in the coefficients", "use jvp")
        after = _before(a, np.zeros(()), axis, not reverse)
        return [None, recurrence(after, ct, axis, not reverse)]

    def batch(self, size, args, axes, *, axis, reverse):
        a = next(a for a in axes if a is not None)
        args = [to_axis(size, x, ax, a) for x, ax in zip(args, axes)]
        return bind(self, args, {"axis": axis + (axis >= a), "reverse": reverse}), a

    def divide(self, mesh, avals, outs, params):
        for a in avals:
            undivided(self.name, a, (params["axis"],), "the axis of the recurrence")
        return [merged(self.name, avals, outs[0].shape)]

    def lower(self, em, out, a, b, *, axis, reverse):
        return emit_recurrence(em, a, b, axis, reverse)


def _zero(dtype):
    return 0


def _one(dtype):
    return 1


def _log_accumulate(x, axis):
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis)
    rows = np.moveaxis(x, axis, 0)
    out = np.empty_like(rows)
    for i, row in enumerate(rows):
        out[i] = row if not i else _log_add_complex(out[i - 1], row)
    return np.moveaxis(out, 0, axis)


def _log_add_complex(x, y):
    first = x.real >= y.real
    high, low = np.where(first, x, y), np.where(first, y, x)
    return np.where(np.isinf(high.real), high, high + np.log1p(np.exp(low - high)))


def _emit_log_add(em, x, y):
    aval = x.aval
    if aval.dtype in dtypes.COMPLEX:
        part = make_aval(aval.shape, dtypes.real_dtype(aval.dtype))
        first = em.compare(em.op("real", part, x), em.op("real", part, y), "GE")
        high, low = em.select(first, x, y), em.select(first, y, x)
        size = em.op("abs", part, em.op("real", part, high))
        at_end = em.compare(size, em.constant(np.inf, part), "EQ")
        near = em.op("add", aval, high, _emit_log1p_exp(em, em.op("subtract", aval, low, high)))
        return em.select(at_end, high, near)
    high, gap = em.op("maximum", aval, x, y), em.op("subtract", aval, x, y)
    near = em.op("add", aval, high, _emit_log1p_exp(em, em.op("negate", aval, em.op("abs", aval, gap))))
    # The gap is NaN for inf - inf and for NaN, whose sum is the result.
    return em.select(em.compare(gap, gap, "NE"), em.op("add", aval, x, y), near)


def _emit_log1p_exp(em, x):
    return em.op("log_plus_one", x.aval, em.lower(exp_p, x.aval, x))


cumsum_p = CumulativeSum("cumsum", lambda x, axis: np.add.accumulate(x, axis, x.dtype), "add", _zero)
cumprod_p = CumulativeProduct("cumprod", lambda x, axis: np.multiply.accumulate(x, axis, x.dtype), "multiply", _one)
cummax_p = CumulativeExtremum(
    "cummax", np.maximum.accumulate, lambda em, x, y: max_p.lower(em, x.aval, x, y), lowest, widen=False
)
cummin_p = CumulativeExtremum(
    "cummin", np.minimum.accumulate, lambda em, x, y: min_p.lower(em, x.aval, x, y), highest, widen=False
)
cumlogsumexp_p = CumulativeLogSumExp("cumlogsumexp", _log_accumulate, _emit_log_add, lowest, accepts=dtypes.INEXACT)
recurrence_p = Recurrence("linear_recurrence")


def recurrence(a, b, axis: int, reverse: bool = False):
    """`y_i = a_i y_(i-1) + b_i` along `axis`."""
    return bind(recurrence_p, (a, b), {"axis": axis, "reverse": reverse})


def _cumulative(prim, operand, axis, reverse):
    x = as_operand(prim.name, operand)
    return bind(prim, (x,), {"axis": index(axis), "reverse": bool(reverse)})


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Sums of the elements up to each place along `axis`; from each place on in `reverse`.

    Args:
        operand: an array with one axis at least.
        axis: the axis, which is not negative.
        reverse: begin at the end of the axis.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.cumsum(jnp.array([1.0, 2.0, 3.0]))
        Array([1., 3., 6.], dtype=float32)
    """
    return _cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Products of the elements up to each place along `axis`.

    Args:
        operand: an array with one axis at least.
        axis: the axis, which is not negative.
        reverse: begin at the end of the axis.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.cumprod(jnp.array([1.0, 2.0, 3.0]))
        Array([1., 2., 6.], dtype=float32)
    """
    return _cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The largest element up to each place along `axis`.

    Args:
        operand: an array with one axis at least.
        axis: the axis, which is not negative.
        reverse: begin at the end of the axis.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.cummax(jnp.array([1.0, 3.0, 2.0]))
        Array([1., 3., 3.], dtype=float32)
    """
    return _cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest element up to each place along `axis`.

    Args:
        operand: an array with one axis at least.
        axis: the axis, which is not negative.
        reverse: begin at the end of the axis.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.cummin(jnp.array([2.0, 3.0, 1.0]))
        Array([2., 2., 1.], dtype=float32)
    """
    return _cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """`log(sum(exp(x)))` of the elements up to each place along `axis`, without overflow.

    Args:
        operand: an array with one axis at least.
        axis: the axis, which is not negative.
        reverse: begin at the end of the axis.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.cumlogsumexp(jnp.array([0.0, 0.0]))
        Array([0.       , 0.6931472], dtype=float32)
    """
    return _cumulative(cumlogsumexp_p, operand, axis, reverse)
