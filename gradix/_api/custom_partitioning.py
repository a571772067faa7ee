"""`custom_partitioning`: functions for which the user defines how they are divided over devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._api.arguments import as_numbers, check_callable, name_of, named_as, signature
from gradix._api.boundary import arrays
from gradix._api.jit.jit import jit
from gradix._api.structs import ShapeDtypeStruct
from gradix._api.tracing import flat_body
from gradix._base.tree import keystr, tree_flatten as flatten, tree_flatten_with_path
from gradix._control.custom_partitioning import custom_partitioning_p
from gradix._control.shard_map import part_of_mesh
from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import GSPMDSharding, NamedSharding, assignment_of, axes_of
from gradix._core.sharding import PartitionSpec, Sharding
from gradix._core.trace import Tracer, bind, state
from gradix._ops.basis import to_axis
from gradix._runtime import xla_mlir
from gradix._runtime.program import lower
from gradix._stablehlo.sharding_rules import SdyShardingRule, ShapedRule, shaped, str_to_sdy_sharding_rule
from gradix._transforms.batch import AxisData, batch
from gradix._transforms.staging import stage_closed

next_number = itertools.count(1).__next__


class _Definition(NamedTuple):
    """The arguments of `def_partition`."""

    partition: Callable
    sharding_rule: Any
    is_decoded: bool
    name: str


class custom_partitioning:
    """A function for which the user defines how it is divided over the devices of a mesh.

    Under `jit` over several devices, the compiler calls the functions given to `def_partition`.
    They say which parts of the arguments each device needs, and what it runs on them. On one device
    and inside of `shard_map` and `pmap`, `fun` is called as it is. `vmap` keeps the partitioning.
    Derivatives are those of `fun`, and the compiler divides them, unless the function is wrapped in
    `custom_vjp` or `custom_jvp`.

    Args:
        fun: a function of pytrees of arrays, which are passed by position.
        static_argnums: the positions of arguments that are no arrays; the functions given to
            `def_partition` get them first.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @custom_partitioning
        ... def row_sums(x):
        ...     return x.sum(1)
        >>> def partition(mesh, arg_shapes, result_shape):
        ...     rows = arg_shapes[0].sharding.spec[:1]      # each device whole rows
        ...     whole = gradix.NamedSharding(mesh, gradix.P(*rows))
        ...     return mesh, lambda part: part.sum(1), whole, (whole,)
        >>> row_sums.def_partition(partition, sharding_rule="i j -> i", need_replication_factors=("j",))
        >>> gradix.jit(row_sums)(jnp.ones((2, 3)))
        Array([3., 3.], dtype=float32)
    """

    def __init__(self, fun: Callable, static_argnums=()):
        check_callable("custom_partitioning", fun)
        self.fun, self.static_argnums = fun, as_numbers("static_argnums", static_argnums)
        self._definition: _Definition | None = None
        self._compiled: Callable | None = None
        named_as(fun)(self)

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule=None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        """Define how the function is divided.

        Args:
            partition: a function of the mesh, the tuple of arguments and the results. These are
                trees of `ShapeDtypeStruct` with the shardings that the compiler suggests. It
                returns the mesh, the function that runs on one device's parts (collectives in it
                take the mesh's axis names), a tree of the results' shardings, and a tuple of the
                arguments' shardings.
            infer_sharding_from_operands, propagate_user_sharding: how compilers without Shardy
                propagate shardings. This compiler uses `sharding_rule` instead, which must be
                given together with these.
            decode_shardings: pass NamedShardings to `partition`, and not the compiler's form.
            sharding_rule: which axes of arguments and results are divided together. It is a text
                such as `"... i j, ... j k -> ... i k"`, an `SdyShardingRule`, or a function of the
                mesh and of the types of operands and results that returns one of these. Without a
                rule, nothing is divided unless `partition` requests it.
            reduction_factors: the names, in the rule, of axes that are summed over.
            need_replication_factors: the names of axes that must not be divided.
            permutation_factors: the names of axes along which devices permute data.
            factor_sizes: the sizes of names that occur only in compound factors, `(i j)`.

        Raises:
            ValueError: the rule is malformed.
            TypeError: the rule is of another type than those above.
        """
        check_callable("def_partition", partition)
        given = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        kinds: dict[str, Any] = {**{k: v for k, v in given.items() if v}, **factor_sizes}
        if isinstance(sharding_rule, SdyShardingRule) or callable(sharding_rule):
            if kinds:
                raise ValueError(
                    f"Unknown keyword arguments: {kinds}. They belong to a sharding_rule that is a "
                    "string; give them to SdyShardingRule or str_to_sdy_sharding_rule."
                )
        elif sharding_rule is not None:
            sharding_rule = str_to_sdy_sharding_rule(sharding_rule, **kinds)
        elif infer_sharding_from_operands is not None or propagate_user_sharding is not None:
            sharding_rule = _missing_rule
        self._definition = _Definition(partition, sharding_rule, bool(decode_shardings), name_of(self.fun))
        self._compiled = jit(self._run, static_argnums=self.static_argnums)

    def __call__(self, *args, **kwargs):
        if self._compiled is None:
            raise AttributeError(
                f"custom_partitioning of {name_of(self.fun)}: nothing says how it is divided. Call its "
                "def_partition(partition, sharding_rule=...) first."
            )
        args = self._by_position(args, kwargs)
        return self._run(*args) if state.stage is not None else self._compiled(*args)

    def _by_position(self, args, kwargs) -> tuple:
        sig = signature(self.fun)
        if sig is None:
            if kwargs:
                raise TypeError(
                    f"custom_partitioning of {name_of(self.fun)}: keyword arguments {sorted(kwargs)} could "
                    "not be resolved to positions, as it has no signature. Pass them by position."
                )
            return args
        bound = sig.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"custom_partitioning of {name_of(self.fun)}: keyword arguments {sorted(bound.kwargs)} could "
                "not be resolved to positions. Make them positional in its signature."
            )
        return bound.args

    def _run(self, *args):
        n = len(args)
        places = {i + n if i < 0 else i for i in self.static_argnums}
        statics = tuple([args[i] for i in sorted(places)])
        dynamic = tuple([a for i, a in enumerate(args) if i not in places])

        def plain(*given):
            rest = iter(given)
            return self.fun(*[args[i] if i in places else next(rest) for i in range(n)])

        leaves, tree = flatten(dynamic)
        name = name_of(self.fun)
        xs = arrays(f"custom_partitioning of {name}", leaves, tree, "argument ")
        flat = flat_body("custom_partitioning", named_as(self.fun)(plain), tree)
        jaxpr, consts = flat.stage([x.aval for x in xs])
        if any(isinstance(c, Tracer) for c in consts):
            raise ValueError(
                f"custom_partitioning of {name}: it uses traced arrays from outside, of types "
                f"{[c.aval.str_short() for c in consts if isinstance(c, Tracer)]}. Pass them as arguments: "
                "what one device runs gets its parts of arguments alone."
            )
        closed = ClosedJaxpr(jaxpr, consts)
        partitioner = _Partitioner(self._definition, statics, closed, tree, flat.out_tree)
        outs = bind(custom_partitioning_p, xs, {"jaxpr": closed, "name": name, "partitioner": partitioner})
        return flat.out_tree.unflatten(outs)


def _missing_rule(*_):
    raise NotImplementedError(
        "Shardy is used, but sharding propagation callbacks instead of sharding_rule are provided. Need "
        "to provide sharding_rule to migrate to Shardy: def_partition(partition, "
        "sharding_rule='... -> ...')."
    )


class _Answer(NamedTuple):
    """The function that one device runs on lists of arrays, and the shardings around it."""

    mesh: Mesh
    function: Callable
    in_shardings: list
    out_shardings: list


class _Partitioner:
    """Says how one call is divided; `_runtime/xla_partitioning.py` finds it by a number."""

    def __init__(self, definition: _Definition, statics: tuple, jaxpr, in_tree, out_tree):
        self.number = next_number()
        self.definition, self.statics = definition, statics
        self.in_avals, self.out_avals = tuple(jaxpr.in_avals), tuple(jaxpr.out_avals)
        self.in_tree, self.out_tree = in_tree, out_tree

    def __repr__(self) -> str:
        return self.definition.name

    def batched(self, size: int, mapped: tuple, jaxpr: ClosedJaxpr) -> _Partitioner:
        return _Batched(self, size, mapped, jaxpr)

    def rule(self, mesh) -> str:
        found = self.shaped_rule(mesh)
        return "" if found is None else found.text()

    def shaped_rule(self, mesh) -> ShapedRule | None:
        rule = self.definition.sharding_rule
        if rule is None:
            return None
        if not isinstance(rule, SdyShardingRule):
            types = [[xla_mlir.type_of(a) for a in row] for row in (self.in_avals, self.out_avals)]
            rule = rule(*self.statics, mesh, *types)
            if not isinstance(rule, SdyShardingRule):
                rule = str_to_sdy_sharding_rule(rule)
        return shaped(rule, [a.shape for a in self.in_avals], [a.shape for a in self.out_avals])

    def answer(self, mesh, devices, in_shardings, out_shardings):
        """One device's program as text, and its shardings of operands and results."""
        found = self.divide(mesh, devices, in_shardings, out_shardings)
        parts = [local_part(a, s) for a, s in zip(self.in_avals, found.in_shardings)]
        with part_of_mesh(found.mesh, frozenset(found.mesh.axis_names), False):
            closed = stage_closed(lambda *xs: found.function(*xs), parts)
        wanted = [local_part(a, s) for a, s in zip(self.out_avals, found.out_shardings)]
        got = closed.out_avals
        if [(a.shape, a.dtype) for a in got] != [(a.shape, a.dtype) for a in wanted]:
            raise ValueError(
                f"Mismatch in result shapes: the function of one device that partition of {self} returned "
                f"gives {[a.str_short() for a in got]}, but its parts of the results are "
                f"{[a.str_short() for a in wanted]}."
            )
        module = lower(closed, "part", hoist_bytes=None, devices=devices, part_of=found.mesh)
        if module.host_callbacks:
            raise NotImplementedError(
                f"custom_partitioning of {self}: what one device runs calls Python, which XLA cannot add "
                "to a program that it partitions. Call it outside of the function."
            )
        return module.text, found.in_shardings, found.out_shardings

    def divide(self, mesh, devices, in_shardings, out_shardings) -> _Answer:
        d = self.definition
        if not d.is_decoded:
            in_shardings = [_undecoded(s, a.ndim) for s, a in zip(in_shardings, self.in_avals)]
            out_shardings = [_undecoded(s, a.ndim) for s, a in zip(out_shardings, self.out_avals)]
        else:
            in_shardings = [_in_full(s, a.ndim) for s, a in zip(in_shardings, self.in_avals)]
            out_shardings = [_in_full(s, a.ndim) for s, a in zip(out_shardings, self.out_avals)]
        args = self.in_tree.unflatten(_structs(self.in_avals, in_shardings))
        results = self.out_tree.unflatten(_structs(self.out_avals, out_shardings))
        found = d.partition(*self.statics, mesh, args, results)
        if not isinstance(found, (tuple, list)) or len(found) != 4:
            raise TypeError(
                f"partition of {self} must return (mesh, function, result_shardings, arg_shardings), got {found!r}."
            )
        own_mesh, function, wanted_outs, wanted_ins = found
        own_mesh = mesh if own_mesh is None else own_mesh
        if not isinstance(own_mesh, Mesh):
            raise TypeError(f"partition of {self} must return a Mesh first, as it was given; got {own_mesh!r}.")
        if not isinstance(wanted_ins, tuple):
            raise ValueError(
                f"Expected tuple, got {wanted_ins}: partition of {self} returns a tuple with the shardings of "
                "each argument."
            )
        flat = flat_body(f"partition of {self}", function, self.in_tree)
        return _Answer(
            own_mesh,
            flat,
            self._shardings("arg_shardings", self.in_tree, wanted_ins, devices),
            self._shardings("result_shardings", self.out_tree, wanted_outs, devices),
        )

    def _shardings(self, what: str, tree, given, devices) -> list[Sharding]:
        leaves, own = flatten(given, lambda s: s is None or isinstance(s, Sharding))
        if own != tree:
            raise ValueError(f"partition of {self} must return {what} as a tree of shardings like {tree}, got {own}.")
        for path, s in tree_flatten_with_path(given, lambda s: s is None)[0]:
            if not isinstance(s, Sharding):
                raise ValueError(
                    "Custom Partitioning rules must return Sharding: partition of "
                    f"{self} returned {s!r} of type {type(s).__name__} in {what}{keystr(path)}. Write "
                    "NamedSharding(mesh, PartitionSpec(...))."
                )
            own = assignment_of(s)
            if set(own) != set(devices):
                raise ValueError(
                    f"partition of {self} returned in {what}{keystr(path)} a sharding on the devices "
                    f"{[d.id for d in own]}, but the program runs on {[d.id for d in devices]}. Make it on "
                    "the mesh that partition is given."
                )
        return leaves


