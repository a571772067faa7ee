"""`shard_map`: each device of a mesh runs a function on its own part of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from math import prod
from typing import Any

import numpy as np

from gradix._api.arguments import argument_names, check_callable, name_of
from gradix._api.boundary import Flat, arrays, positional, with_values_above
from gradix._api.constraints import reshard
from gradix._api.refs import Lent
from gradix._base import config as _config
from gradix._base.errors import NonConcreteBooleanIndexError, class_of
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import boundary
from gradix._base.tree import flatten_axes, keystr, tree_flatten as flatten, tree_flatten_with_path
from gradix._control.shard_map import around, local_aval, part_of_mesh, shard_map_p, varying_of
from gradix._core.aval import reduced_axes, unreduced_axes, varying_axes
from gradix._core.divisions import entries, names_in, tracked_axes
from gradix._core.jaxpr import DebugInfo
from gradix._core.mesh import AbstractMesh, AxisType, BaseMesh, Mesh
from gradix._core.named_sharding import axes_of
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._core.trace import bind, state
from gradix._ops.collectives import names_of, vary
from gradix._transforms.staging import stage_open

_numbers = lazy_module("gradix._api.mapping.parts_with_numbers")
_values = lazy_module("gradix._api.mapping.parts_of_values")
_options = _config.state
_ARRAYS = (Array, Ref, np.ndarray, np.generic)


class _Infer:
    """The default of `in_specs`: specs are taken from the types of the arguments."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: BaseMesh | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Any:
    """`f` run by each device of a mesh on its part of the arguments, for its part of the results.

    Inside, arrays have the shapes of parts, and collectives such as `lax.psum` communicate over the
    mesh's axes.

    Args:
        f: the function of one device. Without it, a decorator is returned.
        out_specs: PartitionSpecs of the results, as a tree prefix of them. Along a mesh axis that
            a spec does not name, all devices must return the same.
        in_specs: PartitionSpecs of the positional arguments, as a tree prefix of their tuple; None
            for an argument that every device gets whole, which may be any Python object. Of a
            mutable array, each device gets a ref to its part.
        mesh: the mesh; by default the mesh in force.
        axis_names: the manual axes of the mesh, over which arguments are divided; by default all
            axes. The compiler divides over the other axes.
        check_vma: track in types over which axes values vary. Then `out_specs` are checked, and
            derivatives inside sum the contributions of all devices.

    Returns:
        A function of the whole arguments.

    Raises:
        ValueError: there is no mesh; a spec names an axis that is not manual, has more entries than
            the array has axes, or does not divide an axis evenly; or a result may vary over a mesh
            axis that its spec in `out_specs` does not name.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import Mesh, PartitionSpec as P
        >>> mesh = Mesh(gradix.devices()[:1], "i")
        >>> total = gradix.shard_map(lambda x: gradix.lax.psum(x.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
        >>> total(jnp.arange(4.0))
        Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    check_callable("shard_map", f)
    if mesh is not None and not isinstance(mesh, BaseMesh):
        raise TypeError(
            "shard_map requires a `gradix.sharding.Mesh` or a `gradix.sharding.AbstractMesh` instance for "
            f"its argument mesh, but got {mesh} of type {class_of(mesh)}."
        )
    if isinstance(axis_names, str):
        raise TypeError(f"shard_map axis_names must be a set of names, got {axis_names!r}. Write {{{axis_names!r}}}.")
    call = _ShardMapped(f, out_specs, in_specs, mesh, frozenset(axis_names), check_vma=check_vma)

    @functools.wraps(f)
    @boundary
    def shard_mapped(*args, **named):
        if named:
            raise TypeError(
                f"shard_map of {call.name} takes its arguments by position, for which in_specs has an entry each, but "
                f"got {', '.join(named)} by name. Pass {'it' if len(named) == 1 else 'them'} by position."
            )
        return call(args)

    return shard_mapped


class _ShardMapped:
    """A function with its specs; called with the tuple of arguments."""

    __slots__ = ("f", "name", "out_specs", "in_specs", "mesh", "axes", "check_vma", "divides")

    def __init__(self, f, out_specs, in_specs, mesh, axes: frozenset, *, check_vma: bool, divides: bool = False):
        self.f, self.name, self.out_specs, self.mesh, self.axes = (f, name_of(f), out_specs, mesh, axes)
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.check_vma, self.divides = check_vma, divides

    def __call__(self, args: tuple):
        above = with_values_above(args)
        if above is not None:
            return self._of_values(*above)
        leaves, tree = flatten(args)
        if not any(isinstance(x, Ref) for x in leaves):
            return self._of_operands(args, leaves, tree, None)[0]
        lent = Lent("shard_map", leaves)
        with lent:
            result, last = self._of_operands(args, leaves, tree, lent)
        lent.close(last)
        return result

    def _of_values(self, leaves: list, tree) -> Any:
        """The result for arguments of which some are values of types above arrays."""
        mesh, axes = self._mesh()

        def mapped(function, in_specs, out_specs):
            return _ShardMapped(function, out_specs, in_specs, self.mesh, self.axes, check_vma=self.check_vma)

        types = (
            lambda aval, spec: aval.shard(mesh, axes, self.check_vma, spec),
            lambda aval, spec: aval.unshard(mesh, self.check_vma, spec),
            lambda x, spec: _divided(x, spec, mesh, axes),
        )
        out_specs = self.out_specs() if callable(self.out_specs) else self.out_specs
        return _values.call(mapped, self.f, (self.in_specs, out_specs), types, leaves, tree=tree)

    def _of_operands(self, args: tuple, leaves: list, tree, lent: Lent | None) -> tuple[Any, list]:
        """The result, and the last values of refs among the arguments, whose parts are refs inside."""
        mesh, axes = self._mesh()
        wanted = self._wanted_specs(tree, args)
        others = {i: x for i, (x, s) in enumerate(zip(leaves, wanted)) if s is None and not isinstance(x, _ARRAYS)}
        opened = leaves if lent is None else lent.open(leaves)
        xs = arrays("shard_map", opened, tree, "argument ", others)
        xs = [x for i, x in enumerate(xs) if i not in others] if others else xs
        if self.divides and self.in_specs is not Infer:
            asked = [_as_spec("in_axes", s) for i, s in enumerate(wanted) if i not in others]
            xs = [_divided(x, spec, mesh, axes) for x, spec in zip(xs, asked)]
        specs = self._specs_of_arguments(wanted, xs, args, others, (mesh, axes))
        avals = [local_aval(x.aval, s, mesh, axes, self.check_vma) for x, s in zip(xs, specs)]
        of_refs = [] if lent is None else _at([*others], lent.places, specs)
        out_specs: list = []

        def given(operands):
            rest = iter(operands)
            inside = [others[i] if i in others else next(rest) for i in range(len(leaves))]
            return positional(tree).unflatten(inside if lent is None else lent.inside(inside))

        def close(leaves, out_tree):
            given = arrays(f"shard_map of {self.name}", leaves, out_tree, "output")
            specs = self._specs_of_results(out_tree, given, mesh, axes)
            last = [] if lent is None else lent.last()
            for s, x in zip(of_refs, last):
                self._check_varying("in_specs of a mutable array", s, x, mesh, axes)
            out_specs[:] = specs = [*of_refs, *specs]
            if not self.check_vma:
                return [*last, *given]
            return [
                vary(o, missing) if (missing := varying_of(s, mesh) - o.aval.vma) else o
                for o, s in zip([*last, *given], specs)
            ]

        debug = DebugInfo.of(self.name, argument_names(self.f, len(args)))
        flat = Flat(self.f, self.name, given, close=close, names=debug)
        inside = part_of_mesh(mesh, axes, self.check_vma)
        if state.shows_values and lent is None and _numbers.can_run(specs, self.out_specs):
            try:
                results = _numbers.run(flat, xs, avals, specs, out_specs, inside)
                return flat.out_tree.unflatten(results), []
            except NonConcreteBooleanIndexError:
                pass  # sizes that the values of each device decide are known to compiled programs only
        with inside:
            jaxpr, consts = stage_open(flat, avals, debug)
        _check_examples(xs, specs, out_specs)
        results = bind(
            shard_map_p,
            [*consts, *xs],
            {
                "jaxpr": jaxpr,
                "mesh": mesh,
                "manual_axes": axes,
                "check_vma": self.check_vma,
                "in_specs": (*[PartitionSpec()] * len(consts), *specs),
                "out_specs": tuple(out_specs),
            },
        )
        n = len(of_refs)
        return flat.out_tree.unflatten(results[n:]), results[:n]

    def _mesh(self) -> tuple[BaseMesh, frozenset]:
        """The mesh, and those of its axes that become manual."""
        around = _options.gradix_mesh
        mesh = self.mesh if self.mesh is not None else around
        if mesh is None or not mesh.axis_names:
            raise ValueError(
                "The context mesh cannot be empty. Either use `gradix.set_mesh(mesh)` to enter into a mesh "
                "context or pass a mesh to `shard_map` via the `mesh` keyword argument."
            )
        taken = frozenset(around.manual_axes) if around is not None else frozenset()
        if taken and mesh.shape_tuple != around.shape_tuple:
            raise ValueError(f"The context mesh {around} should match the mesh passed to shard_map {mesh!s}.")
        if not self.axes <= frozenset(mesh.axis_names):
            raise ValueError(
                f"shard_map requires axis_names={set(self.axes)} to be a subset of mesh.axis_names={mesh.axis_names}."
            )
        axes = self.axes or frozenset(mesh.axis_names) - taken
        if axes & taken:
            raise ValueError(
                f"shard_map axis_names={set(axes)} are manual already, in the shard_map around this one: "
                f"name only other axes of {mesh.axis_names}."
            )
        if isinstance(mesh, Mesh) and taken and isinstance(around, AbstractMesh):
            # the devices are those of the enclosing shard_map
            mesh = mesh.abstract_mesh
        return mesh, axes

    def _wanted_specs(self, tree, args) -> list:
        """What the user gave for each leaf of the arguments."""
        if self.in_specs is Infer:
            return [Infer] * tree.num_leaves
        is_one_each = isinstance(self.in_specs, tuple) and not isinstance(self.in_specs, PartitionSpec)
        if is_one_each and len(self.in_specs) != len(args):
            raise ValueError(
                f"shard_map applied to the function '{self.name}' was given an in_specs tuple of length "
                f"{len(self.in_specs)}, but was called with {len(args)} positional arguments. Pass one "
                "entry for each, or one PartitionSpec for all."
            )
        return flatten_axes("shard_map in_specs", tree, self.in_specs)

    def _specs_of_arguments(self, wanted, xs, args, others, where) -> list:
        mesh, axes = where
        if self.in_specs is Infer:
            return [_inferred(x, axes) for x in xs]
        specs = [_as_spec("in_specs", s) for i, s in enumerate(wanted) if i not in others]
        paths = [p for i, (p, _) in enumerate(tree_flatten_with_path(args)[0]) if i not in others]
        for spec, x, path in zip(specs, xs, paths):
            self._check("in_specs", spec, x, mesh, axes, f"the passed args{keystr(path)}")
        return specs

    def _specs_of_results(self, tree, xs, mesh, axes) -> list:
        wanted = self.out_specs() if callable(self.out_specs) else self.out_specs
        specs = [_as_spec("out_specs", s) for s in flatten_axes("shard_map out_specs", tree, wanted)]
        for spec, x in zip(specs, xs):
            self._check("out_specs", spec, x, mesh, axes, f"{self.name}(*args)")
            held = reduced_axes(x.aval.vma) & axes - spec.reduced
            held -= {a for p in spec for a in axes_of(p)}
            if held:
                raise ValueError(
                    f"out_specs passed to shard_map should be equal to the reduced present on the out_aval. Got "
                    f"out_specs={spec} and out_aval={x.aval.str_short()}. Write "
                    f"{spec.update(unreduced=spec.unreduced - held, reduced=spec.reduced | held)}, or gather and sum "
                    "with to='invarying' in place of to='reduced'."
                )
            self._check_summands(spec, x, mesh)
            self._check_varying("out_specs", spec, x, mesh, axes)
        return specs

    def _check_summands(self, spec: PartitionSpec, x: Array, mesh: BaseMesh) -> None:
        """Raise for a result of summands that is not said to be one, or that would be summed too often."""
        left = unreduced_axes(x.aval.vma) - spec.unreduced
        if left:
            raise ValueError(
                f"shard_map of {self.name}: {x.aval.str_short()} is still to be summed over {_shown(left)}, but its "
                f"out_specs are {spec}. Sum it with gradix.lax.psum or gradix.lax.psum_scatter, or write "
                f"unreduced={_shown(spec.unreduced | left)} in out_specs. To take the parts as they are, pass "
                "check_vma=False."
            )
        equal = tracked_axes(mesh, spec.unreduced) - varying_axes(x.aval.vma) - unreduced_axes(x.aval.vma)
        if self.check_vma and equal:
            raise ValueError(
                f"shard_map of {self.name}: out_specs is {spec}, so that the result is summed over {_shown(equal)}, "
                f"but the parts of {x.aval.str_short()} are equal along these axes: each device would add the whole "
                f"again. Leave {_shown(equal)} out of unreduced, or say that the parts are summands of their own, "
                "with gradix.lax.pcast(x, ..., to='varying')."
            )

    def _check_varying(self, which: str, spec: PartitionSpec, x: Array, mesh, axes) -> None:
        """Raise if a value may vary over a mesh axis that its spec does not name."""
        varying = varying_axes(x.aval.vma)
        more = (varying & axes) - _named(spec)
        if self.check_vma and more:
            raise ValueError(
                f"shard_map applied to the function '{self.name}' was given {which} which require replication "
                f"which can't be statically inferred given the mesh:\n\nThe mesh given has shape {mesh.axis_sizes} "
                f"with corresponding axis names {mesh.axis_names}.\n\n{which} is {spec} which implies that the "
                f"corresponding output value is only varying across mesh axes {_shown(_named(spec))} and not "
                f"{_shown(more)}, but it was inferred to be possibly varying over "
                f"{_shown(varying & axes)}\n\nCheck if these output values are meant to be replicated over "
                f"those mesh axes. If not, consider revising the corresponding {which} entries. If so, consider "
                "disabling the check by passing the check_vma=False argument to `gradix.shard_map`."
            )

    def _check(self, which: str, spec: PartitionSpec, x: Array, mesh, axes, what: str) -> None:
        head = f"shard_map applied to the function '{self.name}' was given"
        for a in [a for p in spec for a in axes_of(p)]:
            if a not in axes:
                raise ValueError(
                    f"shard_map {which} argument must refer to an axis marked as manual ({axes}), "
                    f"but:\n\n  {which} refers to {a!r}\n\nCheck the {which} values passed to shard_map."
                )
        self._check_summed_axes(which, spec, mesh, axes)
        if len(spec) > x.aval.ndim:
            raise ValueError(
                f"{head} an {which} entry which is too long to be compatible with the corresponding "
                f"{'input' if which == 'in_specs' else 'output'} value from the function:\n\n{which} is "
                f"{spec} which has length {len(spec)}, but {what} has shape {x.aval.str_short()}, which "
                f"has rank {x.aval.ndim} (and {x.aval.ndim} < {len(spec)})\n\nEntries in {which} must be "
                "of length no greater than the number of axes in the corresponding value. Either revise "
                "the spec to be shorter, or the value to have sufficient rank."
            )
        if which == "in_specs":
            own = getattr(getattr(x.aval.place, "sharding", None), "mesh", None)
            if isinstance(mesh, AbstractMesh) and own is not None and own.shape_tuple != mesh.shape_tuple:
                raise ValueError(
                    f"Mesh shape of the input {own.shape_tuple} does not match the mesh shape passed to shard_map, "
                    f"{mesh.shape_tuple}, for {what} of shape {x.aval.str_short()}. Pass the mesh of the array."
                )
            self._check_division(spec, x, mesh, axes)
            for i, p in enumerate(spec):
                n = prod([mesh.shape[a] for a in axes_of(p)])
                if x.aval.shape[i] % n:
                    raise ValueError(
                        f"{head} argument arrays with axis sizes that are not evenly divisible by the corresponding "
                        f"mesh axis sizes:\n\nThe mesh given has shape {mesh.axis_sizes} with corresponding axis names "
                        f"{mesh.axis_names}.\n\n{what} of shape {x.aval.str_short()} corresponds to in_specs of value "
                        f"{spec}, which maps array axis {i} (of size {x.aval.shape[i]}) to mesh axis {p!r} (of size "
                        f"{n}), but {n} does not evenly divide {x.aval.shape[i]}\n\nArray arguments' axis sizes must "
                        "be evenly divisible by the mesh axis or axes indicated by the corresponding elements of the "
                        "argument's in_specs entry. Pad the argument, or change the mesh."
                    )

    @staticmethod
    def _check_summed_axes(which: str, spec: PartitionSpec, mesh: BaseMesh, axes: frozenset) -> None:
        """Raise for a spec that is unreduced or reduced over a mesh axis whose types do not say so."""
        types = dict(zip(mesh.axis_names, mesh.axis_types))
        for kind in ("unreduced", "reduced"):
            names = getattr(spec, kind)
            if all(types.get(n) is AxisType.Explicit for n in names):
                continue
            if len(axes) < len(mesh.axis_names):
                raise NotImplementedError(
                    f"unreduced/reduced can only be passed to {which} when shard_map is in full manual mode, or over "
                    f"Explicit axes: got {spec} with axis_names={_shown(axes)} of the mesh {mesh}. Make the mesh with "
                    "axis_types=(AxisType.Explicit, ...)."
                )
            raise ValueError(
                f"{kind} in {which} {spec} can only be used when the mesh passed to shard_map contains axis names all "
                f"of type `Explicit`. Got mesh {mesh}. Make the mesh with axis_types=(AxisType.Explicit, ...)."
            )

    @staticmethod
    def _check_division(spec: PartitionSpec, x: Array, mesh, axes) -> None:
        """Raise if a spec contradicts the division over explicit axes in the type."""
        given, have, _ = _explicit_division(spec, x, mesh, axes)
        if given != have:
            raise ValueError(
                f"in_specs passed to shard_map: {spec} does not match the specs of the input: "
                f"{PartitionSpec(*entries(x.aval))} for arg: {x.aval.str_short()}. `in_specs` is an "
                "optional argument so you can omit specifying it; or divide the argument in this way with "
                "gradix.sharding.reshard(x, in_spec)."
            )


def _check_examples(xs: list, in_specs, out_specs) -> None:
    """Raise if `vmap` divides its examples over a mesh axis over which the function itself is divided."""
    if _options.jax_disable_vmap_shmap_error:
        return
    axes: list[Any] = [getattr(getattr(x, "_trace", None), "axis", None) for x in xs]
    given = {names_of(a.spmd_name) for a in axes if getattr(a, "spmd_name", None) is not None}
    for which, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
        named = {n for s in specs for n in names_in(s)}
        for names in given:
            if not named.isdisjoint(names):
                raise ValueError(
                    f"vmap spmd_axis_name cannot appear in shard_map {which}: spmd_axis_name={names} divides the "
                    f"examples over a mesh axis that {which}={tuple(specs)} divide arrays over. Leave it out, or name "
                    "another axis."
                )


def _explicit_division(spec: PartitionSpec, x: Array, mesh, axes) -> tuple[list, list, list]:
    """For each axis of an array the explicit mesh axes of a spec, those of its type, and the type's others."""
    named = axes & tracked_axes(mesh, around(mesh).explicit_axes)
    given = [tuple([a for a in axes_of(p) if a in named]) for p in spec] + [()] * (x.aval.ndim - len(spec))
    own = [axes_of(p) for p in entries(x.aval)]
    have = [tuple([a for a in p if a in named]) for p in own]
    return given, have, [tuple([a for a in p if a not in named]) for p in own]


