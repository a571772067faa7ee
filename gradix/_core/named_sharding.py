"""Shardings over many devices: `NamedSharding` on a mesh, `GSPMDSharding` from the compiler."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from gradix._base.errors import class_of
from gradix._core.mesh import AbstractMesh, AxisType, BaseMesh, Mesh
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec, Sharding, check_memory_kind


class IndivisibleError(ValueError):
    """Raised if an axis of an array cannot be divided evenly among the devices.

    Example:
        >>> import gradix
        >>> issubclass(gradix.errors.IndivisibleError, ValueError)
        True
    """

    __module__ = "gradix.errors"  # where users find it


class DuplicateSpecError(ValueError):
    """Raised if a mesh axis would divide two axes of an array.

    Example:
        >>> import gradix
        >>> mesh = gradix.make_mesh((1,), ("x",))
        >>> try:
        ...     gradix.NamedSharding(mesh, gradix.P("x", "x"))
        ... except gradix.errors.DuplicateSpecError as e:
        ...     print(str(e).partition(", but ")[2])
        P('x', 'x') has duplicate entries for `x`.
    """

    __module__ = "gradix.errors"


def axes_of(partition) -> tuple:
    """The mesh axes of one entry of a PartitionSpec."""
    if partition is None or partition is UNCONSTRAINED:
        return ()
    return partition if isinstance(partition, tuple) else (partition,)


def check_spec(spec: PartitionSpec, mesh: BaseMesh) -> None:
    """Raise ValueError for a spec that names an axis twice, or one that the mesh does not have."""
    for kind, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for name in axes:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"{kind} axes {name} is not found in mesh.axis_names={mesh.axis_names}. Got pspec={spec}."
                )
        if any(dict(zip(mesh.axis_names, mesh.axis_types))[n] is AxisType.Auto for n in axes):
            raise ValueError(
                f"{kind} axes can only refer to mesh axes that is of type `Explicit`. Got {kind.lower()} "
                f"axes: {axes} and mesh: {mesh}. Make the mesh with make_mesh, or with "
                "axis_types=(AxisType.Explicit, ...)."
            )
    if any(p is UNCONSTRAINED for p in spec) and mesh.axis_names and AxisType.Auto not in mesh.axis_types:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`, as the compiler decides "
            f"only about those. Got mesh axis_types: {mesh.axis_types}. Write None for an axis that is whole."
        )
    seen: set = set()
    for name in [a for p in spec for a in axes_of(p)] + sorted(spec.unreduced, key=str):
        if name not in mesh.axis_names:
            raise ValueError(
                f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}. A spec names axes of "
                "the mesh, or None."
            )
        if name in seen:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one positional "
                f"dimension, but {spec} has duplicate entries for `{name}`."
            )
        seen.add(name)


class NamedSharding(Sharding):
    """An array divided over the axes of a mesh, as a `PartitionSpec` says.

    Args:
        mesh: the mesh; an `AbstractMesh` where only the division matters.
        spec: for each axis of the array, the mesh axes over which it is divided.
        memory_kind: the kind of the devices' memory that holds the array.

    Raises:
        ValueError: `spec` names an axis twice, or one that `mesh` does not have; or the devices
            have no such memory.

    Example:
        >>> import gradix
        >>> from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> NamedSharding(Mesh(gradix.devices()[:1], "x"), P("x")).shard_shape((4, 2))
        (4, 2)
    """

    __slots__ = ("mesh", "spec", "_memory_kind", "_logical_device_ids", "__dict__")
    mesh: Any
    spec: PartitionSpec

    def __init__(
        self, mesh: BaseMesh, spec: PartitionSpec, *, memory_kind: str | None = None, _logical_device_ids=None
    ):
        if not isinstance(mesh, BaseMesh):
            raise TypeError(f"NamedSharding needs a Mesh, got mesh={mesh!r} of type {type(mesh).__name__}.")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"Unexpected type {class_of(spec)} for `spec`: NamedSharding needs a PartitionSpec, as "
                f"P({spec!r}); got {spec!r}."
            )
        check_memory_kind(memory_kind)
        check_spec(spec, mesh)
        self.mesh, self.spec, self._memory_kind = mesh, spec, memory_kind
        self._logical_device_ids = _logical_device_ids

    memory_kind = property(
        lambda self: self._memory_kind or (None if isinstance(self.mesh, AbstractMesh) else "device")
    )
    num_devices = property(lambda self: self.mesh.size)

    @property
    def _device_assignment(self) -> tuple:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(
                f"{self} is on an AbstractMesh, which has no devices. Make a mesh of devices with Mesh or make_mesh."
            )
        return self.mesh._flat_devices_tuple

    @property
    def device_set(self) -> set:
        return set(self._device_assignment)

    @property
    def is_fully_addressable(self) -> bool:
        return bool(self._device_assignment) and not self.mesh.is_multi_process

    @functools.cached_property
    def addressable_devices(self) -> set:
        """The devices of this process among `device_set`."""
        return set(self.mesh.local_devices)

    @property
    def replicated_axes(self) -> frozenset:
        """The mesh axes along which all devices hold the same values."""
        used = {a for p in self.spec for a in axes_of(p)}
        return frozenset(set(self.mesh.axis_names) - used)

    @functools.cached_property
    def is_fully_replicated(self) -> bool:
        sizes = self.mesh.shape
        named = [*[a for p in self.spec for a in axes_of(p)], *self.spec.unreduced]
        return prod([sizes[a] for a in named]) == 1

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes) -> NamedSharding:
        """A copy with `mesh`, `spec` or `memory_kind` changed."""
        return NamedSharding(
            changes.get("mesh", self.mesh),
            changes.get("spec", self.spec),
            memory_kind=changes.get("memory_kind", self._memory_kind),
        )

    def factors(self, ndim: int) -> list[int]:
        """The number of parts into which each of `ndim` axes is divided."""
        sizes = self.mesh.shape
        found = [prod([sizes[a] for a in axes_of(p)]) for p in self.spec]
        return found + [1] * (ndim - len(found))

    def check_compatible_aval(self, aval_shape) -> None:
        if len(aval_shape) < len(self.spec):
            scalar = " For scalars the PartitionSpec should be P()." if not aval_shape else ""
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was "
                f"applied to a value of rank {len(aval_shape)}.{scalar}"
            )

    def shard_shape(self, global_shape) -> tuple:
        """The shape of the part that one device holds.

        Raises:
            IndivisibleError: an axis does not divide evenly.
        """
        shape = tuple(global_shape)
        self.check_compatible_aval(shape)
        factors = self.factors(len(shape))
        for i, (n, f) in enumerate(zip(shape, factors)):
            if n % f:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {i} is partitioned {f} times, but the dimension size is "
                    f"{n} (full shape: {shape}, per-dimension tiling factors: {factors} should evenly divide the "
                    f"shape). Pad the axis to a multiple of {f}, or divide another axis."
                )
        return tuple([n // f for n, f in zip(shape, factors)])

    def coordinates(self, ndim: int) -> np.ndarray:
        """The number of each device's part along each of `ndim` axes, in the order of the mesh."""
        sizes, position = (self.mesh.shape, dict(zip(self.mesh.axis_names, np.indices(self.mesh.axis_sizes))))
        out = np.zeros((ndim, *self.mesh.axis_sizes), np.int64)
        for i, p in enumerate(self.spec):
            for a in axes_of(p):
                out[i] = out[i] * sizes[a] + position[a]
        return out.reshape(ndim, self.mesh.size).T

    def devices_indices_map(self, global_shape) -> dict:
        """A map from each device to the slices of the array that it holds."""
        shape = tuple(global_shape)
        part = self.shard_shape(shape)
        whole = [f == 1 for f in self.factors(len(shape))]
        return {
            d: tuple([slice(None) if w else slice(int(c) * n, (int(c) + 1) * n) for c, n, w in zip(at, part, whole)])
            for d, at in zip(self._device_assignment, self.coordinates(len(shape)))
        }

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same part of every array of `ndim` axes on each device."""
        return self == other or parts_of(self, ndim) == parts_of(other, ndim)

    def _key(self) -> tuple:
        return self.mesh, self.spec, self.memory_kind

    def __eq__(self, other) -> bool:
        return self is other or isinstance(other, NamedSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash(self._key())
        return found

    def __reduce__(self):
        return _named, (self.mesh, self.spec, self._memory_kind)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind is not None else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def _named(mesh, spec, kind) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=kind)


class GSPMDSharding(Sharding):
    """A sharding in the compiler's form: the number of parts per axis, and each device's part.

    Args:
        devices: the devices, in the order of `parts`.
        parts: for each device the number of its part along each axis; None if each device holds the
            whole array.
        counts: the number of parts along each axis.

    Example:
        >>> import gradix
        >>> from gradix.sharding import GSPMDSharding
        >>> whole = GSPMDSharding.get_replicated(gradix.devices()[:1])
        >>> whole.shard_shape((4, 2)), whole.is_fully_replicated
        ((4, 2), True)
    """

    __slots__ = ("_devices", "_counts", "_parts", "_memory_kind")

    def __init__(self, devices, counts=(), parts=None, *, memory_kind: str | None = None):
        self._devices, self._counts = tuple(devices), tuple(counts)
        self._parts = tuple([tuple(map(int, p)) for p in parts]) if parts is not None else ((),) * len(self._devices)
        self._memory_kind = memory_kind

    @classmethod
    def get_replicated(cls, devices, *, memory_kind: str | None = None) -> GSPMDSharding:
        """The sharding that puts the whole array on each of the devices."""
        return cls(devices, memory_kind=memory_kind)

    memory_kind = property(lambda self: self._memory_kind or "device")
    device_set = property(lambda self: set(self._devices))
    num_devices = property(lambda self: len(self._devices))
    _device_assignment = property(lambda self: self._devices)
    is_fully_replicated = property(lambda self: prod(self._counts) == 1)

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        return GSPMDSharding(self._devices, self._counts, self._parts, memory_kind=kind)

    def factors(self, ndim: int) -> list[int]:
        """The number of parts into which each of `ndim` axes is divided."""
        return [*self._counts, *[1] * (ndim - len(self._counts))]

    def coordinates(self, ndim: int) -> np.ndarray:
        """The number of each device's part along each of `ndim` axes."""
        rows = [(*p, *[0] * (ndim - len(p))) for p in self._parts]
        return np.array(rows, np.int64).reshape(len(self._devices), ndim)

    def shard_shape(self, global_shape) -> tuple:
        return tuple([-(-n // f) for n, f in zip(global_shape, self.factors(len(global_shape)))])

    def devices_indices_map(self, global_shape) -> dict:
        shape = tuple(global_shape)
        part, factors = self.shard_shape(shape), self.factors(len(shape))
        return {
            d: tuple(
                [
                    slice(None) if f == 1 else slice(int(c) * n, min((int(c) + 1) * n, whole))
                    for c, n, f, whole in zip(at, part, factors, shape)
                ]
            )
            for d, at in zip(self._devices, self.coordinates(len(shape)))
        }

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        return self == other or parts_of(self, ndim) == parts_of(other, ndim)

    def _key(self) -> tuple:
        return self._devices, self._counts, self._parts, self.memory_kind

    def __eq__(self, other) -> bool:
        return isinstance(other, GSPMDSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        how = "replicated" if self.is_fully_replicated else f"devices={list(self._counts)}, parts={self._parts}"
        return f"GSPMDSharding({{{how}}}, memory_kind={self.memory_kind})"


@functools.lru_cache(4096)
def parts_of(sharding: Sharding, ndim: int):
    """A key that is equal for equivalent shardings: parts, their counts, and memory kind."""
    coordinates: Any = getattr(sharding, "coordinates", None)
    if coordinates is None:
        return frozenset((d, ()) for d in sharding.device_set), (1,) * ndim, sharding.memory_kind
    factors = tuple(sharding.factors(ndim))  # type: ignore[attr-defined]
    spec: Any = getattr(sharding, "spec", None)
    if spec is not None and spec.unreduced:  # each device holds a different summand
        return sharding
    if all(f == 1 for f in factors):
        return frozenset((d, ()) for d in sharding.device_set), factors, sharding.memory_kind
    rows = map(tuple, coordinates(ndim).tolist())
    return frozenset(zip(assignment_of(sharding), rows)), factors, sharding.memory_kind


def assignment_of(sharding: Sharding) -> tuple:
    """The devices of a sharding, in its order."""
    return sharding._device_assignment


def named_like(mesh: Mesh, counts, parts, ndim: int) -> NamedSharding | None:
    """The sharding on `mesh` with these parts, in the mesh's order; None if no spec gives them."""
    spec: list[Any] = []
    sizes = mesh.axis_sizes
    grid = np.asarray(parts, np.int64).reshape(*sizes, ndim)
    origin = (0,) * len(sizes)
    if grid[origin].any():
        return None
    steps = {
        name: grid[tuple([int(k == j) if sizes[j] > 1 else 0 for k in range(len(sizes))])] - grid[origin]
        for j, name in enumerate(mesh.axis_names)
    }
    for i in range(ndim):
        mine = sorted(
            [(-int(s[i]), mesh.axis_names.index(n), n) for n, s in steps.items() if s[i] and mesh.shape[n] > 1]
        )
        names = tuple([n for _, _, n in mine])
        spec.append(None if not names else names[0] if len(names) == 1 else names)
    while spec and spec[-1] is None:
        spec.pop()
    flat = [a for p in spec for a in axes_of(p)]
    if len(set(flat)) != len(flat):
        return None
    if mesh.explicit_axes:  # their types have an entry for each axis
        spec += [None] * (ndim - len(spec))
    found = NamedSharding(mesh, PartitionSpec(*spec))
    same = np.array_equal(found.coordinates(ndim), np.asarray(parts).reshape(mesh.size, ndim))
    return found if same and found.factors(ndim) == list(counts) else None


@functools.lru_cache(1024)
def mesh_of_parts(sharding: Sharding) -> Mesh:
    """A mesh on which a `NamedSharding` can describe this sharding over several devices."""
    devices = np.array(assignment_of(sharding))
    counts = [n for n in getattr(sharding, "_counts", ()) if n > 1]
    if not counts:
        return Mesh(devices, ("devices",))
    own: Any = sharding
    factors = own.factors(len(own._counts))
    flat = np.ravel_multi_index(tuple(own.coordinates(len(factors)).T), factors)
    grid = devices[np.argsort(flat, kind="stable")].reshape(*counts, -1)
    return Mesh(grid, (*[f"part{i}" for i in range(len(counts))], "copy"))


def named_as(sharding: Sharding, mesh: Mesh, shape: tuple) -> NamedSharding | None:
    """A sharding as a `NamedSharding` on `mesh`; None if no spec gives it, or parts are uneven."""
    own: Any = sharding
    if not hasattr(own, "coordinates") or set(assignment_of(own)) != set(mesh._flat_devices_tuple):
        return None
    factors, rows = own.factors(len(shape)), own.coordinates(len(shape))
    if any(n % f for n, f in zip(shape, factors)):
        return None
    at = dict(zip(assignment_of(own), rows))
    return named_like(mesh, factors, [at[d] for d in mesh._flat_devices_tuple], len(shape))
