"""clamp: each element limited to lie between two bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import merged
from gradix._core.dtypes import BOOL, COMPLEX, INEXACT, NUMERIC
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import add_any, broadcast_in_dim, broadcast_to, to_axis
from gradix._ops.bitwise import bitwise_and
from gradix._ops.canonicalization import memoised
from gradix._ops.comparison import gt, lt
from gradix._ops.families import spread
from gradix._ops.operands import arrays, scalar_like
from gradix._ops.select import choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class Clamp(Primitive):
    """min(max(x, low), high); the bounds are scalars or of the operand's shape."""

    @memoised
    def abstract(self, low, x, high):
        if not low.dtype == x.dtype == high.dtype:
            raise TypeError(
                "lax.clamp requires arguments to have the same dtypes, got "
                f"{', '.join([dtypes.dtype_name(a.dtype) for a in (low, x, high)])}. "
                "gradix.numpy.clip promotes them."
            )
        if x.dtype not in BOOL and x.dtype not in NUMERIC:
            raise TypeError(f"clamp does not accept dtype {dtypes.dtype_name(x.dtype)}.")
        for name, a in (("min", low), ("max", high)):
            if a.shape and a.shape != x.shape:
                raise TypeError(
                    f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                    f"{name}.shape={a.shape}, operand.shape={x.shape}. gradix.numpy.clip broadcasts."
                )
        return make_aval(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)

    def host(self, low, x, high):
        # Compare by the real parts. On equality, take the lower bound, but not the upper one.
        if x.dtype.kind == "c":
            x = np.where(low.real >= x.real, low, x)
            return np.where(x.real <= high.real, x, high)
        return np.minimum(np.maximum(x, low), high)

    def jvp(self, primals, tangents):
        low, x, high = primals
        out = bind(self, primals, {})
        if out.aval.dtype in COMPLEX:
            raise self.missing("jvp", "differentiation of complex operands", "clamp their real and imaginary parts")
        if out.aval.dtype not in INEXACT:
            return out, None
        # The tangent of an element is that of the operand that it equals; on a bound x gets none.
        inside = (lambda: gt(low, x), lambda: bitwise_and(gt(x, low), lt(x, high)), lambda: lt(high, x))
        total = None
        for where, t in zip(inside, tangents):
            if t is None:
                continue
            if t.aval.shape != out.aval.shape:
                t = broadcast_to(t, out.aval.shape)
            part = choose(where(), scalar_like(t, 0), t)
            total = part if total is None else add_any(total, part)
        return out, total

    def batch(self, size, args, axes):
        low, x, high = args
        axis = axes[1] if axes[1] is not None else 0
        x = to_axis(size, x, axes[1], axis)
        return bind(self, (_bound(size, low, axes[0], x, axis), x, _bound(size, high, axes[2], x, axis)), {}), axis

    def divide(self, mesh, avals, outs, params):
        return [merged(self.name, avals, outs[0].shape)]

    def lower(self, em, out, low, x, high):
        if out.dtype.kind not in "cb":
            return em.op("clamp", out, low, x, high)
        low, high = spread(em, out.shape, (low, high))
        if out.dtype.kind == "b":
            return em.op("minimum", out, em.op("maximum", out, x, low), high)
        part = make_aval(out.shape, dtypes.real_dtype(out.dtype))
        x = em.select(em.compare(em.op("real", part, low), em.op("real", part, x), "GE"), low, x)
        return em.select(em.compare(em.op("real", part, x), em.op("real", part, high), "LE"), x, high)


def _bound(size, bound, a, x, axis):
    """A bound broadcast to the shape of the mapped operand `x`.

    An unmapped scalar stays as it is.
    """
    if a is None and not bound.aval.ndim:
        return bound
    if bound.aval.ndim - (a is not None) == x.aval.ndim - 1:
        return to_axis(size, bound, a, axis)
    return broadcast_in_dim(bound, x.aval.shape, (axis,))


clamp_p = Clamp("clamp")


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`x` with elements below `min` raised to it, and those above `max` lowered to it.

    Args:
        min: scalar or of the shape of `x`, of its dtype.
        x: an array.
        max: as `min`; where the bounds cross, the result is `max`.

    Example:
        >>> from gradix import lax
        >>> lax.clamp(0.0, 1.5, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(clamp_p, arrays("clamp", min, x, max), {})
