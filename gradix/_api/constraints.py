"""How programs say where values lie: with_sharding_constraint, reshard, shard_alike, layouts."""

from __future__ import annotations

from typing import Any, TypeVar

from gradix._api.boundary import arrays
from gradix._api.placing import as_sharding, device_put, placed
from gradix._base import config as _config
from gradix._base.tree import broadcast_prefix, tree_flatten as flatten
from gradix._core.array import ArrayImpl, as_array
from gradix._core.array_layouts import Format, Layout
from gradix._core.divisions import entries, explicit_entries, names_in, sums
from gradix._core.mesh import AbstractMesh
from gradix._core.named_sharding import NamedSharding, axes_of
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec, Sharding
from gradix._core.trace import Tracer, bind, state
from gradix._ops.sharding import (
    asked as asked,
    check_explicit,
    divided as divided,
    layout_constraint_p,
    of_rank as of_rank,
    rearranged as rearranged,
    reshard_p,
    shard_alike_p,
    sharding_constraint_p,
)
from gradix._runtime.placement import check_move, sharding_of

T = TypeVar("T")

_options = _config.state
_WHOLE = PartitionSpec()


def with_sharding_constraint(x: T, shardings: Any) -> T:
    """`x`, which the compiler must divide over devices as given; a concrete array is moved there.

    Args:
        x: arrays in a pytree.
        shardings: `Sharding`s, `Format`s, or `PartitionSpec`s on the mesh in force, in a pytree
            whose structure is a prefix of that of `x`.

    Raises:
        TypeError: a leaf of `shardings` is not a sharding.
        ValueError: the structures differ, or a sharding does not fit an array.
        RuntimeError: a `PartitionSpec` is given and no mesh is in context.

    Example:
        >>> import gradix
        >>> from gradix import lax
        >>> here = gradix.sharding.SingleDeviceSharding(gradix.devices()[0])
        >>> lax.with_sharding_constraint(gradix.numpy.ones(2), here)
        Array([1., 1.], dtype=float32)
    """
    return _constrained("with_sharding_constraint", sharding_constraint_p, x, shardings)


def _constrained(name: str, prim, x, shardings):
    leaves, tree = flatten(x)

    def is_leaf(s) -> bool:
        return s is None or isinstance(s, (Sharding, PartitionSpec, Format))

    try:
        spread = broadcast_prefix(shardings, x, is_leaf)
    except ValueError as e:
        raise ValueError(
            f"{name} shardings specification must be a tree prefix of the corresponding value. {e}"
        ) from None
    spread = [s for s, leaf in zip(spread, flatten(x, is_leaf)[0]) if leaf is not None]
    for leaf, sharding in zip(leaves, spread):
        is_apart = prim is sharding_constraint_p and state.stage is None
        if is_apart and isinstance(getattr(sharding, "mesh", None), AbstractMesh):
            _check_own_devices(name, leaf, sharding)
    given = arrays(name, leaves, tree, "x")
    return tree.unflatten([_apply(name, prim, a, s) for a, s in zip(given, spread, strict=True)])


def _check_own_devices(name: str, x, sharding) -> None:
    """Raise for a value without devices of its own, given a sharding whose mesh has none."""
    if isinstance(x, Tracer):
        return
    if not isinstance(x, ArrayImpl):
        raise ValueError(
            f"{name}: the sharding {sharding} is on an AbstractMesh, which has no devices, so that it requires an "
            f"Array that has some; got a value of type {type(x).__name__}. Pass a sharding on a Mesh, or put the "
            "value on devices with gradix.device_put."
        )
    if not isinstance(sharding_of(x), NamedSharding):
        raise TypeError(
            f"{name}: the sharding {sharding} is on an AbstractMesh, which has no devices, so that the array must have "
            f"a NamedSharding; got {sharding_of(x)}. Pass a sharding on a Mesh."
        )
    own = sharding_of(x).mesh  # type: ignore[attr-defined]
    if own.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {own.shape_tuple} does not match the mesh shape of the target sharding "
            f"{sharding.mesh.shape_tuple} for shape {x.aval.str_short()}. Pass a sharding on a Mesh of devices."
        )


