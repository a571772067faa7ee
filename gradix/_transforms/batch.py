"""Batching: carry a mapped axis beside each value."""

from __future__ import annotations

from typing import Any

from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core import dtypes, seams
from gradix._core.aval import ShapedArray, located, seen
from gradix._core.divisions import division, entries, names_in, sums, with_axis, without_axis
from gradix._core.jaxpr import ClosedJaxpr, inherit, jaxprs_in_params
from gradix._core.named_sharding import axes_of
from gradix._core.refs import LocalRef, Ref
from gradix._core.trace import Interpreter, NeedsProgram, Tracer, new_level, state
from gradix._ops.basis import move_axis, to_axis, zeros
from gradix._transforms.jvp import called
from gradix._transforms.staging import eval_closed, stage

_counted = lazy_module("gradix._transforms.counted")


class AxisData:
    """The axis being mapped: its size, and its name when collectives may use it.

    If types divide it over explicit mesh axes, `division` holds their mesh and the entry.
    """

    __slots__ = ("name", "size", "spmd_name", "division")

    def __init__(self, name, size, spmd_name=None, division=None):
        self.name, self.size, self.spmd_name, self.division = name, size, spmd_name, division

    def __eq__(self, other) -> bool:
        return (
            type(other) is AxisData
            and self.name == other.name
            and self.size == other.size
            and self.spmd_name == other.spmd_name
            and self.division == other.division
        )

    def __hash__(self) -> int:
        return hash((self.name, self.size))


_examples: BoundedCache[tuple, ShapedArray] = BoundedCache(1 << 14)


def example_aval(key):
    """The type of one example, for a key of (aval of the batch, batch axis)."""
    a, axis = key
    return _examples.keep(key, without_axis(a, axis))


class BatchTracer(Tracer):
    """A value and the position of its mapped axis."""

    __slots__ = ("val", "axis")

    def __init__(self, trace, val, axis):
        self._trace, self.val, self.axis = trace, val, axis
        key = val.aval, axis
        self.aval = _examples.get(key) or example_aval(key)

    def _origin(self) -> str:
        return self.val._origin() if isinstance(self.val, Tracer) else super()._origin()

    def _made(self) -> str:
        return self.val._made() if isinstance(self.val, Tracer) else ""

    def _described(self) -> str:
        return f"VmapTracer(aval={self.aval.str_short()}, batched={self.val.aval.str_short()})"

    def _numbers(self) -> str:
        return f"{self.val!r} mapped over axis {self.axis}"

    @property
    def _inner(self):
        return self.val


BatchTracer.__name__ = "VmapTracer"  # as it shows itself


class BatchTrace(Interpreter):
    """Applies the batch rule of each primitive; an unmapped result is returned without a tracer."""

    doing = "mapping"
    outer: BatchTrace | None = None  # the trace that maps around this one
    # The refs of which each example has its own state. An instance replaces this shared dict.
    forks: dict = {}

    def __init__(self, axis: AxisData):
        self.axis = axis
        self.size = axis.size

    def local(self, ref: Ref) -> LocalRef:
        """The local ref for a state from outside that differs per example.

        It is forked on first use.
        """
        found = self.forks.get(ref)
        if found is None:
            state.mapped = self.outer
            try:
                rows = ref.aval.kind.fork(ref, self.size)
            finally:
                state.mapped = self
            if not self.forks:
                self.forks = {}
            found = self.forks[ref] = LocalRef(ref, None, BatchTracer(self, rows, 0))
        return found

    def interpret(self, prim, args, params):
        vals, axes = [], []
        for a in args:
            if type(a) is BatchTracer and a._trace is self:
                vals.append(a.val)
                axes.append(a.axis)
            else:
                vals.append(a)
                axes.append(None)
        out, out_axes = prim.batch(self.axis if prim.named else self.size, vals, axes, **params)
        if prim.multiple_results:
            return [o if a is None else BatchTracer(self, o, a) for o, a in zip(out, out_axes)]
        return out if out_axes is None else BatchTracer(self, out, out_axes)

    def split(self, x):
        """The value and mapped axis of `x`; the axis is None when it is unmapped."""
        if type(x) is BatchTracer and x._trace is self:
            return x.val, x.axis
        return x, None


class EmptyBatchTrace(BatchTrace):
    """Maps over a batch of size 0: each result is an empty batch of the type found by `abstract`.

    Batch rules are not asked, as each would need special cases for this size, such as windows of
    one element along an empty axis, or feature groups of no features.
    """

    def interpret(self, prim, args, params):
        if prim.defines_size:
            raise NeedsProgram
        if not (prim.named or prim.effectful or next(jaxprs_in_params(params), None)):
            types = prim.abstract(*[a.aval for a in args], **params)
            results = types if prim.multiple_results else [types]
            if not any(isinstance(t.dtype, dtypes.ExtendedDType) for t in results):
                outs = [BatchTracer(self, zeros(insert_axis(t, 0, 0)), 0) for t in results]
                return outs if prim.multiple_results else outs[0]
        return super().interpret(prim, args, params)