class _Batched(_Partitioner):
    """Divides a call under vmap as `inner`, and the batch axis as it is divided in the operands."""

    def __init__(self, inner: _Partitioner, size: int, mapped: tuple, jaxpr: ClosedJaxpr):
        super().__init__(inner.definition, inner.statics, jaxpr, inner.in_tree, inner.out_tree)
        self.inner, self.size, self.mapped = inner, size, mapped

    def shaped_rule(self, mesh) -> ShapedRule | None:
        found = self.inner.shaped_rule(mesh)
        return None if found is None else found.batched(self.size, self.mapped)

    def divide(self, mesh, devices, in_shardings, out_shardings) -> _Answer:
        whole = [s for s, m in zip(in_shardings, self.mapped) if m] + list(out_shardings)
        lead = next((axes_of(s.spec[0]) for s in whole if _leads(s)), ())
        found = self.inner.divide(
            mesh,
            devices,
            [_without_lead(s, a) if m else s for s, a, m in zip(in_shardings, self.in_avals, self.mapped)],
            [_without_lead(s, a) for s, a in zip(out_shardings, self.out_avals)],
        )
        answered = [*found.in_shardings, *found.out_shardings]
        taken = {n for s in answered for p in getattr(s, "spec", ()) for n in axes_of(p)}
        if found.mesh != mesh or not all(isinstance(s, NamedSharding) for s in answered):
            lead = ()
        lead = tuple([n for n in lead if n not in taken])
        axes = [0 if m else None for m in self.mapped]
        count = self.size
        for n in lead:
            count //= mesh.shape[n]

        def mapped(*parts):
            outs, places = batch(found.function, AxisData(None, count, None), list(parts), axes)
            return [to_axis(count, o, p, 0) for o, p in zip(outs, places)]

        return _Answer(
            found.mesh,
            mapped,
            [_with_lead(s, lead) if m else s for s, m in zip(found.in_shardings, self.mapped)],
            [_with_lead(s, lead) for s in found.out_shardings],
        )