def _apply(name: str, prim, x, given):
    if isinstance(given, Format):
        if type(x) is ArrayImpl and state.stage is None:
            return device_put(x, given)
        return with_layout_constraint(_apply(name, prim, x, given.sharding), given)
    sharding = _checked(name, x, given)
    if prim is reshard_p:
        sharding = of_rank(sharding, x.aval.ndim)
        if isinstance(sharding, NamedSharding):
            check_explicit(name, sharding)
    mesh = getattr(sharding, "mesh", None)
    if prim is sharding_constraint_p and mesh is not None and mesh.axis_names and mesh.are_all_axes_explicit:
        have, want = entries(x.aval), explicit_entries(sharding, x.aval.ndim)
        if have != want:
            raise AssertionError(
                "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
                f"`Explicit`. The array sharding: {PartitionSpec(*have)} did not match the sharding "
                f"provided: {PartitionSpec(*want)}. Please "
                "use `gradix.sharding.reshard` to divide the array in another way."
            )
        if isinstance(x, Tracer):
            return x
    if (
        type(x) is ArrayImpl
        and state.stage is None
        and not isinstance(mesh, AbstractMesh)
        and not (prim is reshard_p and x.aval.place is not None and mesh is not None and mesh.auto_axes)
        and not (sums(x.aval).unreduced or getattr(sharding, "spec", _WHOLE).unreduced)
    ):
        if sharding != sharding_of(x):
            check_move(x, sharding)
        return placed(x, sharding)
    if isinstance(sharding, NamedSharding):
        if prim is sharding_constraint_p and x.aval.division is not None:
            sharding = _beside_types(sharding, entries(x.aval))
        return bind(prim, (x,), {"sharding": sharding})
    mapped: Any = getattr(getattr(x, "_trace", None), "axis", None)
    if getattr(mapped, "spmd_name", None) is not None:
        raise ValueError(
            f"{name} inside of vmap(..., spmd_axis_name={mapped.spmd_name!r}) takes a NamedSharding, or a "
            f"PartitionSpec on the mesh in force, to which the axis is added; got {sharding}."
        )
    return x


def _beside_types(sharding: NamedSharding, row) -> NamedSharding:
    """A constraint over axes that the compiler divides over, beside the explicit ones in a type."""
    spec, explicit = sharding.spec, set(sharding.mesh.explicit_axes)
    if not explicit.issuperset(names_in(row)):
        return sharding
    n = max([len(spec), *[i + 1 for i, e in enumerate(row) if e is not None]])
    whole = [*spec, *[None] * (n - len(spec))]
    joined = [
        p if p is UNCONSTRAINED else (*axes_of(e), *[a for a in axes_of(p) if a not in explicit]) or None
        for p, e in zip(whole, row)
    ]
    return sharding.update(spec=spec.update(partitions=tuple(joined)))


def _checked(name: str, x, sharding) -> Sharding:
    if sharding is None:
        raise ValueError(
            f"One of {name} arguments got sharding None which is not allowed. Pass "
            "gradix.sharding.Sharding instances, or leave the call out if any sharding will do."
        )
    if isinstance(sharding, PartitionSpec) and (_options.gradix_mesh is None or not _options.gradix_mesh.axis_names):
        raise RuntimeError(
            f"{name} requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
            f"shardings, got {sharding}. You can define a context mesh via `gradix.set_mesh(mesh)`. "
            "Alternatively, provide `Sharding`s, which name their devices."
        )
    if not isinstance(sharding, (Sharding, PartitionSpec)):
        raise TypeError(
            "shardings leaf specifications are expected to be Sharding or PartitionSpec instances, got "
            f"{sharding!r} of type {type(sharding).__name__}. For a device write "
            "gradix.sharding.SingleDeviceSharding(device)."
        )
    found = as_sharding(sharding, name)
    mesh = _options.gradix_mesh
    manual = frozenset(mesh.manual_axes) if mesh is not None else frozenset()
    if manual and isinstance(found, NamedSharding) and manual.intersection(names_in(found.spec)):
        raise ValueError(
            f"{name} got the spec {found.spec}, which contains manual axes, {sorted(manual)}, of the shard_map around "
            "it: there the array is one device's part, which is not divided over them. Name only other axes."
        )
    try:
        found.check_compatible_aval(x.aval.shape)
    except ValueError as e:
        raise ValueError(f"One of {name} arguments is incompatible with its sharding annotation {found}: {e}") from None
    if not isinstance(x, Tracer):  # within a program the compiler pads what does not divide evenly
        found.shard_shape(x.aval.shape)
    return found


