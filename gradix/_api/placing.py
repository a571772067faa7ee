"""Puts arrays on devices and says where they lie: device_put, device_get, and members of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._base.errors import class_of
from gradix._base.lazy import lazy_module
from gradix._base.tree import flatten_axes, tree_flatten as flatten, tree_map
from gradix._core import dtypes, seams
from gradix._core.array import ArrayImpl, as_array, copied, host_array, is_shared
from gradix._core.array_layouts import AutoLayout, Format, Layout, layout_in, order_in
from gradix._core.aval import located, make_aval
from gradix._core.divisions import explicit_part
from gradix._core.mesh import mesh_to_run_on
from gradix._core.named_sharding import NamedSharding, assignment_of, parts_of
from gradix._core.operators import Array, install
from gradix._core.sharding import MemorySpace, PartitionSpec, Placement, Shard, Sharding, SingleDeviceSharding
from gradix._core.trace import Tracer, bind, state
from gradix._ops.markers import separate
from gradix._ops.sharding import layout_constraint_p, move_p, reshard, sharding_constraint_p
from gradix._runtime import xla
from gradix._runtime.placement import Order, committed, order_of, put_on, sharding_of
from gradix._runtime.program import to_device

transfers = lazy_module("gradix._base.transfers")

_options = _config.state
_LARGE = 1 << 16


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """A tree of arrays, each on a device, or divided over several.

    Args:
        x: arrays, or anything convertible to one, in a tree.
        device: a device, a sharding, a PartitionSpec on the mesh in force, a memory
            (`gradix.memory.Space`), a `Format`, which also says in which order the axes lie in memory, or a
            tree prefix of these; None leaves the choice open.
        src: accepted for compatibility.
        donate: whether the old arrays are given up: True, False or a tree prefix of these.
        may_alias: whether the new arrays may share the memory of the old arrays. They do where they
            can, unless it is False. It may not be True where `donate` is.

    Returns:
        The arrays, in the tree of `x`.

    Raises:
        ValueError: `device` is none of these, or not a tree prefix of `x`; or an array cannot be
            divided as its sharding says.

    Example:
        >>> import gradix
        >>> gradix.device_put({"w": 1.5}, gradix.devices()[0])
        {'w': Array(1.5, dtype=float32, weak_type=True)}
        >>> import gradix.numpy as jnp
        >>> mesh = gradix.make_mesh((1,), ("rows",))
        >>> x = gradix.device_put(jnp.ones(4), gradix.NamedSharding(mesh, gradix.P("rows")))
        >>> x.sharding.spec
        P('rows',)

    See also:
        `gradix.device_get`, `gradix.devices`, `gradix.reshard`,
        `gradix.make_array_from_callback`.
    """
    leaves, tree = flatten(x)
    places = [device] * len(leaves) if _is_place(device) else flatten_axes("device_put device", tree, device)
    given_up = [donate] * len(leaves) if isinstance(donate, bool) else flatten_axes("device_put donate", tree, donate)
    if may_alias and any(given_up):
        raise ValueError(
            "device_put: may_alias and donate cannot be True at the same time: memory is either shared or given up."
        )
    out = [_put(leaf, place) for leaf, place in zip(leaves, places)]
    if may_alias is False:
        out = [
            separate(new) if isinstance(new, Tracer) or type(new) is ArrayImpl and _shares(old, new) else new
            for old, new in zip(leaves, out)
        ]
    for old, new, gone in zip(leaves, out, given_up):
        if gone and type(old) is ArrayImpl and new is not old and new._host is not old._host:
            old.delete()
    return tree.unflatten(out)


def _shares(old, new: ArrayImpl) -> bool:
    return new is old or (type(old) is ArrayImpl and new._buffer is not None and new._buffer is old._buffer)


def _reorders(x: ArrayImpl, sharding: Sharding) -> bool:
    """Whether an array stays on its devices, which are in another order: then no copy is made of it first."""
    own = sharding_of(x)
    return own.device_set == sharding.device_set and assignment_of(own) != assignment_of(sharding)


def _is_place(x) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec, Format, MemorySpace)) or hasattr(x, "device_kind")


def as_sharding(place, what: str = "device_put") -> Sharding:
    """A device, sharding, format or spec on the mesh in force, as a sharding.

    Raises:
        ValueError: it is none of these, or there is no mesh in force.
        TypeError: an array is to be made from parts in a layout that is not known.
    """
    if isinstance(place, Sharding):
        return place
    if isinstance(place, PartitionSpec):
        mesh = _options.gradix_mesh
        if mesh is None or not mesh.axis_names:
            raise ValueError(
                f"Please set a mesh via `gradix.set_mesh` if a PartitionSpec is passed to {what}: got "
                f"{place}. Or pass NamedSharding(mesh, spec)."
            )
        return NamedSharding(mesh, place)
    if isinstance(place, Format):
        if isinstance(place.layout, AutoLayout):
            kind = TypeError if what == "make_array_from_callback" else ValueError
            raise kind(
                f"sharding and layout in `Layout` instance should be concrete: {what} got {place}. Name "
                "the order of the axes, as in Layout((0, 1))."
            )
        if place.sharding is None and what == "make_array_from_callback":
            raise TypeError(
                f"{what}: sharding should be an instance of `gradix.sharding.Sharding`, to say which part each device "
                f"holds; got {place}. Pass Format(layout, sharding)."
            )
        return as_sharding(place.sharding, what)
    if hasattr(place, "device_kind"):
        return SingleDeviceSharding(place)
    name = place.partition(":") if isinstance(place, str) else ()
    instead = f" Write gradix.devices({name[0]!r})[{name[2] if name[2].isdecimal() else 0}]." if name else ""
    if isinstance(place, int):
        instead = f" Write gradix.devices()[{place}]."
    raise ValueError(
        f"{what} only accepts None, a Device, a Sharding or a tree of these values as `device`; "
        f"got {place!r} of type {type(place).__name__}.{instead}"
    )


def _put(x, place):
    if not _is_place(place):
        as_sharding(place)
    if type(x) is np.ndarray and type(place) is NamedSharding and x.nbytes > _LARGE and state.stage is None:
        found = _divided_at_once(x, place)
        if found is not None:
            return found
    try:
        array = host_array(x) if type(x) is np.ndarray else as_array(x)
    except TypeError as e:
        raise TypeError(f"Argument {x!r} of type {class_of(x)} is not a valid JAX type. {e}") from None
    if not isinstance(x, Array):
        _guard("host_to_device", array.aval, place)
        if is_shared(array):  # type: ignore[arg-type]
            array = copied(array)  # type: ignore[arg-type]
    if place is None:
        return array if isinstance(x, Array) else on_default_device(array)
    if isinstance(place, MemorySpace):
        if isinstance(array, Tracer):
            return array
        place = sharding_of(array).with_memory_kind(place.kind)
    if isinstance(place, Format) and isinstance(place.layout, Layout):
        place.layout.check_compatible_aval(array.aval.shape)
        if place.sharding is None:
            return array
    sharding = as_sharding(place)
    _check_fits(array.aval, sharding)
    if array.aval.dtype.kind == "T" and any(d.platform != "cpu" for d in sharding.device_set):
        raise TypeError(
            f"String arrays can only be sharded to CPU devices. Received unsupported device or sharding: {place}. "
            "Take gradix.devices('cpu'), or put numbers there in place of strings."
        )
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        if getattr(array.aval, "division", None) is None:
            whole = sharding.spec.update(unreduced=frozenset())
            array = _put(array, NamedSharding(sharding.mesh, whole))
        return reshard(array, sharding)  # one device gets the values, the others zeros
    if hasattr(place, "device_kind"):
        _check_is_here(array)
    if type(x) is ArrayImpl and sharding != sharding_of(x) and not _reorders(x, sharding):
        _guard("device_to_device", array.aval, sharding)
    if isinstance(array, Tracer):
        if isinstance(sharding, SingleDeviceSharding):
            array = bind(move_p, (array,), {"to": sharding, "back": None})
        elif isinstance(sharding, NamedSharding):
            array = bind(sharding_constraint_p, (array,), {"sharding": sharding})
        if isinstance(place, Format) and isinstance(place.layout, Layout):
            array = bind(layout_constraint_p, (array,), {"layout": place.layout})
        return array
    return placed(array, sharding, _order_wanted(array, place, sharding))


def _order_wanted(x: ArrayImpl, place, sharding: Sharding) -> Order:
    """The order of the axes of an array that is put somewhere: as asked for, or as it is where that says nothing.

    An array that is divided anew comes in row-major order.
    """
    if isinstance(place, Format):
        asked: Any = order_in(place.layout)
        return asked
    before = x.aval.place
    if before is None or before.order is None:
        return None
    stays = before.device is not None and sharding.num_devices == 1 or before.sharding == sharding
    return before.order if stays else None


def _moved(x: ArrayImpl, sharding: Sharding | None) -> ArrayImpl:
    """A concrete array on a device, or, not committed to it, on the default device."""
    if sharding is not None:
        return placed(x, sharding)
    if x.aval.place is None:
        return x
    first = placed(x, SingleDeviceSharding(xla.local_devices()[0]))
    return on_default_device(ArrayImpl(first._host, first.aval.plain, first._buffer))


def _laid_out(x: ArrayImpl, layout: Layout) -> ArrayImpl:
    """A concrete array, in another layout on the same devices."""
    order: Any = order_in(layout)
    if order_of(x.aval) == order:
        return x
    out = placed(x, sharding_of(x), order)
    if _is_committed(x):
        return out
    return ArrayImpl(None, located(x.aval.plain, Placement(sharding_of(x), False, order)), out._buffer)


seams.move, seams.lay_out = _moved, _laid_out


def on_default_device(x):
    """A new array on the mesh of `set_mesh`, or else on the device of the option
    `jax_default_device`, not committed to it.
    """
    mesh, device = mesh_to_run_on(), xla.default_device()
    if mesh is not None and type(x) is ArrayImpl and x.aval.place is None and state.stage is None:
        return placed(x, NamedSharding(mesh, PartitionSpec()))
    if device is None or type(x) is not ArrayImpl or x.aval.place is not None:
        return x
    if device is xla.local_devices()[0]:
        return x
    place = Placement(SingleDeviceSharding(device), False)
    return ArrayImpl(x.host, located(x.aval, place))


def _divided_at_once(x: np.ndarray, sharding: NamedSharding) -> ArrayImpl | None:
    """A NumPy array divided over devices without a copy of the whole; None if it needs one."""
    place = committed(sharding)
    is_plain = x.dtype.kind in "fiub" and dtypes.canonicalize_dtype(x.dtype) is x.dtype
    if not is_plain or place.is_whole or not sharding.is_fully_addressable:
        return None
    aval = make_aval(x.shape, x.dtype, False)
    _check_fits(aval, sharding)
    _guard("host_to_device", aval, sharding)
    return ArrayImpl(
        None, located(aval, place, division=explicit_part(sharding, aval.ndim)), xla.put_copied(x, aval, sharding)
    )


def _check_fits(aval, sharding: Sharding) -> None:
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as e:
        raise ValueError(
            f"One of device_put args is incompatible with its sharding annotation {sharding}: {e}"
        ) from None
    sharding.shard_shape(aval.shape)


def _check_is_here(array) -> None:
    place = getattr(array.aval, "place", None)
    if place is not None and place.device is None and not place.sharding.is_fully_addressable:
        raise ValueError(
            "When the second argument to `device_put` is a Device, the first argument must be a fully "
            f"addressable array: {array.aval.str_short()} lies on {place.sharding}, of which this "
            "process holds only a part. Write device_put(x, NamedSharding(mesh, P())) for the whole array "
            "on each device, or multihost_utils.process_allgather(x, tiled=True) for a NumPy array."
        )


def placed(x: ArrayImpl, sharding: Sharding, order: Order = None) -> ArrayImpl:
    """A concrete array, committed to the devices of `sharding`, its axes in this order in memory."""
    place = committed(sharding, order)
    aval = located(x.aval.plain, place, division=explicit_part(sharding, x.aval.ndim))
    if x.aval is aval:
        return x
    before = x.aval.place
    first = SingleDeviceSharding(xla.local_devices()[0])
    same = (
        sharding == first if before is None else parts_of(before.sharding, aval.ndim) == parts_of(sharding, aval.ndim)
    )
    if same and (before is None or assignment_of(before.sharding) == assignment_of(sharding)):
        if order_of(x.aval) == order:
            return ArrayImpl(x._host, aval, to_device(x))
        return ArrayImpl(None, aval, put_on(x, sharding, order))
    if before is not None and not before.is_whole and not before.sharding.is_fully_addressable:
        return bind(sharding_constraint_p, (x,), {"sharding": sharding})
    if place.is_whole and place.device is None and order is None:
        # it is copied to the device when it is first needed there
        return ArrayImpl(x.host, aval)
    is_held = place.is_whole and order is order_of(x.aval) is None
    return ArrayImpl(x._host if is_held else None, aval, put_on(x, sharding, order))


def _guard(direction: str, aval, sharding) -> None:
    """Apply the options `transfer_guard…` to an explicit transfer."""
    if getattr(_options, "jax_transfer_guard_" + direction) is not None:
        what = f"aval={aval.str_short()}, dst_sharding={sharding}"
        transfers.check(direction, what, is_explicit=True)


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays; traced arrays, random keys and other leaves stay.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.device_get({"a": jnp.arange(3), "b": 2})
        {'a': array([0, 1, 2], dtype=int32), 'b': 2}
    """
    return tree_map(_fetched, x)


