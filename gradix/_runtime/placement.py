"""Where arrays lie, and where programs take and give them: homes, shardings, moves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradix._base import config
from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl
from gradix._core.aval import located
from gradix._core.divisions import entries, explicit_part, sums
from gradix._core.effects import MeshEffect
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.mesh import AbstractMesh, Mesh, mesh_to_run_on
from gradix._core.named_sharding import NamedSharding, assignment_of, axes_of, mesh_of_parts, named_as, parts_of
from gradix._core.sharding import PartitionSpec, Placement, Sharding, SingleDeviceSharding
from gradix._runtime import xla

transfers = lazy_module("gradix._base.transfers")

_options = config.state
_placements: BoundedCache[Any, Placement] = BoundedCache(4096)

# The order of an array's axes in memory, slowest first; None is row-major order.
Order = tuple[int, ...] | None


def committed(sharding: Sharding, order: Order = None) -> Placement:
    """The placement of arrays that are committed to a sharding, with their axes in this order."""
    if order is None:
        return _placements.get(sharding) or _placements.keep(sharding, Placement(sharding))
    key = sharding, order
    return _placements.get(key) or _placements.keep(key, Placement(sharding, True, order))


def order_of(aval) -> Order:
    """The order of the axes of an array in memory; None is row-major order."""
    return None if aval.place is None else aval.place.order


def sharding_of(array) -> Sharding:
    """The sharding of a concrete array; for one without a place, the first device."""
    place = array.aval.place
    return place.sharding if place is not None else SingleDeviceSharding(xla.local_devices()[0])


class Home(NamedTuple):
    """The devices that a program runs on, in order, and the mesh of its results' shardings."""

    devices: tuple
    mesh: Any

    @property
    def is_abstract(self) -> bool:
        """Whether numbers stand for devices that are still to be named."""
        return isinstance(self.mesh, AbstractMesh)


def abstract_home(mesh: AbstractMesh) -> Home:
    """A home of devices that are still to be named."""
    return Home(tuple(range(mesh.size)), mesh)


def check_has_devices(home: Home, name: str) -> None:
    """Raise for a program that is to run on devices still to be named.

    Raises:
        ValueError: its shardings are all on an AbstractMesh.
    """
    if home.is_abstract:
        raise ValueError(
            f"{name} has shardings on an AbstractMesh, {home.mesh}, which has no devices, and neither its arguments "
            f"nor a mesh in force name {home.mesh.size} of them. Call it within `with gradix.set_mesh(mesh):` for a "
            "mesh of as many devices, put an argument onto them with device_put, or lower it for devices to come: "
            "jit(f).trace(...).lower(lowering_platforms=('cpu',))."
        )


def home_of(named: Sequence[tuple[str, Sharding]], effects, name: str) -> Home | None:
    """The devices on which all shardings and the program's effects agree; None if there are none.

    Args:
        named: pairs of a text that names a sharding in errors, and the sharding.
        effects: the effects of the program.
        name: the name of the program, for errors.

    Raises:
        ValueError: two of them need different devices.
    """
    asked = [
        (what, assignment_of(s), getattr(s, "mesh", None))
        for what, s in named
        if isinstance(getattr(s, "mesh", None), Mesh) or not hasattr(s, "spec")
    ]
    asked += [
        (f"a sharding or shard_map inside of {name}", e.mesh._flat_devices_tuple, e.mesh)
        for e in effects
        if isinstance(e, MeshEffect) and isinstance(e.mesh, Mesh)
    ]
    abstract = [s.mesh for _, s in named if isinstance(getattr(s, "mesh", None), AbstractMesh)]  # type: ignore[attr-defined]
    sizes = {m.size for m in abstract} | {len(devices) for _, devices, _ in asked[:1]}
    if abstract and len(sizes) > 1:
        raise ValueError(
            f"AbstractMesh size: {abstract[0].size} does not match the device assignment size: "
            f"{len(asked[0][1]) if asked else abstract[-1].size}. All shardings of {name} need as many devices."
        )
    in_force = mesh_to_run_on() if abstract else None
    if not asked and abstract and (in_force is None or in_force.size != abstract[0].size):
        return abstract_home(abstract[0])
    if not asked:
        context = mesh_to_run_on()
        return Home(context._flat_devices_tuple, context) if context is not None else None
    context = _options.gradix_mesh
    what, first, _ = asked[0]
    for other, devices, _ in asked[1:]:
        if devices != first and set(devices) != set(first):
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got {_on(what, first)} and "
                f"{_on(other, devices)}. Put them on the same devices with device_put first."
            )
    mesh = next((m for _, _, m in asked if isinstance(m, Mesh)), None)
    if mesh is None and isinstance(context, Mesh) and set(context._flat_devices_tuple) == set(first):
        mesh = context
    if mesh is None and len(first) > 1:
        mesh = mesh_of_parts(next(s for _, s in named if assignment_of(s) == first))
    return Home(mesh._flat_devices_tuple if mesh is not None else first, mesh)


def _on(what: str, devices) -> str:
    return f"{what} with device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"


