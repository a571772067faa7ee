"""The places at which a traced mask is true: vectors whose length is the number of places."""

from __future__ import annotations

import numpy as np

from gradix._api.counted import processing  # noqa: F401  (makes programs with counts possible)
from gradix._core import dtypes
from gradix._core.jaxpr import Literal
from gradix._core.trace import NeedsProgram, state
from gradix._ops.arithmetic import add, max as max_, sub
from gradix._ops.clamp import clamp
from gradix._ops.comparison import lt
from gradix._ops.convert import convert_element_type
from gradix._ops.counted import define, prefix, whole
from gradix._ops.creation import full
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.indexing.dynamic_slicing import dynamic_slice_in_dim
from gradix._ops.indexing.slicing import pad
from gradix._ops.indexing.true_places import true_places
from gradix._ops.select import select
from gradix._ops.shape import reshape
from gradix._transforms.batch import BatchTracer
from gradix._transforms.staging import StagingTracer

INDEX = np.dtype("int32")


def places(mask):
    """The places at which a traced mask, taken as one row, is true: a vector of integers."""
    if isinstance(mask, BatchTracer):
        raise NeedsProgram
    dtype = dtypes.python_scalar_dtype(int)
    if mask.aval.size == 0:
        return full((0,), np.zeros((), dtype))
    flat = mask if mask.aval.ndim == 1 else reshape(mask, (mask.aval.size,))
    n = flat.aval.shape[0]
    found, count = true_places(flat, n, dtype)
    return prefix(found, dimension_of(count, mask, n))


def parts(x, points: list, axis: int) -> list:
    """The parts of an axis between traced integers, as slices have them: sizes are decided by these."""
    if any(isinstance(p, BatchTracer) for p in points):
        raise NeedsProgram
    n = x.aval.shape[axis]
    x = whole(x, axis)
    bound = x.aval.shape[axis]
    zero = full((), 0, INDEX)
    size = full((), n, INDEX) if type(n) is int else convert_element_type(dim_as_value(n), INDEX)
    cuts = [zero]
    for p in points:
        p = convert_element_type(p, INDEX)
        cuts.append(clamp(zero, select(lt(p, zero), add(p, size), p), size))
    cuts.append(size)
    wide = pad(x, full((), 0, x.aval.dtype), [(0, bound * (i == axis), 0) for i in range(x.ndim)])
    outs = []
    for start, stop in zip(cuts, cuts[1:]):
        dim = define(max_(sub(stop, start), zero), bound)
        outs.append(prefix(dynamic_slice_in_dim(wide, start, bound, axis), dim, axis))
    return outs


# -- one size for equal masks ----------------------------------------------------------------------


def dimension_of(count, mask, bound):
    """The number of true elements of a mask, as a dimension; the same one for equal masks."""
    known, key = {}, None
    if type(mask) is StagingTracer:
        trace = mask._trace
        known = trace.__dict__.setdefault("counts_of_masks", {})
        key = _Made(trace).key(mask._var)
    found = known.get(key)
    if found is None:
        found = define(count, bound)
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
