"""The scatters: windows of an array, at index vectors, are replaced or combined with updates."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gradix._core.array import scalar_array
from gradix._core.aval import make_aval
from gradix._core.dtypes import NUMERIC
from gradix._core.jaxpr import Jaxpr, JaxprEqn, Var
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import add_p, div, max_p, min_p, mul, mul_p, sub_p
from gradix._ops.basis import add_any, broadcast_in_dim, instantiate, zeros
from gradix._ops.comparison import eq
from gradix._ops.complex_parts import neg
from gradix._ops.convert import convert
from gradix._ops.creation import iota_p
from gradix._ops.indexing.gather import gather_p
from gradix._ops.indexing.gather_dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    canonical_numbers,
    gather_numbers,
    window_sizes,
)
from gradix._ops.indexing.scatter_family import Scatter
from gradix._ops.operands import arrays, scalar_like
from gradix._ops.select import choose
from gradix._ops.shape import reshape

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_INT32 = np.dtype("int32")


# -- derivatives, by kind --------------------------------------------------------------------------


def read_windows(x, indices, updates_shape, params):
    """The windows of `x` that a scatter with these parameters writes to; zero outside of `x`."""
    dnums, mode = params["dimension_numbers"], params["mode"]
    windows = window_sizes(x.aval.shape, updates_shape, dnums)
    if any(type(n) is int and type(w) is int and n < w for n, w in zip(x.aval.shape, windows)):
        return zeros(make_aval(updates_shape, x.aval.dtype))  # no window lies inside
    filled = mode.fills
    return bind(
        gather_p,
        (x, indices),
        {
            "dimension_numbers": gather_numbers(dnums),
            "slice_sizes": windows,
            "mode": mode,
            "fill_value": 0 if filled else None,
            "indices_are_sorted": params["indices_are_sorted"],
            "unique_indices": params["unique_indices"],
        },
    )


def _tangents(tangents, x, updates):
    t, _, tu = tangents
    return instantiate(t, x.aval), instantiate(tu, updates.aval)


class ScatterAdd(Scatter):
    """Linear in operand and updates, which it adds or subtracts."""

    mesh = MeshTraits(linear="all")

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        out = bind(self, primals, params)
        if tangents[0] is None and tangents[2] is None:
            return out, None
        t, tu = _tangents(tangents, x, updates)
        return out, bind(self, (t, indices, tu), params)

    def transpose(self, ct, x, indices, updates, **params):
        back = None
        if type(updates) is Linear:
            back = read_windows(ct, indices, updates.aval.shape, params)
            back = neg(back) if self.combine is sub_p else back
        return [ct if type(x) is Linear else None, None, back]


class ScatterSet(Scatter):
    """Of several updates to one element the last is kept, and only that one has a derivative."""

    mesh = MeshTraits(linear="all")

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        out = bind(self, primals, params)
        t, _, tu = tangents
        if t is None and tu is None:
            return out, None
        if params["update_jaxpr"] is not None:
            raise self.missing(
                "jvp",
                "differentiation of scatter_apply",
                "apply the function to x[indices] and write the result with x.at[indices].set(...)",
            )
        if tu is None or params["unique_indices"]:
            t, tu = _tangents(tangents, x, updates)
            return out, bind(self, (t, indices, tu), params)
        # Several updates may reach one element: zero the tangents of those overwritten, then add.
        stays, wins = _winners(x, indices, updates, params)
        t, tu = _tangents(tangents, x, updates)
        t, tu = choose(stays, scalar_like(t, 0), t), choose(wins, scalar_like(tu, 0), tu)
        return out, bind(scatter_add_p, (t, indices, tu), _add_params(params, t.aval.dtype))

    def transpose(self, ct, x, indices, updates, **params):
        back_x = back = None
        if type(x) is Linear:
            back_x = bind(self, (ct, indices, zeros(make_aval(updates.aval.shape, ct.aval.dtype))), params)
        if type(updates) is Linear:
            back = read_windows(ct, indices, updates.aval.shape, params)
            if not params["unique_indices"]:
                wins = _winners(x, indices, updates, params)[1]
                back = choose(wins, scalar_like(back, 0), back)
        return [back_x, None, back]


def _winners(x, indices, updates, params):
    """Masks: elements of the operand that no update reaches, elements of updates that are kept."""
    shape, window = updates.aval.shape, params["dimension_numbers"].update_window_dims
    outer = tuple([i for i in range(len(shape)) if i not in window])
    count = tuple([shape[i] for i in outer])
    numbers = bind(iota_p, (), {"dtype": _INT32, "shape": (prod(count),), "dimension": 0})
    ids = broadcast_in_dim(reshape(numbers, count), shape, outer)
    nobody = scalar_array(-1, _INT32, False)
    marks = bind(scatter_p, (broadcast_in_dim(nobody, x.aval.shape, ()), indices, ids), params)
    return eq(marks, nobody), eq(read_windows(marks, indices, shape, params), ids)


class ScatterMul(Scatter):
    """Linear in the operand, and in the updates where no two reach the same element."""

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        out = bind(self, primals, params)
        t, _, tu = tangents
        total = None if t is None else bind(self, (t, indices, updates), params)
        if tu is not None:
            _need_unique(params)
            factor = bind(scatter_add_p, (zeros(x.aval), indices, tu), _add_params(params, x.aval.dtype))
            part = mul(x, factor)
            total = part if total is None else add_any(total, part)
        return out, total

    def transpose(self, ct, x, indices, updates, **params):
        if type(x) is Linear:
            return [bind(self, (ct, indices, updates), params), None, None]
        _need_unique(params)
        return [None, None, read_windows(mul(ct, x), indices, updates.aval.shape, params)]


def _need_unique(params):
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul gradients are only implemented if `unique_indices=True`: several updates of one element "
            "multiply each other. Pass unique_indices=True when the indices are distinct, or add logarithms."
        )


class ScatterExtremum(Scatter):
    """The derivative is shared evenly by the operand and the updates that equal the result."""

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        out = bind(self, primals, params)
        if tangents[0] is None and tangents[2] is None:
            return out, None
        t, tu = _tangents(tangents, x, updates)
        dtype, added = out.aval.dtype, _add_params(params, out.aval.dtype)
        is_x, is_u = eq(out, x), eq(read_windows(out, indices, updates.aval.shape, params), updates)
        count = bind(scatter_add_p, (convert(is_x, dtype), indices, convert(is_u, dtype)), added)
        total = bind(
            scatter_add_p, (choose(is_x, scalar_like(t, 0), t), indices, choose(is_u, scalar_like(tu, 0), tu)), added
        )
        return out, div(total, count)


# -- the family ------------------------------------------------------------------------------------

scatter_p = ScatterSet("scatter")
scatter_add_p = ScatterAdd("scatter-add", add_p, NUMERIC)
scatter_sub_p = ScatterAdd("scatter-sub", sub_p, NUMERIC)
scatter_mul_p = ScatterMul("scatter-mul", mul_p, NUMERIC)
scatter_min_p = ScatterExtremum("scatter-min", min_p)
scatter_max_p = ScatterExtremum("scatter-max", max_p)


@lru_cache(256)
def combiner(prim, dtype) -> Jaxpr:
    """The parameter `update_jaxpr`: the jaxpr that combines two scalars, old element and update."""
    scalar = make_aval((), dtype)
    old, new, out = Var(scalar), Var(scalar), Var(scalar)
    return Jaxpr([], [old, new], [out], [JaxprEqn(prim, [old, new], [out], {})])


def _add_params(params, dtype):
    return {**params, "update_jaxpr": combiner(add_p, dtype), "update_consts": ()}


def _gather_adjoint(ct, aval, indices, params):
    dnums = ScatterDimensionNumbers(*params["dimension_numbers"])
    mode = params["mode"]
    mode = GatherScatterMode.FILL_OR_DROP if mode is GatherScatterMode.ONE_HOT else mode
    return bind(
        scatter_add_p,
        (zeros(make_aval(aval.shape, ct.aval.dtype)), indices, ct),
        {
            "dimension_numbers": dnums,
            "mode": mode,
            "indices_are_sorted": params["indices_are_sorted"],
            "unique_indices": params["unique_indices"],
            "update_jaxpr": combiner(add_p, ct.aval.dtype),
            "update_consts": (),
        },
    )


gather_p.adjoint = _gather_adjoint


def _scatter(scatter, operand, indices, updates, dnums, *, sorted_, unique, mode):
    operand, indices, updates = arrays(scatter.name, operand, indices, updates)
    jaxpr = None if scatter.combine is None else combiner(scatter.combine, operand.aval.dtype)
    return bind_scatter(
        scatter, operand, indices, updates, dnums, sorted_=sorted_, unique=unique, mode=mode, jaxpr=jaxpr
    )


def bind_scatter(prim, operand, indices, updates, dnums, *, sorted_, unique, mode, jaxpr, consts=()):
    """Bind the scatter primitive `prim` with its parameters in canonical form."""
    return bind(
        prim,
        (operand, indices, updates),
        {
            "dimension_numbers": canonical_numbers(dnums, ScatterDimensionNumbers),
            "indices_are_sorted": bool(sorted_),
            "unique_indices": bool(unique),
            "mode": GatherScatterMode.from_any(mode),
            "update_jaxpr": jaxpr,
            "update_consts": consts,
        },
    )


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with windows replaced by `updates`; they start at the vectors `scatter_indices`.

    Args:
        operand: an array.
        scatter_indices: integers, index vectors along the last axis.
        updates: an array of the operand's dtype; where several updates meet, the CPU keeps the
            last.
        dimension_numbers: a `ScatterDimensionNumbers`, which says which axes correspond.
        indices_are_sorted: a promise that the index vectors are sorted.
        unique_indices: a promise that no element is updated twice.
        mode: a `GatherScatterMode` or its name: "clip" moves windows inside, "drop" (the default)
            skips those outside.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter(lax.iota("int32", 3), lax.full((1, 1), 2), lax.full((1,), 9, "int32"), one)
        Array([0, 1, 9], dtype=int32)
    """
    return _scatter(
        scatter_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
    )


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with `updates` added to windows; arguments as those of `scatter`.

    Args:
        operand: the array to update.
        scatter_indices: integers; the last axis holds the start of a window.
        updates: the windows, of the operand's dtype.
        dimension_numbers, indices_are_sorted, unique_indices, mode: as for `scatter`.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_add(lax.iota("int32", 3), lax.full((1, 1), 2), lax.full((1,), 9, "int32"), one)
        Array([ 0,  1, 11], dtype=int32)
    """
    return _scatter(
        scatter_add_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
    )


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with `updates` subtracted from windows; arguments as those of `scatter`.

    Args:
        operand: the array to update.
        scatter_indices: integers; the last axis holds the start of a window.
        updates: the windows, of the operand's dtype.
        dimension_numbers, indices_are_sorted, unique_indices, mode: as for `scatter`.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_sub(lax.iota("int32", 3), lax.full((1, 1), 2), lax.full((1,), 9, "int32"), one)
        Array([ 0,  1, -7], dtype=int32)
    """
    return _scatter(
        scatter_sub_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
    )


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with `updates` multiplied into windows; arguments as those of `scatter`.

    Args:
        operand: the array to update.
        scatter_indices: integers; the last axis holds the start of a window.
        updates: the windows, of the operand's dtype.
        dimension_numbers, indices_are_sorted, unique_indices, mode: as for `scatter`.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_mul(lax.iota("int32", 3), lax.full((1, 1), 2), lax.full((1,), 9, "int32"), one)
        Array([ 0,  1, 18], dtype=int32)
    """
    return _scatter(
        scatter_mul_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
    )


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with windows replaced by their elementwise minimum with `updates`.

    Arguments as those of `scatter`.

    Args:
        operand: the array to update.
        scatter_indices: integers; the last axis holds the start of a window.
        updates: the windows, of the operand's dtype.
        dimension_numbers, indices_are_sorted, unique_indices, mode: as for `scatter`.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_min(lax.iota("int32", 3), lax.full((1, 1), 2), lax.full((1,), 9, "int32"), one)
        Array([0, 1, 2], dtype=int32)
    """
    return _scatter(
        scatter_min_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
    )


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """`operand` with windows replaced by their elementwise maximum with `updates`.

    Arguments as those of `scatter`.

    Args:
        operand: the array to update.
        scatter_indices: integers; the last axis holds the start of a window.
        updates: the windows, of the operand's dtype.
        dimension_numbers, indices_are_sorted, unique_indices, mode: as for `scatter`.

    Example:
        >>> from gradix import lax
        >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_max(lax.iota("int32", 3), lax.full((1, 1), 2), lax.full((1,), 9, "int32"), one)
        Array([0, 1, 9], dtype=int32)
    """
    return _scatter(
        scatter_max_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        sorted_=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
    )