def on_devices_of(home: Home, sharding: Sharding | None) -> Sharding | None:
    """The sharding on the devices of `home` where it is on an AbstractMesh, which has none; else itself."""
    mesh = getattr(sharding, "mesh", None)
    if home.is_abstract or not isinstance(sharding, NamedSharding) or not isinstance(mesh, AbstractMesh):
        return sharding
    own = home.mesh
    if own is None or (own.shape_tuple, own.axis_types) != (mesh.shape_tuple, mesh.axis_types):
        own = Mesh(np.array(home.devices, object).reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)
    return NamedSharding(own, sharding.spec, memory_kind=sharding._memory_kind)


def types_on(home: Home, avals: Sequence) -> list:
    """The types of arguments, those on an AbstractMesh as arguments on the devices of `home`."""

    def there(aval):
        place = aval.place
        sharding = None if place is None else on_devices_of(home, place.sharding)
        if place is None or sharding is place.sharding:
            return aval
        return located(aval.plain, committed(sharding, place.order), aval.vma, aval.division)

    return [there(a) for a in avals]


class Orders(NamedTuple):
    """The orders of the axes of a program's arguments and results in memory; XLA chooses those that are AUTO."""

    ins: Sequence[Any]
    outs: Sequence[Any]

    @property
    def are_usual(self) -> bool:
        """Whether all are row-major."""
        return not any(o is not None for o in (*self.ins, *self.outs))


class Sides(NamedTuple):
    """The shardings in which a program takes its arguments and gives its results; None is free.

    Without `orders` all arguments and results are in row-major order.
    """

    ins: list[Sharding | None]
    outs: list[Sharding | None]
    orders: Orders | None = None


def sides_of(
    closed: ClosedJaxpr, home: Home, avals, in_shardings, out_shardings, orders: Orders | None = None
) -> Sides:
    """The shardings of a program's arguments and results that types and the user determine.

    Args:
        avals: the types of the arguments, with their places.
        in_shardings, out_shardings: for each argument and result the user's sharding, or None.
        orders: the orders of axes in memory; by default arguments come in their own, and results are row-major.
    """
    orders = orders or Orders([order_of(a) for a in avals], [None] * len(closed.out_avals))
    mesh = home.mesh
    ins = [w if w is not None else _own(a, home) for w, a in zip(in_shardings or [None] * len(avals), avals)]
    outs = list(out_shardings or [None] * len(closed.out_avals))
    ins, outs = [on_devices_of(home, s) for s in ins], [on_devices_of(home, s) for s in outs]
    if mesh is None:
        outs = [SingleDeviceSharding(home.devices[0]) if len(home.devices) == 1 else o for o in outs]
    else:
        given = dict(zip(closed.jaxpr.invars, avals))
        outs = [
            o if o is not None else _named_by_type(home, given.get(v, a), a)
            for o, v, a in zip(outs, closed.jaxpr.outvars, closed.out_avals)
        ]
    return Sides(ins, outs, None if orders.are_usual else orders)


def _named_by_type(home: Home, given, aval) -> Sharding | None:
    """The sharding of a result that its type determines, on the mesh of the type; None if the compiler decides.

    Args:
        given: the type of the argument that the result is, with its place; else that of the result.
    """
    mesh: Any = home.mesh
    place, own = given.place, mesh if aval.division is None else aval.division.mesh
    if place is not None and place.is_committed and place.sharding.num_devices == len(home.devices) > 1:
        own = getattr(place.sharding, "mesh", own)
    if (own.shape_tuple, own.axis_types) != (mesh.shape_tuple, mesh.axis_types) and own.size == mesh.size:
        mesh = own if home.is_abstract else Mesh(mesh.devices.reshape(own.axis_sizes), own.axis_names, own.axis_types)
        if aval.division is None and place is not None:
            return place.sharding
    return NamedSharding(mesh, _spec_of(aval)) if mesh.are_all_axes_explicit else None


def located_results(out_avals, found, sides: Sides, first: tuple, orders: Sequence[Order]) -> list:
    """The types of a program's results with their places.

    Args:
        out_avals: the types.
        found: the shardings of the results of the executable.
        sides: the shardings that were asked for.
        first: what `first_of` returned for the arguments.
        orders: the orders of their axes.
    """
    places = [
        committed(s if w is not None else _as_typed(_as_given(s, a.ndim, first), a), o)
        for s, w, a, o in zip(found, sides.outs, out_avals, orders)
    ]
    return [located(a.plain, p, division=explicit_part(p.sharding, a.ndim)) for a, p in zip(out_avals, places)]


def _spec_of(aval) -> PartitionSpec:
    left = sums(aval)
    return PartitionSpec(*entries(aval), unreduced=left.unreduced, reduced=left.reduced)


def first_of(avals, in_shardings, kept) -> tuple[Any, int]:
    """The sharding of the first argument, if the user committed it, and its number of axes."""
    if not kept or (in_shardings and in_shardings[kept[0]] is not None):
        return None, 0
    aval = avals[kept[0]]
    place = aval.place
    return (place.sharding if place is not None and place.is_committed else None), aval.ndim