def reshard(xs: T, out_shardings: Any) -> T:
    """Arrays divided over devices in another way; types show it for mesh axes that are `Explicit`.

    Args:
        xs: arrays in a pytree.
        out_shardings: a NamedSharding, or a PartitionSpec on the mesh in force, or a tree prefix of
            these. The compiler decides how arrays are divided over mesh axes that are `Auto`.

    Raises:
        TypeError: a leaf of `out_shardings` is not a sharding.
        ValueError: the structures differ, a sharding does not fit an array, or it names a mesh axis
            that is not `Explicit`.
        RuntimeError: a `PartitionSpec` is given and no mesh is in context.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import PartitionSpec as P
        >>> with gradix.set_mesh(gradix.make_mesh((1,), ("data",))):
        ...     gradix.sharding.reshard(jnp.ones(2), P("data"))
        Array([1., 1.], dtype=float32)
    """
    return _constrained("reshard", reshard_p, xs, out_shardings)


def shard_alike(x: Any, y: Any) -> Any:
    """`x` and `y`, which the compiler must divide over devices in the same way.

    Raises:
        ValueError: they differ in shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> shard_alike(jnp.ones(2), jnp.zeros(2))
        (Array([1., 1.], dtype=float32), Array([0., 0.], dtype=float32))
    """
    x, y = as_array(x), as_array(y)
    if x.aval.shape != y.aval.shape:
        raise ValueError(
            f"Leaves should have the same shape: shard_alike got shapes {x.aval.shape} and {y.aval.shape}."
        )
    return tuple(bind(shard_alike_p, (x, y), {}))


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x`, whose axes must lie in memory as given; a concrete array is copied into that layout.

    Args:
        x: arrays in a pytree.
        layouts: a `Layout` for all, or a tree prefix of `x`.

    Raises:
        ValueError: a layout does not name each axis of its array once.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.layout import Layout
        >>> with_layout_constraint(jnp.ones((1, 2)), Layout((1, 0))).format.layout.major_to_minor
        (1, 0)
    """
    leaves, tree = flatten(x)

    def is_leaf(v) -> bool:
        return v is None or isinstance(v, (Layout, Format))

    spread = zip(broadcast_prefix(layouts, x, is_leaf), flatten(x, is_leaf)[0])
    given = [layout for layout, leaf in spread if leaf is not None]
    out = []
    for a, layout in zip(arrays("with_layout_constraint", leaves, tree, "x"), given, strict=True):
        wanted = layout.layout if isinstance(layout, Format) else layout
        if wanted is not None and not isinstance(wanted, Layout):
            raise ValueError(
                "layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                f"{wanted!r} of type {type(wanted).__name__}."
            )
        if wanted is not None:
            try:
                wanted.check_compatible_aval(a.aval.shape)
            except (ValueError, NotImplementedError) as e:
                raise type(e)(
                    f"One of with_layout_constraint arguments is incompatible with its layout annotation {wanted}: {e}"
                ) from None
            a = bind(layout_constraint_p, (a,), {"layout": wanted})
        out.append(a)
    return tree.unflatten(out)