def _structs(avals, shardings) -> list:
    return [ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, shardings)]


def local_part(aval, sharding: Sharding):
    """The type of one device's part of an array of type `aval`."""
    return make_aval(sharding.shard_shape(aval.shape), aval.dtype, False)


def _undecoded(sharding: Any, ndim: int) -> GSPMDSharding:
    """A sharding in the compiler's form."""
    if isinstance(sharding, GSPMDSharding):
        return sharding
    rows = sharding.coordinates(ndim)
    return GSPMDSharding(assignment_of(sharding), sharding.factors(ndim), rows)


def _in_full(sharding: Sharding, ndim: int) -> Sharding:
    """A sharding whose spec has an entry for each axis."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    row = (*sharding.spec, *[None] * (ndim - len(sharding.spec)))
    return sharding.update(spec=PartitionSpec(*row))


def _leads(sharding) -> bool:
    return isinstance(sharding, NamedSharding) and bool(sharding.spec) and bool(axes_of(sharding.spec[0]))


def _without_lead(sharding: Any, aval) -> Sharding:
    """The sharding of one example: without the leading batch axis."""
    if isinstance(sharding, NamedSharding):
        return sharding.update(spec=PartitionSpec(*sharding.spec[1:]))
    rows = sharding.coordinates(aval.ndim)[:, 1:]
    return GSPMDSharding(assignment_of(sharding), sharding.factors(aval.ndim)[1:], rows)


def _with_lead(sharding: Any, lead: tuple) -> Sharding:
    """The sharding of all examples: with a leading batch axis divided over `lead`."""
    if isinstance(sharding, NamedSharding):
        return sharding.update(spec=PartitionSpec(lead or None, *sharding.spec))
    if not isinstance(sharding, GSPMDSharding):
        return sharding
    counts, devices = sharding._counts, assignment_of(sharding)
    rows = sharding.coordinates(len(counts))
    return GSPMDSharding(devices, (1, *counts), [(0, *row) for row in rows])
