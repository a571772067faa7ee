"""The place of an array: `PartitionSpec`, `Sharding`, and its simplest kind, one device."""

from __future__ import annotations

import enum
from typing import Any

from gradix._base.errors import class_of
from gradix._base.lazy import lazy_module

_display = lazy_module("gradix._core.display")


class _Unconstrained:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """The mesh axes over which each axis of an array is divided: a name, a tuple of names, or None.

    Args:
        partitions: an entry for each axis of the array; None for an axis that is not divided.
        unreduced: the mesh axes over which the array is still to be summed.
        reduced: the mesh axes over which its cotangent will be unreduced.

    Raises:
        TypeError: `unreduced` or `reduced` is not a set.
        ValueError: a mesh axis is in two of the three, or an entry is a tuple of tuples.

    Example:
        >>> from gradix.sharding import PartitionSpec as P
        >>> P("data", None)
        P('data', None)
    """

    __slots__ = ("partitions", "unreduced", "reduced")
    UNCONSTRAINED = UNCONSTRAINED

    def __init__(self, *partitions, unreduced=frozenset(), reduced=frozenset()):
        self.partitions = tuple([_partition(p) for p in partitions])
        if unreduced or reduced:
            _check_reductions(self.partitions, unreduced, reduced)
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    def _repr_html_(self) -> str:
        return _display.spec(self)

    def __init_subclass__(cls, **kwargs):
        raise TypeError(
            f"PartitionSpec cannot be subclassed, as {cls.__name__} does: specs are compared by their entries. Write "
            "a function that returns a PartitionSpec."
        )

    def update(self, partitions=None, unreduced=None, reduced=None) -> PartitionSpec:
        """A copy with some fields changed."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def to_ct_spec(self) -> PartitionSpec:
        """The spec of cotangents of such arrays: unreduced axes become reduced, and the reverse."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def to_tangent_spec(self) -> PartitionSpec:
        """The spec of tangents of such arrays, which is the same."""
        return self

    def to_lo(self) -> list[PartitionSpec]:
        """The specs of the arrays that represent such an array: itself."""
        return [self]

    def index(self, value) -> int:
        return self.partitions.index(_partition(value))

    def count(self, value) -> int:
        return self.partitions.count(_partition(value))

    def __iter__(self):
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, i):
        return self.partitions[i]

    def __add__(self, other) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if not isinstance(other, tuple):
            return NotImplemented
        self._check_extended(f"{self!r} + {other!r}")
        return self.update(self.partitions + other)

    def __radd__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        self._check_extended(f"{other!r} + {self!r}")
        return self.update(other + self.partitions)

    def _check_extended(self, what: str) -> None:
        if self.unreduced or self.reduced:
            raise TypeError(
                f"{what}: a spec with unreduced or reduced axes is not extended by a tuple. Write "
                "P(*spec, *more, unreduced=..., reduced=...)."
            )

    def _key(self) -> tuple:
        return self.partitions, self.unreduced, self.reduced

    def __eq__(self, other) -> bool:
        return isinstance(other, PartitionSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [repr(p) for p in self.partitions]
        if not self.unreduced and not self.reduced:
            return f"P{self.partitions}"
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(map(repr, sorted(axes, key=str)))}}}")
        return f"P({', '.join(parts)})"

    def __reduce__(self):
        return _rebuild, (self.partitions, self.unreduced, self.reduced)


def _partition(p):
    """One entry in normal form: a tuple of one name is that name."""
    if isinstance(p, (list, tuple)):
        if any(isinstance(q, (list, tuple)) for q in p):
            raise ValueError(
                f"A tuple inside PartitionSpec cannot contain a nested tuple. Got {p!r}: name the mesh axes "
                "of one array axis in one tuple."
            )
        for q in p:
            _hashable(q)
        return None if not p else p[0] if len(p) == 1 else tuple(p)
    _hashable(p)
    return p


def _hashable(name) -> None:
    if isinstance(name, (set, dict)):
        raise TypeError(
            f"An entry of PartitionSpec is the name of a mesh axis, a tuple of names, or None; got {name!r}."
        )