def _divided(x: Array, spec: PartitionSpec, mesh, axes) -> Array:
    """The array, divided over explicit axes as a spec says."""
    given, have, rest = _explicit_division(spec, x, mesh, axes)
    if given == have or len(given) > x.aval.ndim:
        return x
    return reshard(x, PartitionSpec(*[g + r or None for g, r in zip(given, rest)]))


def _at(others: list[int], places: list[int], specs: list) -> list:
    """The specs of the leaves at some places; `specs` leaves those out that are no operands."""
    return [specs[p - sum([i < p for i in others])] for p in places]


def _as_spec(which: str, spec) -> PartitionSpec:
    if spec is None:
        return PartitionSpec()
    if not isinstance(spec, PartitionSpec):
        raise TypeError(
            f"shard_map {which} argument must be a pytree of `gradix.sharding.PartitionSpec` instances, but: "
            f"{which} is or holds {spec!r} of type {type(spec).__name__}."
        )
    if UNCONSTRAINED in tuple(spec):
        raise ValueError(f"shard_map {which} cannot have UNCONSTRAINED entries, got {spec}.")
    return spec


def _named(spec: PartitionSpec) -> frozenset:
    return frozenset([a for p in spec for a in axes_of(p)]) | spec.unreduced


def _shown(names) -> str:
    return "{" + ", ".join(sorted(map(str, names))) + "}"


