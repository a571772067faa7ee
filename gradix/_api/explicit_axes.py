"""Parts of programs where mesh axes are of another type: auto_axes, explicit_axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradix._api.arguments import check_callable
from gradix._api.constraints import reshard, with_sharding_constraint
from gradix._api.jit.jit import jit
from gradix._api.placing import placed
from gradix._base import config as _config
from gradix._base.tree import tree_flatten as flatten, tree_map
from gradix._core.array import ArrayImpl, as_array
from gradix._core.divisions import mesh_of, names_in
from gradix._core.mesh import AxisType, BaseMesh, Mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.operators import Array
from gradix._core.sharding import PartitionSpec
from gradix._core.trace import Tracer, bind, state
from gradix._ops.sharding import to_auto_p

_options = _config.state


class _axis_types:
    """A context in which some axes of the mesh in force have another type."""

    __slots__ = ("mesh", "before")

    def __init__(self, mesh: BaseMesh, names, kind: AxisType):
        self.mesh = mesh.abstract_mesh.update_axis_types(dict.fromkeys(names, kind))

    def __enter__(self) -> BaseMesh:
        self.before = _config.enter_local("gradix_mesh", self.mesh)
        return self.mesh

    def __exit__(self, *exc) -> None:
        _config.leave_local("gradix_mesh", self.before)


def _known_mesh(leaves) -> BaseMesh | None:
    """The mesh in force, or that of arrays."""
    mesh = _options.gradix_mesh
    if mesh is None or not mesh.axis_names:
        mesh = mesh_of([x.aval for x in leaves if isinstance(x, Array)])
    return mesh


def _mesh_for(what: str, leaves) -> BaseMesh:
    mesh = _known_mesh(leaves)
    if mesh is None:
        raise ValueError(
            "Context mesh cannot be empty. Please use `gradix.set_mesh` API to enter into a mesh context, "
            f"or call {what} with arrays that are divided over explicit axes of a mesh."
        )
    return mesh


def _named(what: str, axes, mesh: BaseMesh) -> tuple:
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [n for n in names if n not in mesh.axis_names]
    if unknown:
        raise ValueError(f"{what}: axes={axes} names {unknown}, which {mesh} does not have.")
    manual = [n for n in names if n in mesh.manual_axes]
    if manual:
        raise NotImplementedError(
            f"{what}: Going from `Manual` axes to `Auto` or `Explicit` ones is not possible: {manual} are manual in "
            f"the shard_map around the call, where each device has its part. Call {what} outside of shard_map, or name "
            f"other axes of {mesh}."
        )
    return names


def _on_mesh(specs, mesh: BaseMesh):
    """A tree of PartitionSpecs as one of NamedShardings."""
    return tree_map(
        lambda s: NamedSharding(mesh, s) if isinstance(s, PartitionSpec) else s,
        specs,
        is_leaf=lambda s: isinstance(s, PartitionSpec),
    )


def _free(x, names):
    """`x` as an array that the compiler divides along these axes; a concrete one stays where it is."""
    sharding = x.aval.place.sharding if type(x) is ArrayImpl and x.aval.place is not None else None
    if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh):
        return bind(to_auto_p, (x,), {"axes": names})
    mesh = sharding.mesh
    types = [AxisType.Auto if n in names else t for n, t in zip(mesh.axis_names, mesh.axis_types)]
    free = Mesh(mesh.devices, mesh.axis_names, axis_types=tuple(types))
    return placed(x, NamedSharding(free, sharding.spec, memory_kind=sharding.memory_kind))


def _run(wrapped: dict, key, inside: Callable, args):
    """Call `inside`: at once with concrete arrays and in a program that is being traced, else compiled."""
    if state.stage is not None or not any(isinstance(x, Tracer) for x in flatten(args)[0]):
        return inside(*args)
    try:
        found = wrapped.get(key)
        if found is None:
            found = wrapped[key] = jit(inside)
    except TypeError:
        found = jit(inside)
    return found(*args)


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """`f`, within which the compiler divides arrays over mesh axes that are `Explicit` outside.

    Args:
        f: a function of arrays. Without it, a decorator is returned.
        axes: the mesh axes; by default, all.
        out_sharding: how the results are divided, as PartitionSpecs or NamedShardings in a tree
            prefix of them; it may be given in the call instead.

    Returns:
        The function; its results have `out_sharding` in their types.

    Raises:
        TypeError: `out_sharding` is given neither here nor in the call.
        ValueError: no mesh is in force, or it lacks an axis.
        NotImplementedError: an axis is manual, inside of `shard_map`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import PartitionSpec as P
        >>> with gradix.set_mesh(gradix.make_mesh((1,), ("data",))):
        ...     x = gradix.device_put(jnp.ones((2, 3)), P("data"))
        ...     gradix.typeof(auto_axes(jnp.ravel, out_sharding=P("data"))(x))
        ShapedArray(float32[6@data])
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    check_callable("auto_axes", f)
    compiled: dict = {}

    @functools.wraps(f)
    def automatic(*args, **kwargs):
        wanted = kwargs.pop("out_sharding", out_sharding)
        if wanted is None:
            raise TypeError(
                "Missing required keyword argument: 'out_sharding'. auto_axes cannot know from types how "
                "its results are divided: write auto_axes(f, out_sharding=PartitionSpec(...))."
            )
        leaves, tree = flatten(wanted, lambda s: isinstance(s, PartitionSpec))
        given = flatten((args, kwargs))[0]
        if all(s == PartitionSpec() for s in leaves) and _known_mesh(given) is None:
            return f(*args, **kwargs)  # nothing is divided
        mesh = _mesh_for("auto_axes", given)
        names = _named("auto_axes", axes, mesh)
        specs = [s.spec if isinstance(s, NamedSharding) else s for s in leaves]
        used = {n for s in specs if isinstance(s, PartitionSpec) for n in names_in(s)}
        # types say nothing of axes that are `Auto` outside, too
        put = with_sharding_constraint if used and used.isdisjoint(mesh.explicit_axes) else reshard

        def inside(args, kwargs):
            args, kwargs = tree_map(lambda x: _free(as_array(x), names) if isinstance(x, Array) else x, (args, kwargs))
            with _axis_types(mesh, names, AxisType.Auto):
                out = f(*args, **kwargs)
            return put(out, _on_mesh(wanted, mesh))

        return _run(compiled, (mesh, tuple(leaves), tree), inside, (args, kwargs))

    return automatic