def batch(function, axis: AxisData, args, in_axes, named: bool = False) -> tuple[list, list]:
    """Outputs of a function on lists mapped over `axis`, and the batch axis of each, or None.

    `named` as for `jvp`.
    """
    trace = EmptyBatchTrace(axis) if type(axis.size) is int and axis.size == 0 else BatchTrace(axis)
    trace.function = function
    trace.outer = state.mapped
    with new_level(trace, axis=axis.name):
        state.mapped = trace
        try:
            tracers = [x if a is None else BatchTracer(trace, x, a) for x, a in zip(args, in_axes)]
            pairs = [trace.split(o) for o in called(function, tracers, "vmap", named)]
        finally:
            state.mapped = trace.outer
    return [v for v, _ in pairs], [a for _, a in pairs]


def example_of(trace: BatchTrace, x, axis: int | None):
    """One example of an array from outside of `trace`, whose size, if that is None, is the array's along `axis`."""
    if axis is None:
        return x
    if trace.size is None:
        trace.size = x.aval.shape[axis]
        trace.axis = AxisData(trace.axis.name, trace.size)
    return BatchTracer(trace, x, axis % x.aval.ndim)


def batch_of(trace: BatchTrace, x, axis: int | None):
    """All examples of a value inside of `trace`, as an array outside of it that has them along `axis`.

    Raises:
        ValueError: the examples differ, and `axis` is None.
    """
    value, at = trace.split(x)
    if axis is None and at is not None:
        raise ValueError(
            f"vmap has examples that differ, of type {x.aval}, for an array that from_elt of a registered type asks "
            "for with the axis None. Give the axis along which its examples lie."
        )
    state.mapped = trace.outer
    try:
        return value if axis is None else to_axis(trace.size, value, at, axis)
    finally:
        state.mapped = trace


def batch_jaxpr(closed: ClosedJaxpr, axis: AxisData, in_axes: tuple, out_axes=None) -> tuple[ClosedJaxpr, tuple]:
    """The mapped program, and the batch axis of each of its results.

    `out_axes`, if given, holds the batch axis wanted for each result, or "any" to take it where the
    batch rules leave it.
    """
    key = ("batch", axis, in_axes, out_axes)
    found = closed.memo.get(key)
    if found is not None:
        return found
    if seen.counts is not None and _counted.defines_any(closed.jaxpr):
        found = closed.memo[key] = seen.counts.mapped(closed, axis, in_axes, out_axes)
        return found
    got: list = []

    def mapped(*args):
        inherit(args, closed.jaxpr.invars)
        outs, axes = batch(lambda *xs: eval_closed(closed, *xs), axis, args, in_axes)
        wanted = out_axes or ("any",) * len(outs)
        for i, w in enumerate(wanted):
            if w != "any" and w is not None:
                outs[i] = to_axis(axis.size, outs[i], None, w) if axes[i] is None else move_axis(outs[i], axes[i], w)
                axes[i] = w
        got[:] = axes
        return outs if axis.division is None else [divided_along(o, a, axis.division) for o, a in zip(outs, axes)]

    avals = [insert_axis(v, axis.size, a) for v, a in zip(closed.in_avals, in_axes)]
    if axis.division is not None:
        avals = [_type_along(v, a, axis.division) for v, a in zip(avals, in_axes)]
    jaxpr, consts = stage(mapped, avals, closed.jaxpr.debug_info)
    found = closed.memo[key] = ClosedJaxpr(jaxpr, consts), tuple(got)
    return found


def _type_along(aval, axis, along: tuple):
    """The type of a batch whose mapped axis is divided, unless its other axes are over these mesh axes."""
    mesh, entry = along
    row = list(entries(aval))
    if axis is None or row[axis] is not None or set(axes_of(entry)) & set(names_in(row)):
        return aval
    if aval.division is not None:
        mesh = aval.division.mesh
    if not set(axes_of(entry)) <= set(mesh.explicit_axes):
        return aval
    row[axis] = entry
    return located(aval.plain, vma=aval.vma, division=division(mesh, row, sums(aval)))


def divided_along(value, axis, along: tuple):
    """A batch whose mapped axis is divided as its type within the mapped program says."""
    aval = value.aval if axis is None else _type_along(value.aval, axis, along)
    return value if aval is value.aval else seams.reshard(value, aval.division)


def insert_axis(aval, size, axis):
    """The type of `aval` with a mapped axis at `axis`."""
    if axis is None:
        return aval
    return with_axis(aval, size, axis)


def unmapped_aval(size: Any, axis: Any, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The type of `aval` with an axis of `size` added at `axis`; unchanged if it is None.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend import core
        >>> core.unmapped_aval(3, 0, gradix.typeof(jnp.ones(2)))
        ShapedArray(float32[3,2])
    """
    return insert_axis(aval, size, axis)


def mapped_aval(size: Any, axis: Any, aval: Any) -> Any:
    """The type of `aval` without the axis `axis`, which has that size; unchanged if it is None.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend import core
        >>> core.mapped_aval(3, 0, gradix.typeof(jnp.ones((3, 2))))
        ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    assert aval.shape[axis] == size, (aval, size, axis)
    return without_axis(aval, axis)