def _inferred(x: Array, axes: frozenset) -> PartitionSpec:
    """The spec of an array's division over manual axes, from its type or its place."""
    sharding = x.aval.division
    if sharding is None and x.aval.place is not None:
        sharding = x.aval.place.sharding
    spec = getattr(sharding, "spec", PartitionSpec())
    return PartitionSpec(
        *[tuple([a for a in axes_of(p) if a in axes]) for p in spec],
        unreduced=spec.unreduced & axes,
        reduced=spec.reduced & axes,
    )


def smap(f: Callable | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Hashable) -> Any:
    """`shard_map` over one axis of the mesh in force, with axis numbers in place of specs.

    Args:
        f: the function of one part. Without it, a decorator is returned.
        in_axes: the axis of each argument that is divided; None if none is.
        out_axes: the axis of each result that is divided.
        axis_name: the mesh axis.

    Raises:
        ValueError: as for `shard_map`.
        TypeError: `in_axes` is left out, and the mesh axis is of type `Auto`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> with gradix.set_mesh(gradix.sharding.Mesh(gradix.devices()[:1], "i")):
        ...     gradix.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="i")(jnp.arange(2.0))
        Array([0., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    mesh = _options.gradix_mesh
    if in_axes is Infer and mesh is not None and axis_name in mesh.auto_axes:
        raise TypeError(
            f"smap: in_axes was not specified, and types do not say how arguments are divided over {axis_name!r}, "
            f"which is an Auto axis of {mesh}. Pass in_axes, such as in_axes=0."
        )

    def spec(axis):
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def specs(axes):
        leaves, tree = flatten(axes, lambda a: a is None)
        return tree.unflatten([spec(a) for a in leaves])

    ins = Infer if in_axes is Infer else specs(tuple(in_axes) if isinstance(in_axes, list) else in_axes)
    call = _ShardMapped(f, specs(out_axes), ins, None, frozenset({axis_name}), check_vma=True, divides=True)

    @functools.wraps(f)
    @boundary
    def smapped(*args):
        return call(args)

    return smapped


__all__ = ["AxisType", "Infer", "shard_map", "smap"]