def _check_reductions(partitions, unreduced, reduced) -> None:
    if isinstance(unreduced, (set, frozenset)) and unreduced & frozenset(reduced):
        raise ValueError(
            "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced: "
            f"{frozenset(unreduced)} and reduced: {frozenset(reduced)}."
        )
    used = {
        a for p in partitions if p is not None and p is not UNCONSTRAINED for a in (p if isinstance(p, tuple) else (p,))
    }
    for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if not isinstance(axes, (set, frozenset)):
            raise TypeError(
                f"`{name}` argument of PartitionSpec should be of type `frozenset` or `set`. Got type {class_of(axes)}."
            )
        if None in axes:
            raise ValueError(f"{name} cannot contain None, as it holds names of mesh axes; got {axes}.")
        if used & set(axes):
            raise ValueError(
                f"partitions cannot overlap with {name} axes passed to PartitionSpec. Got partitions: "
                f"{partitions} and {name} axes: {axes}."
            )


def _rebuild(partitions, unreduced, reduced) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


def check_memory_kind(kind: str | None) -> None:
    """Raise ValueError for a kind of memory that no device has."""
    if kind is not None and kind not in MEMORY_KINDS:
        raise ValueError(
            "Could not find memory addressable by device cpu. Device cpu can address the following "
            f"memory kinds: {', '.join(MEMORY_KINDS)}. Got memory kind: {kind}."
        )


