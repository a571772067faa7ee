"""The places at which a traced mask is true: vectors whose length is the number of places."""

from __future__ import annotations

import numpy as np

from gradix._api.counted import processing  # noqa: F401  (makes programs with counts possible)
from gradix._core import dtypes
from gradix._core.jaxpr import Literal
from gradix._core.trace import NeedsProgram, state
from gradix._ops.arithmetic import sub
from gradix._ops.basis import reduce_sum
from gradix._ops.convert import convert_element_type
from gradix._ops.counted import define, prefix
from gradix._ops.creation import full, iota
from gradix._ops.cumulative import cumsum
from gradix._ops.indexing.gather_dimension_numbers import ScatterDimensionNumbers
from gradix._ops.indexing.scatter import scatter
from gradix._ops.select import select
from gradix._ops.shape import expand_dims, reshape
from gradix._transforms.batch import BatchTracer
from gradix._transforms.staging import StagingTracer


def places(mask):
    """The places at which a traced mask, taken as one row, is true: a vector of integers."""
    if isinstance(mask, BatchTracer):
        raise NeedsProgram
    dtype = dtypes.python_scalar_dtype(int)
    if mask.aval.size == 0:
        return full((0,), np.zeros((), dtype))
    flat = mask if mask.aval.ndim == 1 else reshape(mask, (mask.aval.size,))
    dim = dimension_of(flat, mask, dtype)
    return prefix(_compacted(flat, dtype), dim)


def _compacted(flat, dtype):
    """The places at which a row is true, before zeros, as many as the row has elements."""
    n = flat.aval.shape[0]
    before = cumsum(convert_element_type(flat, dtype))
    far = full(flat.aval.shape, np.asarray(np.iinfo(dtype).max, dtype))
    slot = select(flat, sub(before, full(flat.aval.shape, np.ones((), dtype))), far)
    numbers = ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    zeros = full((n,), np.zeros((), dtype))
    return scatter(zeros, expand_dims(slot, (1,)), iota(dtype, n), numbers, mode="drop")


# -- one size for equal masks ----------------------------------------------------------------------


def dimension_of(flat, mask, dtype):
    """The number of true elements of a row, as a dimension; the same one for equal masks."""
    known, key = {}, None
    if type(mask) is StagingTracer:
        trace = mask._trace
        known = trace.__dict__.setdefault("counts_of_masks", {})
        key = _Made(trace).key(mask._var)
    found = known.get(key)
    if found is None:
        count = reduce_sum(convert_element_type(flat, dtype), (0,))
        found = define(count, flat.aval.shape[0])
        if type(mask) is StagingTracer and mask._trace is state.stage:
            known[key] = found
    return found


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
