"""Makes arrays over several devices of parts: make_array_from_…, device_put_sharded, …."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._api.placing import as_sharding, placed
from gradix._base.errors import UnexpectedTracerError, class_of
from gradix._base.lazy import lazy_module
from gradix._base.tree import flatten_axes, tree_flatten as flatten, tree_map
from gradix._core.array import ArrayImpl, as_array, host_array
from gradix._core.array_layouts import Format, Layout, order_in
from gradix._core.aval import located, make_aval
from gradix._core.divisions import explicit_part
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import NamedSharding, assignment_of
from gradix._core.operators import Array
from gradix._core.sharding import PartitionSpec, Sharding, SingleDeviceSharding
from gradix._core.trace import Tracer
from gradix._runtime import xla
from gradix._runtime.placement import committed, order_of, sharding_of
from gradix._runtime.program import to_device

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike

transfers = lazy_module("gradix._base.transfers")

# -- arrays from parts -----------------------------------------------------------------------------


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence, *, dtype: DTypeLike | None = None
) -> Array:
    """Make an array over several devices from arrays that hold the parts of single devices.

    Args:
        shape: the shape of the whole array.
        sharding: how the array is divided.
        arrays: one array for each device of this process, in any order, each on its device.
        dtype: the dtype; it is needed if this process has no part.

    Raises:
        TypeError: `arrays` is not a sequence of arrays.
        ValueError: the number, shapes, dtypes or devices of `arrays` are not those of the parts.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import SingleDeviceSharding
        >>> here = SingleDeviceSharding(gradix.devices()[0])
        >>> part = gradix.device_put(jnp.ones(2), gradix.devices()[0])
        >>> gradix.make_array_from_single_device_arrays((2,), here, [part])
        Array([1., 1.], dtype=float32)
    """
    shape = tuple(shape)
    if not isinstance(arrays, Sequence):
        raise TypeError(
            f"make_array_from_single_device_arrays `arrays` argument must be a list or tuple, "
            f"but got {class_of(arrays)}."
        )
    if any(isinstance(a, Tracer) for a in arrays):
        raise ValueError(
            "make_array_from_single_device_arrays requires a list of concrete arrays as input, but got a "
            "traced one. Call it outside of jit."
        )
    if any(type(a) is not ArrayImpl for a in arrays):
        raise TypeError(
            "make_array_from_single_device_arrays takes arrays on devices, got "
            f"{[type(a).__name__ for a in arrays]}. Put each on its device with device_put."
        )
    if not arrays and dtype is None:
        raise ValueError(
            "make_array_from_single_device_arrays needs dtype= where this process has no part of the array."
        )
    kind = arrays[0].aval.dtype if arrays else np.dtype(dtype)
    if dtype is not None and np.dtype(dtype) != kind:
        raise ValueError(
            "make_array_from_single_device_arrays: dtype must be that of the arrays. Got "
            f"dtype={np.dtype(dtype)} and arrays of dtype {kind}; convert them with .astype first."
        )
    part, places = sharding.shard_shape(shape), [sharding_of(a) for a in arrays]
    by_device = {
        place._device: a  # type: ignore[attr-defined]
        for place, a in zip(places, arrays)
        if place.num_devices == 1
    }
    mine = [d for d in assignment_of(sharding) if d in sharding.addressable_devices]
    if len(arrays) != len(mine) or set(by_device) != set(mine):
        raise ValueError(
            f"Expected {len(mine)} per-device arrays (this is how many devices are addressable by the "
            f"sharding), but got {len(arrays)}, on the devices {sorted([d.id for d in by_device])}; the "
            f"sharding's are {sorted([d.id for d in mine])}."
        )
    for a in arrays:
        if a.aval.shape != part or a.aval.dtype != kind:
            raise ValueError(
                f"Expected shard shape {part} and dtype {kind} for all per-device arrays of a {shape} "
                f"array under {sharding}, got shape {a.aval.shape} and dtype {a.aval.dtype}."
            )
    aval = make_aval(shape, kind, bool(arrays) and all(a.aval.weak_type for a in arrays))
    orders = {order_of(a.aval) for a in arrays}
    if len(orders) > 1:  # one array has one layout
        by_device = {d: placed(a, SingleDeviceSharding(d)) for d, a in by_device.items()}
        orders = {None}
    whole = located(aval, committed(sharding, *orders), division=explicit_part(sharding, len(shape)))
    if len(assignment_of(sharding)) == 1:
        return ArrayImpl(arrays[0]._host, whole, arrays[0]._buffer)
    return ArrayImpl(None, whole, xla.join([to_device(by_device[d]) for d in mine], aval, sharding))


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding | Format, data_callback: Callable, dtype: DTypeLike | None = None
) -> Array:
    """Make an array over several devices from parts that a function returns.

    The function is called only for the parts on the devices of this process.

    Args:
        shape: the shape of the whole array.
        sharding: how the array is divided, or a `Format`, which says also in which order its axes lie in memory.
        data_callback: takes a tuple of slices, one for each axis, and returns that part.
        dtype: the dtype of the array and of all parts; it is needed if this process has no part.

    Raises:
        ValueError: a part has another shape than its slices, or another dtype than `dtype`.

    Example:
        >>> import gradix, numpy as np
        >>> from gradix.sharding import SingleDeviceSharding
        >>> data = np.arange(3.0, dtype=np.float32)
        >>> gradix.make_array_from_callback((3,), SingleDeviceSharding(gradix.devices()[0]), lambda i: data[i])
        Array([0., 1., 2.], dtype=float32)
    """
    shape, given = tuple(shape), sharding
    sharding = as_sharding(given, "make_array_from_callback")
    order: Any = None
    if isinstance(given, Format) and isinstance(given.layout, Layout):
        given.layout.check_compatible_aval(shape)
        order = order_in(given.layout)
    part = sharding.shard_shape(shape)
    made: dict = {}
    parts = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = tuple([(s.start, s.stop) for s in index])
        if key not in made:
            value = as_array(data_callback(index))
            if isinstance(value, Tracer):
                raise UnexpectedTracerError(
                    "make_array_from_callback cannot be called within a traced context: its callback returned a "
                    f"traced value of type {value.aval}. Call it outside of jit, and pass the array."
                )
            if dtype is not None and value.aval.dtype != np.dtype(dtype):
                raise ValueError(
                    "If `dtype` is provided to make_array_from_callback, it must match the dtype of the "
                    f"addressable shards. Got dtype={np.dtype(dtype)} and shard "
                    f"dtype={value.aval.dtype}; return data.astype(dtype) from data_callback."
                )
            if value.aval.shape != part:
                raise ValueError(
                    f"The part that data_callback returned for {index} has shape {value.aval.shape}; of "
                    f"an array of shape {shape} under {sharding} it must have shape {part}."
                )
            made[key] = value
        parts.append(placed(made[key], SingleDeviceSharding(device), order))
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=dtype)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: ArrayLike, global_shape: Sequence[int] | None = None
) -> Array:
    """Make an array over the devices of all processes from the data of each process.

    Args:
        sharding: how the whole array is divided; if `local_data` is a tree, one sharding for all of
            its arrays, or a tree of shardings.
        local_data: the data of this process: its part along each axis divided among processes.
        global_shape: the shape of the whole; the size of an axis given as None is computed.

    Raises:
        ValueError: the data of this process is not the block that its devices hold.

    Example:
        >>> import gradix, numpy as np
        >>> from gradix.sharding import SingleDeviceSharding
        >>> gradix.make_array_from_process_local_data(SingleDeviceSharding(gradix.devices()[0]), np.ones(2, np.float32))
        Array([1., 1.], dtype=float32)
    """
    is_one = isinstance(sharding, (Sharding, PartitionSpec)) or hasattr(sharding, "device_kind")
    leaves, tree = flatten(local_data)
    if not is_one and tree.num_nodes == 1:
        as_sharding(sharding, "make_array_from_process_local_data")
    if not is_one or tree.num_nodes > 1 and any(hasattr(x, "shape") for x in leaves):
        shardings = flatten_axes("make_array_from_process_local_data sharding", tree, sharding)
        if global_shape is None or _is_shape(global_shape):
            shapes = [global_shape] * len(leaves)
        else:
            shapes = [tuple(s) for s in tree.flatten_up_to(global_shape)]
        return tree.unflatten(
            [make_array_from_process_local_data(s, x, g) for s, x, g in zip(shardings, leaves, shapes)]
        )
    sharding, local = as_sharding(sharding), np.asarray(local_data)
    shape = _global_shape(sharding, local.shape, global_shape)
    what = f"process-local data of dtype {local.dtype} and shape {local.shape}"
    transfers.check("host_to_device", what, is_explicit=True)
    if local.shape == shape:
        return make_array_from_callback(shape, sharding, lambda i: host_array(local[i]))
    indices = list(sharding.addressable_devices_indices_map(shape).values())
    starts = [min([i[k].indices(n)[0] for i in indices]) for k, n in enumerate(shape)]
    stops = [max([i[k].indices(n)[1] for i in indices]) for k, n in enumerate(shape)]
    if tuple([b - a for a, b in zip(starts, stops)]) != local.shape:
        raise ValueError(
            f"make_array_from_process_local_data: the devices of this process hold the block "
            f"{list(zip(starts, stops))} of an array of shape {shape}, but local_data has shape "
            f"{local.shape}."
        )

    def part(index):
        own = [slice(i.indices(n)[0] - a, i.indices(n)[1] - a) for i, n, a in zip(index, shape, starts)]
        return host_array(local[tuple(own)])

    return make_array_from_callback(shape, sharding, part)


def _is_shape(given) -> bool:
    return isinstance(given, (tuple, list)) and all(n is None or isinstance(n, int) for n in given)


def _global_shape(sharding, local: tuple, given) -> tuple:
    """The shape of the whole array; sizes not given are computed from this process's part."""
    if given is not None and None not in tuple(given):
        return tuple(given)
    given = [None] * len(local) if given is None else list(given)
    counts: Any = getattr(sharding, "factors", lambda n: [1] * n)(len(local))
    coordinates: Any = getattr(sharding, "coordinates", None)
    if coordinates is None:
        return local
    here = sharding.addressable_devices
    own = [c for d, c in zip(assignment_of(sharding), coordinates(len(local)).tolist()) if d in here]
    mine = [len({c[k] for c in own}) for k in range(len(local))]
    return tuple([n * count // have if g is None else g for n, count, have, g in zip(local, counts, mine, given)])


def device_put_sharded(shards: Sequence, devices: Sequence) -> Array:
    """Put one tree of arrays on each device; returns a tree of arrays with a leading device axis.

    Raises:
        TypeError: `shards` is not a sequence.
        ValueError: there are not as many shards as devices, or they differ in shape or dtype.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.device_put_sharded([jnp.ones(2)], gradix.devices()[:1])
        Array([[1., 1.]], dtype=float32)
    """
    if not isinstance(shards, Sequence):
        raise TypeError(f"device_put_sharded `shards` input must be a sequence; got {class_of(shards)}")
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")
    mesh = Mesh(np.array(list(devices)), ("_device_put_sharded",))

    def join(*xs):
        xs = [as_array(x) for x in xs]
        if any(x.aval.shape != xs[0].aval.shape or x.aval.dtype != xs[0].aval.dtype for x in xs):
            raise ValueError(
                "the shards passed to device_put_sharded must have consistent shape and dtype; got "
                f"{', '.join([x.aval.str_short() for x in xs])}."
            )
        whole = as_array(np.stack([np.asarray(x) for x in xs]))
        return placed(whole, NamedSharding(mesh, PartitionSpec("_device_put_sharded")))

    return tree_map(join, *shards)


def device_put_replicated(x: Any, devices: Sequence) -> Array:
    """Copy a tree of arrays to each device; each array gets a leading axis of the copies.

    Raises:
        ValueError: `devices` is empty.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.device_put_replicated(jnp.ones(2), gradix.devices()[:1])
        Array([[1., 1.]], dtype=float32)
    """
    if not isinstance(devices, Sequence) or not devices:
        raise ValueError(
            f"`devices` argument to `device_put_replicated` must be a non-empty sequence; got {devices!r}."
        )
    return device_put_sharded([x] * len(devices), devices)