def _as_given(chosen: Sharding, ndim: int, first: tuple[Any, int]) -> Sharding:
    """The sharding that the compiler chose for a result, as the user expressed it if possible.

    If it divides as the sharding of the first argument does, that sharding is returned instead.
    """
    given, given_ndim = first
    if given_ndim != ndim or not isinstance(given, NamedSharding):
        return chosen
    return given if parts_of(given, ndim) == parts_of(chosen, ndim) else chosen


def _as_typed(chosen: Sharding, aval) -> Sharding:
    """The sharding that the compiler chose, with mesh axes of size 1 that the result's type names.

    These divide nothing, so the compiler leaves them out.
    """
    mesh: Any = getattr(chosen, "mesh", None)
    if aval.division is None or mesh is None or 1 not in mesh.axis_sizes:
        return chosen
    spec: Any = chosen.spec  # type: ignore[attr-defined]
    row = [axes_of(p) for p in spec] + [()] * (aval.ndim - len(spec))
    named = {a for part in row for a in part}
    more = [[a for a in axes_of(e) if mesh.shape.get(a) == 1 and a not in named] for e in entries(aval)]
    if not any(more):
        return chosen
    whole = [(*own, *extra) or None for own, extra in zip(row, more)]
    return NamedSharding(mesh, PartitionSpec(*whole, unreduced=spec.unreduced, reduced=spec.reduced))


def divisions_of(home: Home, sides: Sides) -> dict[str, Any]:
    """What a module says of several devices, as options of `lower_jaxpr`."""
    if home.mesh is None:
        return {}
    whole = whole_on(home)
    return {
        "devices": home.devices,
        "mesh": home.mesh,
        "in_shardings": [_with_spec(s) or whole for s in sides.ins],
        "out_shardings": [_with_spec(s) for s in sides.outs],
    }


@functools.lru_cache(None)
def whole_on(home: Home) -> Sharding:
    """The sharding that puts the whole array on each device."""
    return NamedSharding(home.mesh, PartitionSpec()) if home.mesh is not None else SingleDeviceSharding(home.devices[0])


xla.on_renewal(whole_on.cache_clear)
xla.on_renewal(_placements.clear)
xla.on_renewal(parts_of.cache_clear)


def _with_spec(sharding):
    """The sharding if it has a spec, so that a module's text can express it; else None."""
    return sharding if getattr(sharding, "spec", None) is not None else None


def _own(aval, home: Home):
    """The sharding of a committed argument, if the program can take it in this form; else None."""
    place = aval.place
    if place is None or not place.is_committed:
        return None
    if home.mesh is not None and getattr(place.sharding, "spec", None) is None:
        return named_as(place.sharding, home.mesh, aval.shape) if len(home.devices) > 1 else None
    return place.sharding


def mover(aval, wanted: Sharding, order: Order = None) -> Callable | None:
    """A function that returns the buffer of an argument, moved to a sharding and an order; None if it is so.

    An array without a place lies on the first device: it is put there once, and keeps its buffer for later calls.
    """
    there = aval.place.sharding if aval.place is not None else _first_device(wanted)
    if order_of(aval) == order and there is not None and _are_same_parts(there, wanted, aval.ndim):
        return None

    def moved(x):
        check_move(x, wanted)
        return put_on(x, wanted, order)

    return moved


def _are_same_parts(a: Sharding, b: Sharding, ndim: int) -> bool:
    """Whether two shardings put the same parts on the same devices."""
    return parts_of(a, ndim) == parts_of(b, ndim) and assignment_of(a) == assignment_of(b)


def _first_device(wanted: Sharding) -> Sharding | None:
    """The sharding of arrays without a place; None if another one is wanted, or another memory."""
    device = xla.local_devices()[0]
    if wanted.num_devices > 1 or wanted.memory_kind not in (None, device.default_memory().kind):
        return None
    return SingleDeviceSharding(device)


def check_move(x: ArrayImpl, sharding: Sharding) -> None:
    """Apply the option `transfer_guard_device_to_device` to an array that is moved implicitly."""
    if _options.jax_transfer_guard_device_to_device is None:
        return
    is_number = not x.aval.ndim and x.aval.place is None
    if not is_number and getattr(x, "_extra", None) is not transfers.FROM_HOST:
        what = f"aval={x.aval.str_short()}, dst_sharding={sharding}"
        transfers.check("device_to_device", what)


def put_on(array: ArrayImpl, sharding: Sharding, order: Order = None):
    """A buffer with an array's value, divided over devices by a sharding, its axes in this order."""
    aval = array.aval
    host, have, place = array._host, order_of(aval), aval.place
    if host is None and place is not None and place.device is not None and sharding.num_devices == 1:
        buffer = xla.move(array._buffer, aval, sharding)
    elif (
        have != order
        and place is not None
        and array._buffer is not None
        and _are_same_parts(place.sharding, sharding, aval.ndim)
    ):
        buffer = array._buffer
    else:
        buffer, have = xla.put_sharded(array.host, aval, sharding), None
    return buffer if have == order else xla.laid_out(buffer, aval, sharding, have, order)
