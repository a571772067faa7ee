"""select_n: each element from one of several arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import merged
from gradix._core.dtypes import BOOL, INTEGER
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, instantiate, to_axis, unbroadcast, zeros
from gradix._ops.canonicalization import memoised
from gradix._ops.operands import arrays
from gradix._ops.sharding import summed_like

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _masked(which, x, y):
    """`y` where `which`, else `x`, in the shape of `x`; quicker than `np.where` on few elements."""
    out = x.copy()
    np.putmask(out, which, y)
    return out


class SelectN(Primitive):
    """`cases[which]`, elementwise; `which` is clamped to the number of cases.

    Each case, and `which`, is a scalar or has the shape of the result.
    """

    silent = True
    live = "cases"
    mesh = MeshTraits(sums="kept")
    selects = True

    @memoised
    def abstract(self, which, *cases):
        shape = next((c.shape for c in cases if c.shape), ())
        if which.dtype not in BOOL and which.dtype not in INTEGER:
            raise TypeError(
                f"select `which` must be boolean or integer type, got {dtypes.dtype_name(which.dtype)}. "
                "Compare it first, as in x > 0."
            )
        if which.dtype in BOOL and len(cases) > 2:
            raise TypeError(
                f"select with boolean `which` cannot have > 2 cases, got {len(cases)}; use an int32 `which`."
            )
        if any(c.shape != shape and c.shape for c in cases):
            raise TypeError(
                f"select cases must have the same shapes, got {sorted({c.shape for c in cases})}. "
                "gradix.numpy.where broadcasts them."
            )
        if which.shape and which.shape != shape:
            raise TypeError(
                f"select `which` must be scalar or have the same shape as cases, got `which` shape "
                f"{which.shape} but case shape {shape}."
            )
        if any(c.dtype != cases[0].dtype for c in cases):
            raise TypeError(
                "lax.select requires arguments to have the same dtypes, got "
                f"{', '.join([dtypes.dtype_name(c.dtype) for c in cases])}. "
                "gradix.numpy.where promotes them."
            )
        return make_aval(shape, cases[0].dtype, all(c.weak_type for c in cases))

    def specialise(self, which, *cases):
        if which.dtype != bool or not which.ndim or len(cases) != 2:
            return None
        x, y = cases
        return _masked if x.ndim and isinstance(x.dtype, np.dtype) else lambda which, x, y: np.where(which, y, x)

    def host(self, which, *cases):
        if len(cases) == 2 and which.ndim:
            # NumPy selects fastest by a boolean; which >= 1 selects the second case.
            return np.where(which if which.dtype == bool else which >= 1, cases[1], cases[0])
        if not which.ndim:
            chosen = cases[min(max(int(which), 0), len(cases) - 1)]
            shape = next((c.shape for c in cases if c.ndim), ())
            return chosen if chosen.shape == shape else np.broadcast_to(chosen, shape)
        out = cases[0] if cases[0].shape == which.shape else np.broadcast_to(cases[0], which.shape)
        for k, case in enumerate(cases[1:], 1):
            out = np.where(which >= k, case, out)
        return out

    # The selection is linear in the cases: it takes the tangent of the chosen element, and drops the
    # other tangents whatever their values are.
    def jvp(self, primals, tangents):
        which, *cases = primals
        out = bind(self, primals, {})
        ts = tangents[1:]
        if all(t is None for t in ts):
            return out, None
        return out, choose(which, *[instantiate(t, c.aval) for t, c in zip(ts, cases)])

    def transpose(self, ct, which, *cases):
        cts = []
        for i, case in enumerate(cases):
            if type(case) is not Linear:
                cts.append(None)
                continue
            zero = summed_like(zeros(make_aval((), ct.aval.dtype, ct.aval.weak_type)), ct)
            back = choose(which, *[ct if i == k else zero for k in range(len(cases))])
            cts.append(unbroadcast(back, case.aval))
        return [None, *cts]

    def batch(self, size, args, axes):
        own = [x.aval.ndim - (a is not None) for x, a in zip(args, axes)]
        shape = next((_without(x.aval.shape, a) for x, a, n in zip(args, axes, own) if n), ())
        axis = next((a for a, n in zip(axes, own) if a is not None and n == len(shape)), 0)
        full = (*shape[:axis], size, *shape[axis:])
        which, *cases = [_spread(size, x, a, n, axis, full) for x, a, n in zip(args, axes, own)]
        if which.aval.ndim and not any(c.aval.ndim for c in cases):
            cases[0] = broadcast_in_dim(cases[0], full, ())
        return choose(which, *cases), axis

    def divide(self, mesh, avals, outs, params):
        return [merged(self.name, avals, outs[0].shape)]

    def lower(self, em, out, which, *cases):
        cases = [c if c.aval.shape == out.shape else em.spread(c, out.shape) for c in cases]
        if len(cases) == 1:
            return cases[0]
        if which.aval.dtype == bool:
            return em.select(which, cases[1], cases[0])
        chosen = cases[0]
        for k, case in enumerate(cases[1:], 1):
            chosen = em.select(em.compare(which, em.splat(k, which.aval), "GE"), case, chosen)
        return chosen


def _without(shape, axis):
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


def _spread(size, x, a, own, axis, full):
    """Broadcast an operand with `own` unmapped axes to `full`.

    An unmapped scalar stays a scalar.
    """
    if own == len(full) - 1 and (own or a is not None):
        return to_axis(size, x, a, axis)
    return x if a is None else broadcast_in_dim(x, full, (axis,))


select_n_p = SelectN("select_n")


def choose(which, *cases):
    """The function `select_n` for arrays, of which some may be scalars while others are not."""
    return bind(select_n_p, (which, *cases), {})


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """For each element the case that `which` names: 0 or False the first, 1 or True the second, ….

    Args:
        which: a boolean or integer array, scalar or of the cases' shape.
        *cases: arrays of one shape and dtype; two at most for a boolean `which`.

    Raises:
        ValueError: there are no cases.
        TypeError: the cases differ in shape.

    Example:
        >>> from gradix import lax
        >>> lax.select_n(True, 1.0, 2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    (which,) = arrays("select_n", which)
    cases = arrays("select_n", *cases)
    shape = cases[0].aval.shape
    if any(c.aval.shape != shape for c in cases):
        raise TypeError(
            f"select cases must have the same shapes, got {sorted({c.aval.shape for c in cases})}. "
            "gradix.numpy.where broadcasts them."
        )
    return bind(select_n_p, (which, *cases), {})


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred`, else `on_false`.

    Args:
        pred: booleans, scalar or of the shape of the others.
        on_true, on_false: arrays of one shape and dtype.

    Example:
        >>> from gradix import lax
        >>> lax.select(False, 1.0, 2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return select_n(pred, on_false, on_true)