def _fetched(leaf):
    if not isinstance(leaf, Array) or isinstance(leaf, Tracer) or isinstance(leaf.aval.dtype, dtypes.ExtendedDType):
        return leaf
    return np.asarray(leaf)


# -- members of arrays -----------------------------------------------------------------------------


def _place(x):
    """The sharding of a concrete array."""
    if isinstance(x, Tracer):
        if x.aval.division is not None or (_options.gradix_mesh is not None and _options.gradix_mesh.explicit_axes):
            return x.aval.sharding
        raise AttributeError(
            "A traced array is on no device yet. Ask for the placement of a concrete array, outside of jit."
        )
    return sharding_of(x)


def _device_of(x):
    sharding = _place(x)
    return next(iter(sharding.device_set)) if sharding.num_devices == 1 else sharding


def _shards(x) -> list[Shard]:
    """The parts of the array on the devices of this process."""
    return [s for s in _global_shards(x) if s.data is not None]


def _global_shards(x) -> list[Shard]:
    sharding, aval = _place(x), x.aval
    place, here = aval.place, sharding.addressable_devices
    if place is None or place.device is not None:
        value = x if place is None or place.is_readable else None
        return [Shard(_device_of(x), (slice(None),) * x.ndim, value)]
    indices, seen, out = sharding.devices_indices_map(aval.shape), {}, []
    part = make_aval(sharding.shard_shape(aval.shape), aval.dtype, aval.weak_type)
    buffers = iter(xla.parts(to_device(x)) if x._host is None or not place.is_whole else ())
    for device in assignment_of(sharding):
        index = indices[device]
        key = tuple([(s.start, s.stop) for s in index])
        replica = seen[key] = seen.get(key, -1) + 1
        data = None
        if device in here:
            local = located(part, committed(SingleDeviceSharding(device), place.order))
            buffer = next(buffers, None)
            data = ArrayImpl(x._host if buffer is None else None, local, buffer)
        out.append(Shard(device, index, data, replica))
    return out