def explicit_axes(f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """`f`, within which types show how arrays are divided over mesh axes that are `Auto` outside.

    Args:
        f: a function of arrays. Without it, a decorator is returned.
        axes: the mesh axes; by default, all.
        in_sharding: how the arguments are divided, as PartitionSpecs or NamedShardings in a tree
            prefix of their tuple; it may be given in the call instead.

    Returns:
        The function; the compiler divides its results.

    Raises:
        TypeError: `in_sharding` is given neither here nor in the call.
        ValueError: no mesh is in force, or it lacks an axis.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import AxisType, PartitionSpec as P
        >>> def f(x):
        ...     print(gradix.typeof(x * 2))
        ...     return x * 2
        >>> with gradix.set_mesh(gradix.make_mesh((1,), ("data",), (AxisType.Auto,))):
        ...     explicit_axes(f, in_sharding=P("data"))(jnp.ones(2))
        float32[2@data]
        Array([2., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    check_callable("explicit_axes", f)
    compiled: dict = {}

    @functools.wraps(f)
    def explicit(*args, **kwargs):
        wanted = kwargs.pop("in_sharding", in_sharding)
        if wanted is None:
            raise TypeError(
                "Missing required keyword argument: 'in_sharding'. explicit_axes must be told how its "
                "arguments are divided: write explicit_axes(f, in_sharding=PartitionSpec(...))."
            )
        mesh = _mesh_for("explicit_axes", flatten((args, kwargs))[0])
        names = _named("explicit_axes", axes, mesh)

        def inside(args, kwargs):
            with _axis_types(mesh, names, AxisType.Explicit) as inner:
                specs = wanted if isinstance(wanted, (PartitionSpec, NamedSharding)) else tuple(wanted)
                out = f(*reshard(args, _on_mesh(specs, inner)), **kwargs)
                return tree_map(lambda x: _free(as_array(x), names), out)

        leaves, tree = flatten(wanted, lambda s: isinstance(s, PartitionSpec))
        return _run(compiled, (mesh, tuple(leaves), tree), inside, (args, kwargs))

    return explicit
