"""`shard_map` in `debug.values()`: one function for all devices, run in Python with the numbers of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradix._api.constraints import reshard
from gradix._api.placing import device_put
from gradix._base import config as _config
from gradix._base.tree import tree_leaves
from gradix._control.call import Call
from gradix._control.shard_map import Frame, part_of_mesh, shard_map_p
from gradix._core.array import ArrayImpl, as_array
from gradix._core.aval import within
from gradix._core.dtypes import ExtendedDType
from gradix._core.mesh import BaseMesh, Mesh
from gradix._core.named_sharding import NamedSharding, axes_of
from gradix._core.sharding import PartitionSpec
from gradix._core.trace import Interpreter, Tracer, bind, new_level, state, typed_results
from gradix._ops.basis import move_axis, to_axis, transpose
from gradix._ops.collectives import Collective, Vary
from gradix._ops.shape import reshape
from gradix._ops.sharding import Constraint, move_p
from gradix._transforms.batch import AxisData, batch
from gradix._transforms.staging import eval_closed, stage_closed

_options = _config.state

# The name of the axis along which a collective over several mesh axes communicates.
_JOINED = "_several mesh axes"


class PartTracer(Tracer):
    """The parts of all devices: an array with a leading axis for each mesh axis in `names`, in the mesh's order.

    Its type is that of one part. Along other mesh axes the parts are equal.
    """

    __slots__ = ("val", "names")

    def __init__(self, trace, val, names: tuple, aval):
        self._trace, self.val, self.names, self.aval = trace, val, names, aval

    def _described(self) -> str:
        return f"ShardMapTracer({self.aval.str_short()})"

    def _numbers(self) -> str:
        if not self.names:
            return f"{self.val!r} on each device"
        where = [f"of {name!r} on axis {i}" for i, name in enumerate(self.names)]
        return f"{self.val!r} with the parts {' and '.join(where)}"

    @property
    def _inner(self):
        return self.val


class MeshAxis(Frame):
    """What binds the name of a mesh axis: its size, and the trace of the function that runs on parts."""

    __slots__ = ("trace",)

    def __init__(self, trace: PartTrace, size: int):
        super().__init__(size)
        self.trace = trace

    @property
    def level(self) -> int:  # type: ignore[override]
        return self.trace.level

    def process(self, prim, args, params):
        return self.trace.process(prim, args, params)

    def lift(self, x):
        """A value from outside as one that all devices have; others as they are."""
        return x if isinstance(x, Tracer) and x._trace.level >= self.level else self.trace.lift(x)


class PartTrace(Interpreter):
    """Applies each primitive to the parts of all devices at once, by its batch rule along each mesh axis."""

    doing = "mapping over devices"

    def __init__(self, mesh: BaseMesh, axes: frozenset):
        self.order = tuple([n for n in mesh.axis_names if n in axes])
        self.mesh, self.sizes = mesh, {n: mesh.shape[n] for n in self.order}
        self.around = _Around()

    def lift(self, x) -> PartTracer:
        if type(x) is PartTracer and x._trace is self:
            return x
        x = _on_host(as_array(x))
        return PartTracer(self, x, (), within(x.aval))

    def interpret(self, prim, args, params):
        if isinstance(prim, Call):
            return eval_closed(params["jaxpr"], *args)
        parts = [self.lift(a) for a in args]
        avals = [p.aval for p in parts]
        types = typed_results(prim, avals, params, prim.abstract(*avals, **params))
        if isinstance(prim, (Vary, Constraint)):  # which change the type alone
            return PartTracer(self, parts[0].val, parts[0].names, types)
        with self.around:
            try:
                vals, names = self.applied(prim, parts, params)
            except NotImplementedError:  # the examples of `vmap` cannot do what devices can
                vals, names = self.on_devices(prim, parts, params)
        if prim.multiple_results:
            return [PartTracer(self, v, n, t) for v, n, t in zip(vals, names, types)]
        return PartTracer(self, vals[0], names[0], types)

    def applied(self, prim, parts: Sequence[PartTracer], params: dict) -> tuple[list, list]:
        """The results for all parts, and the mesh axes along which each differs."""
        own = _communicates(prim, params, self.sizes)
        differing = {n for p in parts for n in p.names}.union(own)
        order = [n for n in self.order if n in differing]
        vals, names = [p.val for p in parts], [p.names for p in parts]
        if len(own) > 1 and not _joins(prim, params):
            return self.joined(prim, vals, names, params, own)
        return _nested(_function(prim, params), order, self.sizes, vals, names)

    def on_devices(self, prim, parts: Sequence[PartTracer], params: dict) -> tuple[list, list]:
        """As `applied`, computed by the devices."""
        n, axes = len(self.order), frozenset(self.order)
        inside = part_of_mesh(self.mesh, axes, False)

        def one(*xs):
            outs = _function(prim, params)(*[reshape(x, p.aval.shape) for x, p in zip(xs, parts)])
            return [reshape(o, (*[1] * n, *o.aval.shape)) for o in outs]

        with inside:
            jaxpr = stage_closed(
                one, [p.val.aval.plain.update(shape=(*[1] * len(p.names), *p.aval.shape)) for p in parts]
            )
        outs = bind(
            shard_map_p,
            [p.val for p in parts],
            {
                "jaxpr": jaxpr,
                "mesh": self.mesh,
                "manual_axes": axes,
                "check_vma": False,
                "in_specs": tuple([PartitionSpec(*p.names) for p in parts]),
                "out_specs": (PartitionSpec(*self.order),) * len(jaxpr.out_avals),
            },
        )
        return [_on_host(o) for o in outs], [self.order] * len(outs)

    def joined(self, prim, vals: list, names: list, params: dict, own: tuple) -> tuple[list, list]:
        """As `applied`, for a collective over several axes, which become one."""
        sizes = [self.sizes[n] for n in own]
        ready, labels = [], []
        for val, have in zip(vals, names):
            rest = [n for n in have if n not in own]
            val, have = _spread(val, have, own, self.sizes)
            val = transpose(val, (*[have.index(n) for n in (*rest, *own)], *range(len(have), val.aval.ndim)))
            shape = val.aval.shape
            ready.append(reshape(val, (*shape[: len(rest)], prod(sizes), *shape[len(rest) + len(own) :])))
            labels.append((*rest, _JOINED))
        places = tuple([a for a in params["axes"] if isinstance(a, int)])
        function = _function(prim, {**params, "axes": (_JOINED, *places)})
        order = [n for n in self.order if any(n in have for have in labels)]
        outs, found = _nested(function, [*order, _JOINED], {**self.sizes, _JOINED: prod(sizes)}, ready, labels)
        results, after = [], []
        for out, have in zip(outs, found):
            if _JOINED in have:
                k, shape = len(have) - 1, out.aval.shape
                have = (*have[:-1], *own)
                out = reshape(out, (*shape[:k], *sizes, *shape[k + 1 :]))
            ordered = tuple([n for n in self.order if n in have])
            rest = range(len(have), out.aval.ndim)
            results.append(transpose(out, (*[have.index(n) for n in ordered], *rest)))
            after.append(ordered)
        return results, after


class _Around:
    """A context manager in which names and types are those around the function of parts."""

    __slots__ = ("inside", "outside")

    def __init__(self) -> None:
        self.outside = state.axes, state.manual, _options.gradix_mesh

    def __enter__(self) -> None:
        axes, manual, mesh = self.outside
        self.inside = state.axes, state.manual, _config.enter_local("gradix_mesh", mesh)
        state.axes, state.manual = axes, manual

    def __exit__(self, *exc) -> None:
        state.axes, state.manual, before = self.inside
        _config.leave_local("gradix_mesh", before)


def _communicates(operation, params: dict, sizes: dict) -> tuple:
    """The mesh axes along which an operation communicates."""
    return tuple([n for n in operation.names(params) if n in sizes]) if isinstance(operation, Collective) else ()


def _joins(operation: Collective, params: dict) -> bool:
    """Whether a collective can be mapped over its axes one after the other."""
    return operation.joins and params.get("axis_index_groups") is None


def _function(prim, params: dict) -> Callable:
    """A primitive as a function to a list of results."""
    if prim.multiple_results:
        return lambda *xs: bind(prim, xs, params)
    return lambda *xs: [bind(prim, xs, params)]


def _nested(function: Callable, order: Sequence, sizes: dict, vals: Sequence, names: Sequence) -> tuple[list, list]:
    """A function mapped over the axes in `order`, of values whose leading axes have these names."""
    if not order:
        outs = function(*vals)
        return outs, [()] * len(outs)
    first, found = order[0], []
    mapped = [have[:1] == (first,) for have in names]

    def inner(*xs):
        left = [have[m:] for have, m in zip(names, mapped)]
        outs, got = _nested(function, order[1:], sizes, xs, left)
        found[:] = got
        return outs

    outs, axes = batch(inner, AxisData(first, sizes[first]), vals, [0 if m else None for m in mapped])
    return (
        [o if a is None else move_axis(o, a, 0) for o, a in zip(outs, axes)],
        [have if a is None else (first, *have) for have, a in zip(found, axes)],
    )


def _spread(x, have: tuple, wanted: Sequence, sizes: dict) -> tuple[Any, tuple]:
    """An array of parts, repeated along the axes in `wanted` along which the parts are equal."""
    for n in wanted:
        if n not in have:
            x, have = to_axis(sizes[n], x, None, 0), (n, *have)
    return x, have


def _on_host(x):
    """A concrete array without its devices, so that operations on it are quick."""
    if type(x) is not ArrayImpl or x.aval.place is None or isinstance(x.aval.dtype, ExtendedDType):
        return x
    return as_array(np.asarray(x))


def _undivided(x):
    """An array that its type does not divide, so that it can be cut into parts in another way."""
    if not isinstance(x, Tracer):
        return _on_host(x)
    division = x.aval.division
    return x if division is None else reshard(x, division.update(spec=PartitionSpec()))


def can_run(in_specs: Sequence, out_specs: Any) -> bool:
    """Whether functions on parts divided by these specs run with numbers.

    Those of sums that are still to be made do not, nor those of examples that types divide.
    """
    if state.stage is not None or state.mapped is not None and state.mapped.axis.division is not None:
        return False
    specs = [*in_specs, *([None] if callable(out_specs) else tree_leaves(out_specs))]
    return all(isinstance(s, PartitionSpec) and not s.unreduced | s.reduced for s in specs)


def run(function: Callable, xs: list, avals: list, specs: Sequence, out_specs: list, inside: part_of_mesh) -> list:
    """The results of a function of lists that each device runs on its part, computed for all devices at once.

    Args:
        xs: the whole arrays.
        avals: the types of their parts.
        specs: how they are divided.
        out_specs: a list that holds the specs of the results when `function` returns.
        inside: the context in which one device's part is traced.
    """
    mesh = inside.mesh
    trace = PartTrace(mesh, inside.axes)
    sizes, order = trace.sizes, trace.order
    xs = [_undivided(x) for x in xs]
    parts = [_parts(x, spec, sizes, order) for x, spec in zip(xs, specs)]
    with inside, new_level(trace):
        state.axes = {**state.axes, **{n: MeshAxis(trace, size) for n, size in sizes.items()}}
        given = [PartTracer(trace, val, names, t) for (val, names), t in zip(parts, avals)]
        found = [trace.lift(o) for o in function(*given)]
    return [_whole(o, spec, sizes, mesh) for o, spec in zip(found, out_specs)]


def _entries(spec: PartitionSpec, ndim: int) -> list[tuple]:
    """For each axis of an array the mesh axes over which it is divided."""
    return [tuple(axes_of(p)) for p in spec] + [()] * (ndim - len(spec))


def _parts(x, spec: PartitionSpec, sizes: dict, order: Sequence) -> tuple[Any, tuple]:
    """An array as the parts of all devices, and the mesh axes along which they differ."""
    entries, shape, labels = _entries(spec, x.aval.ndim), [], []
    for n, entry in zip(x.aval.shape, entries):
        counts = [sizes[a] for a in entry]
        shape += [*counts, n // prod(counts)]
        labels += [*entry, None]
    names = tuple([n for n in order if n in labels])
    kept = [i for i, label in enumerate(labels) if label is None]
    return transpose(reshape(x, tuple(shape)), (*[labels.index(n) for n in names], *kept)), names


def _whole(part: PartTracer, spec: PartitionSpec, sizes: dict, mesh: BaseMesh):
    """The array that the parts of all devices make; along axes that the spec does not name, the first is taken."""
    x, names = part.val, part.names
    entries = _entries(spec, part.aval.ndim)
    wanted = [n for entry in entries for n in entry]
    for i in reversed(range(len(names))):
        if names[i] not in wanted:
            x = x[(slice(None),) * i + (0,)]
    names = tuple([n for n in names if n in wanted])
    x, names = _spread(x, names, wanted, sizes)
    order, shape = [], []
    for i, (n, entry) in enumerate(zip(part.aval.shape, entries)):
        order += [*[names.index(a) for a in entry], len(names) + i]
        shape.append(n * prod([sizes[a] for a in entry]))
    x = reshape(transpose(x, tuple(order)), tuple(shape))
    if not isinstance(mesh, Mesh):
        return x
    sharding = NamedSharding(mesh, spec)
    if not isinstance(x, Tracer):
        return device_put(x, sharding)
    if not mesh.abstract_mesh.explicit_axes:
        return x
    # cotangents come back on one device, since the parts of each device are cut from the whole of them
    return reshard(bind(move_p, (x,), {"to": NamedSharding(mesh, PartitionSpec()), "back": None}), sharding)