def _devices(self):
    """The set of devices that hold the array."""
    return set(_place(self).device_set)


def _addressable_data(self, index: int):
    """The part of the array on device number `index` of this process."""
    shards = _shards(self)
    if not -len(shards) <= index < len(shards):
        raise IndexError(
            f"addressable_data: the array lies on {len(shards)} devices of this process, whose numbers are 0 to "
            f"{len(shards) - 1}; got {index}."
        )
    return shards[index].data


def _unsafe_buffer_pointer(self) -> int:
    """The address of the values on their device, valid only while the array is alive."""
    if isinstance(self, Tracer):
        raise AttributeError(
            "A traced array has no memory: call unsafe_buffer_pointer of a concrete array, outside of jit."
        )
    if _place(self).num_devices > 1:
        raise ValueError("unsafe_buffer_pointer() is supported only for unsharded arrays; take addressable_data(i).")
    return xla.unsafe_buffer_pointer(to_device(self))


def _is_committed(x) -> bool:
    place = x.aval.place
    return place is not None and place.is_committed


_MEMBERS: dict[str, Any] = {
    "sharding": property(_place),
    "device": property(_device_of),
    "devices": _devices,
    "committed": property(_is_committed),
    "_committed": property(_is_committed),
    "is_fully_addressable": property(lambda x: _place(x).is_fully_addressable),
    "is_fully_replicated": property(lambda x: _place(x).is_fully_replicated),
    "addressable_shards": property(_shards),
    "global_shards": property(_global_shards),
    "addressable_data": _addressable_data,
    "unsafe_buffer_pointer": _unsafe_buffer_pointer,
    "format": property(lambda x: Format(layout_in(order_of(x.aval), x.aval.ndim), _place(x))),
}
install(_MEMBERS)
