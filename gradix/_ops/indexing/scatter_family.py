"""The base class of all scatters: type, host rule, batching, division over meshes, lowering."""

from __future__ import annotations

import numpy as np

from gradix._core.array import wrap_host
from gradix._core.aval import make_aval
from gradix._core.divisions import ShardingTypeError, entries
from gradix._core.dtypes import BOOL, NUMERIC
from gradix._core.jaxpr import ClosedJaxpr, fold
from gradix._core.primitive import Primitive
from gradix._core.trace import bind, bind_equation
from gradix._ops.basis import to_front
from gradix._ops.canonicalization import memoised
from gradix._ops.families import WhereFinite
from gradix._ops.indexing.gather import lower_limits
from gradix._ops.indexing.gather_checks import check_scatter
from gradix._ops.indexing.gather_dimension_numbers import (
    CLIPPING,
    axes_by_name,
    gather_numbers,
    window_sizes,
    windows,
    with_batching_axis,
    with_window_axis,
)


class Scatter(Primitive):
    """Windows of an operand combined with updates, one after the other.

    `combine` is the primitive of the old element and the update. Where it is None, the update
    replaces the old element, or `update_jaxpr` computes the new one from both.
    """

    def __init__(self, name: str, combine=None, accepted=BOOL | NUMERIC):
        super().__init__(name)
        self.combine, self.accepts = combine, accepted
        host = None if combine is None else combine.host
        self.ufunc = host.function if isinstance(host, WhereFinite) else host

    @memoised
    def _result(self, x, indices, updates, dnums):
        check_scatter(self, x, indices, updates, dnums)
        return make_aval(x.shape, x.dtype, x.weak_type and updates.weak_type)

    def abstract(self, x, indices, updates, *, dimension_numbers, **_):
        return self._result(x, indices, updates, dimension_numbers)

    # -- on the host -------------------------------------------------------------------------------

    def host(self, x, indices, updates, *, dimension_numbers, mode, unique_indices, update_jaxpr, update_consts, **_):
        sizes = window_sizes(x.shape, updates.shape, dimension_numbers)
        plan = windows(x.shape, indices.shape, gather_numbers(dimension_numbers), sizes)
        if indices.dtype.kind not in "iu":
            indices = indices.astype(np.intp)
        ok = None if mode in CLIPPING else plan.valid(indices)
        out = np.array(x, order="C")
        if not updates.size or not out.size:
            return out
        order = _in_sequence(updates.ndim, plan.lead, dimension_numbers.update_window_dims)
        rows, new = plan.positions(indices), updates
        if order is not None:
            rows = rows.transpose([i for i in order if i < plan.lead])
            new = new.transpose(order)
        rows, new = rows.reshape(-1), new.reshape(-1, plan.inner)
        if ok is not None:
            keep = np.repeat(ok.reshape(-1), rows.size // ok.size)
            rows, new = rows[keep], new[keep]
        target = out.reshape(plan.rows, plan.inner)
        apart = unique_indices or rows.size <= 1
        if update_jaxpr is not None and self.combine is None:
            _apply(target, rows, new, _evaluator(*_opened(update_jaxpr, update_consts)), apart)
        else:
            self._combine(target, rows, new, apart)
        return out

    def _combine(self, target, rows, new, apart):
        if self.combine is None:
            # NumPy assigns in order, so the last of equal rows is kept.
            target[rows] = new
        elif apart:
            target[rows] = self.ufunc(target[rows], new)
        else:
            # NumPy is quick with one flat index per element.
            ufunc = self.ufunc
            inner = target.shape[1]
            flat = rows if inner == 1 else (rows[:, None] * inner + np.arange(inner)).reshape(-1)
            ufunc.at(target.reshape(-1), flat, new.reshape(-1))

    # -- differentiation and mapping ---------------------------------------------------------------

    def batch(self, size, args, axes, *, dimension_numbers, **params):
        x, indices, updates = [to_front(size, v, a) if a is not None else v for v, a in zip(args, axes)]
        ax, ai, au = axes
        x = x if ax is not None else to_front(size, x, None)
        updates = updates if au is not None else to_front(size, updates, None)
        if ai is None:
            dnums = with_window_axis(dimension_numbers)
        else:
            dnums = with_batching_axis(dimension_numbers)
            params = {**params, "indices_are_sorted": False}
        return bind(self, (x, indices, updates), {"dimension_numbers": dnums, **params}), 0

    def divide(self, mesh, avals, outs, params):
        x, row, dnums = avals[0], entries(avals[0]), params["dimension_numbers"]
        written = set(dnums.scatter_dims_to_operand_dims)
        sizes = window_sizes(x.shape, avals[2].shape, dnums)
        if any(row[i] is not None and (i in written and sizes[i] != x.shape[i]) for i in range(x.ndim)):
            raise ShardingTypeError(
                "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update "
                f"as out sharding could not be resolved unambiguously: {x.str_short()} is divided over axes among "
                f"{sorted(written)}, of which parts are "
                "written."
            )
        return [row]

    def lower(
        self,
        em,
        out,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        mode,
        indices_are_sorted,
        unique_indices,
        update_jaxpr,
        update_consts,
    ):
        dnums, indices = (dimension_numbers, clamped(em, x, indices, updates, dimension_numbers, mode))
        scalar = make_aval((), out.dtype)

        def body(old, new):
            if self.combine is not None:
                return self.combine.lower(em, scalar, old, new)
            if update_jaxpr is None:
                return new
            return em.inline(*_opened(update_jaxpr, update_consts), [old, new])

        indices = em.index(indices, x.aval.shape)
        axes = axes_by_name(_numbers(dnums), indices.aval.ndim - 1)
        return em.op(
            "scatter",
            out,
            x,
            indices,
            updates,
            regions=(em.region([scalar, scalar], body),),
            attrs=(
                f"scatter_dimension_numbers = #stablehlo.scatter<{axes}>, "
                f"indices_are_sorted = {str(indices_are_sorted).lower()}, "
                f"unique_indices = {str(unique_indices).lower()}"
            ),
        )


def clamped(em, x, indices, updates, dnums, mode):
    """The indices; in mode CLIP clamped so that the whole window lies inside the operand."""
    if mode not in CLIPPING or not dnums.scatter_dims_to_operand_dims:
        return indices
    sizes = window_sizes(x.aval.shape, updates.aval.shape, dnums)
    limits = [x.aval.shape[d] - sizes[d] for d in dnums.scatter_dims_to_operand_dims]
    low, aval = em.splat(0, make_aval((), indices.aval.dtype)), indices.aval
    return em.op("clamp", aval, em.broadcast_in_dim(low, aval, ()), indices, lower_limits(em, aval, limits))


def _numbers(dnums) -> dict:
    """The dimension numbers, under the names of StableHLO's attribute."""
    window, inserted, to_operand, batching, batching_at = dnums
    return {
        "update_window_dims": window,
        "inserted_window_dims": inserted,
        "input_batching_dims": batching,
        "scatter_indices_batching_dims": batching_at,
        "scatter_dims_to_operand_dims": to_operand,
    }


@memoised
def _in_sequence(ndim, lead, window_dims):
    """The permutation that puts the window axes of the updates last; None where they are last."""
    order = [i for i in range(lead) if i not in window_dims] + [i for i in range(lead) if i in window_dims]
    return None if order == list(range(lead)) else (*order, *range(lead, ndim))


def _apply(target, rows, new, function, apart):
    """Replace rows by `function(old, new)`.

    Updates to the same row are applied one after the other.
    """
    while rows.size:
        if apart:
            target[rows] = function(target[rows], new)
            return
        now, first = np.unique(rows, return_index=True)
        target[now] = function(target[now], new[first])
        rest = np.ones(rows.size, bool)
        rest[first] = False
        rows, new = rows[rest], new[rest]


def _opened(program, consts):
    """The jaxpr of a combiner and its constants, which a closed jaxpr carries itself."""
    return (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, consts)


def _evaluator(jaxpr, consts):
    """A function of NumPy arrays that runs a scalar program on each of their elements."""

    def run(old, new):
        pair = [wrap_host(np.ascontiguousarray(x)) for x in (old, new)]
        return fold(jaxpr, consts, pair, bind_equation)[0].host

    return run