class Sharding:
    """Says which devices hold which part of an array; the base class of shardings.

    Subclasses define `devices_indices_map` and `device_set`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import Sharding
        >>> x = jnp.ones((4, 2))
        >>> isinstance(x.sharding, Sharding), x.sharding.shard_shape(x.shape), x.sharding.num_devices
        (True, (4, 2), 1)
    """

    __slots__ = ("__weakref__",)

    def _repr_html_(self) -> str:
        return _display.sharding(self)

    def __deepcopy__(self, memo) -> Sharding:
        return self

    @property
    def device_set(self) -> set:
        raise NotImplementedError(f"{type(self).__name__} must define device_set: the set of devices it uses.")

    def devices_indices_map(self, global_shape) -> dict:
        """A map from each device to the slices of the array that it holds."""
        raise NotImplementedError(f"{type(self).__name__} must define devices_indices_map.")

    @property
    def addressable_devices(self) -> set:
        """The devices of this process among `device_set`."""
        return {d for d in self.device_set if d.process_index == d.client.process_index()}

    def addressable_devices_indices_map(self, global_shape) -> dict:
        here = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in here}

    @property
    def _device_assignment(self) -> tuple:
        """The devices in the order in which a program numbers them."""
        return tuple(sorted(self.device_set, key=lambda d: d.id))

    @property
    def _addressable_device_assignment(self) -> tuple:
        here = self.addressable_devices
        return tuple([d for d in self._device_assignment if d in here])

    num_devices = property(lambda self: len(self.device_set))
    has_addressable_devices = property(lambda self: bool(self.addressable_devices))
    is_fully_addressable = property(lambda self: self.addressable_devices == self.device_set)

    @property
    def is_fully_replicated(self) -> bool:
        raise NotImplementedError(f"{type(self).__name__} must define is_fully_replicated.")

    @property
    def memory_kind(self) -> str | None:
        return None

    def with_memory_kind(self, kind: str) -> Sharding:
        raise NotImplementedError(f"{type(self).__name__} has no memory kinds.")

    def shard_shape(self, global_shape) -> tuple:
        """The shape of the part that one device holds."""
        index = next(iter(self.devices_indices_map(global_shape).values()))
        return tuple([len(range(*i.indices(n))) for i, n in zip(index, global_shape)])

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same part of every array of `ndim` axes on each device."""
        return self == other

    def check_compatible_aval(self, aval_shape) -> None:
        """Raise ValueError for a shape that cannot be divided in this way."""


class SingleDeviceSharding(Sharding):
    """The sharding of an array that lies as a whole on one device.

    Args:
        device: the device.
        memory_kind: the kind of the device's memory that holds the array.

    Example:
        >>> import gradix
        >>> gradix.sharding.SingleDeviceSharding(gradix.devices()[0]).is_fully_replicated
        True
    """

    __slots__ = ("_device", "_memory_kind")

    def __init__(self, device, *, memory_kind: str | None = None):
        check_memory_kind(memory_kind)
        self._device, self._memory_kind = device, memory_kind

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        return self == other or (type(other) is not SingleDeviceSharding and other.is_equivalent_to(self, ndim))

    device_set = property(lambda self: {self._device})
    is_fully_replicated = property(lambda self: True)
    memory_kind = property(lambda self: self._memory_kind or "device")

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def devices_indices_map(self, global_shape) -> dict[Any, tuple]:
        return {self._device: (slice(None),) * len(global_shape)}

    def shard_shape(self, global_shape) -> tuple:
        return tuple(global_shape)

    def __eq__(self, other) -> bool:
        return (
            type(other) is SingleDeviceSharding
            and self._device == other._device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash((self._device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


class MemorySpace(enum.Enum):
    """The memories into which `device_put` puts arrays: that of the device, or that of the host.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.device_put(jnp.ones(2), gradix.memory.Space.Host).sharding.memory_kind
        'pinned_host'
    """

    Device = 1
    Host = 2
    Any = 3

    @property
    def kind(self) -> str:
        """The name of the memory, as in `memory_kind` of shardings."""
        return "pinned_host" if self is MemorySpace.Host else "device"


class Placement:
    """The sharding of a concrete array, and whether it is committed to it; a part of its type.

    `order` is the order of its axes in the memory of a device, slowest first; None is row-major order.
    """

    __slots__ = ("sharding", "is_committed", "order", "device", "is_whole", "is_readable", "_hash")

    def __init__(self, sharding: Sharding, is_committed: bool = True, order: tuple[int, ...] | None = None):
        self.sharding, self.is_committed, self.order = sharding, is_committed, order
        if getattr(getattr(sharding, "mesh", None), "is_abstract", False):  # the type of an array on devices to come
            self.device, self.is_whole, self.is_readable = None, False, False
            self._hash = hash((sharding, is_committed, order))
            return
        devices = sharding.device_set if sharding.num_devices == 1 else ()
        self.device = next(iter(devices)) if devices else None
        # Each device holds the whole, and all are of this process, so the host can have the values.
        self.is_whole = sharding.is_fully_replicated and sharding.is_fully_addressable
        self.is_readable = self.is_whole or (
            sharding.is_fully_addressable or (sharding.is_fully_replicated and bool(sharding.addressable_devices))
        )
        self._hash = hash((sharding, is_committed, order))

    def __eq__(self, other) -> bool:
        return self is other or (
            isinstance(other, Placement)
            and self.is_committed == other.is_committed
            and self.order == other.order
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return self._hash

    def of_rank(self, ndim: int) -> Placement:
        """The place of a result that each device holds; on explicit meshes its spec has an entry for each axis."""
        if self.order is not None:
            return Placement(self.sharding, self.is_committed).of_rank(ndim)
        sharding: Any = self.sharding
        mesh = getattr(sharding, "mesh", None)
        if mesh is None or not self.is_whole or len(sharding.spec) == ndim:
            return self
        if mesh.explicit_axes:
            return Placement(sharding.update(spec=PartitionSpec(*[None] * ndim)))
        return self if len(sharding.spec) < ndim else Placement(sharding.update(spec=PartitionSpec()))

    def __repr__(self) -> str:
        order = "" if self.order is None else f", order={self.order}"
        return f"Placement({self.sharding}, is_committed={self.is_committed}{order})"


class Shard:
    """The part of an array on one device: `data`, its `index` in the whole, and the `device`.

    Example:
        >>> import gradix.numpy as jnp
        >>> shard, = jnp.arange(3).addressable_shards
        >>> shard.index, shard.data
        ((slice(None, None, None),), Array([0, 1, 2], dtype=int32))
    """

    __slots__ = ("device", "index", "data", "replica_id")

    def __init__(self, device, index, data, replica_id: int = 0):
        self.device, self.index, self.data, self.replica_id = device, index, data, replica_id

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


P = PartitionSpec
