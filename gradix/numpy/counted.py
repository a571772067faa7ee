"""Places and distinct values whose number a traced array decides."""

from __future__ import annotations

from gradix import lax
from gradix._api.counted import processing  # noqa: F401  (makes programs with counts possible)
from gradix._core.dimensions.counts import fresh_count
from gradix._core.jaxpr import Literal
from gradix._core.trace import NeedsProgram, state
from gradix._ops.counted import prefix, size_p
from gradix._transforms.batch import BatchTracer
from gradix._transforms.staging import StagingTracer
from gradix.numpy.masks import index_dtype, unravelled
from gradix.numpy.promotion import convert, number


def places(mask) -> list:
    """The indices at which a traced mask is true: vectors whose length is a count."""
    if isinstance(mask, BatchTracer):
        raise NeedsProgram
    dtype = index_dtype()
    flat = mask if mask.aval.ndim == 1 else lax.reshape(mask, (mask.aval.size,))
    dim = dimension_of(flat, mask)
    return unravelled(prefix(_compacted(flat, dtype), dim), mask.aval.shape)


def _compacted(flat, dtype):
    """The places at which a row is true, before zeros, as many as the row has elements."""
    n = flat.aval.shape[0]
    slot = lax.select(
        flat,
        lax.sub(lax.cumsum(convert(flat, dtype)), number(1, dtype)),
        lax.full(flat.aval.shape, number(2**31 - 1, dtype)),
    )
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return lax.scatter(
        lax.full((n,), number(0, dtype)),
        lax.expand_dims(slot, (1,)),
        lax.iota(dtype, n),
        numbers,
        mode="drop",
    )


# -- one size for equal masks ----------------------------------------------------------------------


def dimension_of(flat, mask=None):
    """The number of true elements of a row, as a dimension; the same one for equal masks."""
    mask = flat if mask is None else mask
    trace = getattr(mask, "_trace", None)
    known = trace.__dict__.setdefault("counts_of_masks", {}) if type(mask) is StagingTracer else {}
    key = _Made(trace).key(mask._var) if type(mask) is StagingTracer else None
    found = known.get(key)
    if found is None:
        count = lax.reduce_sum(convert(flat, index_dtype()), (0,))
        found = defined(count, flat.aval.shape[0])
        if trace is state.stage:
            known[key] = found
    return found


def defined(count, bound):
    """The dimension whose value is a traced integer of at most `bound`."""
    if isinstance(count, BatchTracer):
        raise NeedsProgram
    dim = fresh_count(bound)
    size_p.bind(count, dim=dim)
    return dim


class _Made:
    """Keys of variables by how they were computed: equal keys mean equal values."""

    def __init__(self, trace):
        self.trace = trace
        self.makers = trace.__dict__.setdefault("makers", {})
        done = trace.__dict__.setdefault("makers_known", [0])
        for e in trace.eqns[done[0] :]:
            for v in e.outvars:
                self.makers[v] = e
        done[0] = len(trace.eqns)

    def key(self, var, depth: int = 16):
        if type(var) is Literal:
            return var.aval, var.val.host.tobytes() if hasattr(var.val, "host") else repr(var.val)
        e = self.makers.get(var)
        if e is None or not depth or e.effects:
            return var
        try:
            params = tuple(e.params.items())
            hash(params)
        except TypeError:
            return var
        operands = [self.key(v, depth - 1) for v in e.invars]
        return (e.primitive, params, e.outvars.index(var), *operands)
