"""Meshes: devices arranged along named axes, and the mesh in force."""

from __future__ import annotations

import enum
import functools
from collections import OrderedDict
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradix._base import config as _config
from gradix._base.lazy import lazy_module

_display = lazy_module("gradix._core.display")


class AxisType(enum.Enum):
    """How sharding along a mesh axis is decided.

    `Auto`: the compiler decides. `Explicit`: the types of arrays state it. `Manual`: the user
    decides, within `shard_map`.

    Example:
        >>> import gradix
        >>> from gradix.sharding import AxisType
        >>> gradix.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,)).axis_types
        (Auto,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(NamedTuple):
    """The properties of a kind of device, for programs that are not bound to devices.

    Example:
        >>> from gradix.sharding import AbstractDevice, AbstractMesh
        >>> gpu = AbstractDevice(device_kind="NVIDIA H100", num_cores=None, platform="gpu")
        >>> AbstractMesh((8,), ("x",), abstract_device=gpu).abstract_device
        AbstractDevice(device_kind=NVIDIA H100, num_cores=None, platform=gpu)
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({', '.join([f'{n}={v}' for n, v in zip(self._fields, self)])})"


class ManualAxisType:
    """The mesh axes over which a value in `shard_map` varies, is unreduced, or is reduced.

    It cannot be changed, and equal ones are one object.

    Example:
        >>> import gradix
        >>> from gradix.sharding import ManualAxisType
        >>> ManualAxisType(varying={"x"}).varying, ManualAxisType(varying={"x"}) is ManualAxisType(varying={"x"})
        (frozenset({'x'}), True)
    """

    __slots__ = ("_key",)
    _key: tuple[frozenset, frozenset, frozenset]
    _known: dict[tuple, ManualAxisType] = {}

    def __new__(cls, *, varying=frozenset(), unreduced=frozenset(), reduced=frozenset()):
        key = frozenset(varying), frozenset(unreduced), frozenset(reduced)
        found = cls._known.get(key)
        if found is None:
            new = object.__new__(cls)
            object.__setattr__(new, "_key", key)
            found = cls._known.setdefault(key, new)
        return found

    varying = property(lambda self: self._key[0])
    unreduced = property(lambda self: self._key[1])
    reduced = property(lambda self: self._key[2])

    def invarying(self, mesh: BaseMesh) -> frozenset:
        """The manual axes of a mesh along which the value is equal on all devices."""
        return frozenset(mesh.manual_axes).difference(*self._key)

    def __setattr__(self, name: str, value):
        raise AttributeError(f"cannot assign to field {name!r} of a ManualAxisType: make another one instead.")

    def __copy__(self) -> ManualAxisType:
        return self

    def __deepcopy__(self, memo) -> ManualAxisType:
        return self

    def __reduce__(self):
        return _manual_axis_type, self._key

    def __repr__(self) -> str:
        parts = [f"{n}={v}" for n, v in zip(("varying", "unreduced", "reduced"), self._key)]
        return f"ManualAxisType({', '.join(parts)})"


def _manual_axis_type(varying, unreduced, reduced) -> ManualAxisType:
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def _several(given, names) -> str:
    """What to write for names of axes that are passed one by one."""
    if not isinstance(given, str):
        return ""
    return f" The names of all axes go into one tuple, {(*names, given)!r}."


def _axis_types(given, names) -> tuple[AxisType, ...]:
    if given is None:
        return (AxisType.Auto,) * len(names)
    types = (given,) * len(names) if isinstance(given, AxisType) else tuple(given)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(
            f"axis_types must be members of AxisType, such as AxisType.Auto; got {given!r}.{_several(given, names)}"
        )
    if len(types) != len(names):
        raise ValueError(
            f"Number of axis names must match the number of axis_types. Got axis_names={names} and "
            f"axis_types={types}: give one AxisType for each name."
        )
    return types


class BaseMesh:
    """The base class of meshes with and without devices: named axes, their sizes and types."""

    __slots__ = ("axis_names", "axis_sizes", "axis_types", "__weakref__")
    axis_names: tuple
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    abstract_mesh: Any

    def _repr_html_(self) -> str:
        return _display.mesh(self)

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes))

    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes)))
    size = property(lambda self: prod(self.axis_sizes) if self.axis_names else 0)
    is_scalar = property(lambda self: not self.axis_names)

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types) if t is kind])

    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))

    def _all(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    are_all_axes_auto = property(lambda self: self._all(AxisType.Auto))
    are_all_axes_explicit = property(lambda self: self._all(AxisType.Explicit))
    are_all_axes_manual = property(lambda self: self._all(AxisType.Manual))

    def _axes_text(self) -> str:
        sizes = [f"{n!r}: {s}" for n, s in self.shape_tuple]
        return ", ".join(
            [*sizes, f"axis_types=({', '.join(map(repr, self.axis_types))}{',' if len(self.axis_types) == 1 else ''})"]
        )


class AbstractMesh(BaseMesh):
    """A mesh without devices, for programs that are not bound to particular ones.

    Args:
        axis_sizes: how many devices there are along each axis.
        axis_names: the names of the axes.
        axis_types: an `AxisType` for all of them, or one for each; `Auto` by default.
        abstract_device: the kind of device, if the program depends on it.

    Raises:
        ValueError: there are not as many sizes as names, or as types.

    Example:
        >>> from gradix.sharding import AbstractMesh
        >>> AbstractMesh((4, 2), ("data", "model")).shape["data"]
        4
    """

    __slots__ = ("abstract_device",)
    is_abstract = True

    def __init__(self, axis_sizes, axis_names, axis_types=None, *, abstract_device: AbstractDevice | None = None):
        self.axis_sizes, self.axis_names = tuple(axis_sizes), _names(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh needs a size for each name; got axis_sizes={self.axis_sizes} and "
                f"axis_names={self.axis_names}."
            )
        self.axis_types = _axis_types(axis_types, self.axis_names)
        self.abstract_device = abstract_device

    empty = property(lambda self: not self.axis_names)
    abstract_mesh = property(lambda self: self)

    def _without_devices(self, what: str):
        raise ValueError(f"AbstractMesh does not implement {what}: it has no devices. Make a Mesh of devices.")

    devices = property(lambda self: self._without_devices("devices"))
    device_ids = property(lambda self: self._without_devices("device_ids"))
    local_devices = property(lambda self: self._without_devices("local_devices"))
    local_mesh = property(lambda self: self._without_devices("local_mesh"))
    is_multi_process = property(lambda self: self._without_devices("is_multi_process"))

    def update(self, axis_sizes=None, axis_names=None, axis_types=None, **changes) -> AbstractMesh:
        """A copy with some fields changed.

        Raises:
            TypeError: there is no such field.
        """
        if changes.keys() - {"abstract_device"}:
            raise TypeError(
                f"AbstractMesh.update() got unexpected keyword arguments {sorted(changes)}; its fields are "
                "axis_sizes, axis_names, axis_types and abstract_device."
            )
        return AbstractMesh(
            axis_sizes or self.axis_sizes,
            axis_names or self.axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=changes.get("abstract_device", self.abstract_device),
        )

    def update_axis_types(self, name_to_type: dict) -> AbstractMesh:
        """A copy with other types for the named axes."""
        return self.update(axis_types=tuple([name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types)]))

    def _key(self) -> tuple:
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    def __eq__(self, other) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self):
        return _abstract_mesh, self._key()

    def __repr__(self) -> str:
        if not self.axis_names:
            return "AbstractMesh((), axis_types=())"
        kind = (
            ""
            if self.abstract_device is None
            else "".join([f", {n}={v}" for n, v in zip(AbstractDevice._fields, self.abstract_device)])
        )
        return f"AbstractMesh({self._axes_text()}{kind})"


def _abstract_mesh(sizes, names, types, device) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


def _names(given) -> tuple:
    if not hasattr(given, "__iter__"):
        raise TypeError(f"axis_names must be a tuple with a name for each axis of the mesh, got {given!r}.")
    names = (given,) if isinstance(given, str) else tuple(given)
    if None in names:
        raise ValueError(f"Mesh axis names cannot be None. Got: {names}. Give each axis a name.")
    return names


class Mesh(BaseMesh):
    """Devices arranged along named axes, for shardings to refer to.

    Args:
        devices: an array, or nested sequences, of devices.
        axis_names: a name for each of its axes.
        axis_types: an `AxisType` for each; `Auto` by default.

    Raises:
        ValueError: there are not as many names or types as axes, or a device occurs twice.

    Example:
        >>> import gradix
        >>> from gradix.sharding import Mesh
        >>> Mesh(gradix.devices()[:1], "data").shape_tuple
        (('data', 1),)
    """

    __slots__ = ("devices", "_flat_devices_tuple", "_abstract", "__dict__")
    devices: np.ndarray

    def __init__(self, devices, axis_names, axis_types=None):
        array = np.array(devices, dtype=object) if not isinstance(devices, np.ndarray) else devices.copy()
        self.axis_names = _names(axis_names)
        if array.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), but got devices.ndim == {array.ndim} and "
                f"len(axis_names) == {len(self.axis_names)}. Reshape the devices: "
                "np.array(devices).reshape(...)."
            )
        self.axis_types = _axis_types(axis_types, self.axis_names)
        wrong = next((d for d in array.flat if not hasattr(d, "id")), None)
        if wrong is not None:
            raise TypeError(
                f"Mesh needs devices, as gradix.devices() gives them; got {wrong!r} of type "
                f"{type(wrong).__name__} among them."
            )
        array.setflags(write=False)
        self.devices, self._flat_devices_tuple = array, tuple(array.flat)
        self.axis_sizes = array.shape
        if len(set(self._flat_devices_tuple)) != array.size:
            raise ValueError(
                f"Mesh got a device more than once among {[str(d) for d in array.flat]}; each may occur once."
            )

    def __deepcopy__(self, memo) -> Mesh:
        return self

    empty = property(lambda self: self.devices.size == 0 or not self.axis_names)
    size = property(lambda self: self.devices.size if self.axis_names else 0)
    local_devices = property(lambda self: [d for d in self._flat_devices_tuple if d.process_index == _own_process(d)])
    device_set = property(lambda self: set(self._flat_devices_tuple))

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, in the mesh's shape."""
        return np.array([d.id for d in self._flat_devices_tuple], dtype=np.int64).reshape(self.axis_sizes)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self._flat_devices_tuple}) > 1

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh with the devices of this process.

        Raises:
            ValueError: these devices are not a rectangular part of the mesh.
        """
        if not self.is_multi_process:
            return self
        own = np.vectorize(lambda d: d.process_index == _own_process(d), otypes=[bool])(self.devices)
        where = np.argwhere(own)
        box = tuple([slice(a, b + 1) for a, b in zip(where.min(0), where.max(0))])
        part = self.devices[box]
        if not own[box].all():
            raise ValueError(
                "When passing host local inputs, the devices of this process must be one block of the "
                f"mesh, which they are not in {self}. Order the devices by process."
            )
        return Mesh(part, self.axis_names, self.axis_types)

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        device = None
        if not self.empty:
            first = self._flat_devices_tuple[0]
            device = AbstractDevice(first.device_kind, getattr(first, "num_cores", None), first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices=None, axis_names=None, axis_types=None) -> Mesh:
        """A copy with some fields changed."""
        return Mesh(
            self.devices if devices is None else devices,
            axis_names or self.axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def _key(self) -> tuple:
        return self._flat_devices_tuple, self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other) -> bool:
        return self is other or isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash(self._key())
        return found

    def __repr__(self) -> str:
        types = f", axis_types=({', '.join(map(repr, self.axis_types))}{',' if len(self.axis_types) == 1 else ''})"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types if self.axis_names else ''})"

    def __str__(self) -> str:
        return f"Mesh({self._axes_text()})" if self.axis_names else "Mesh()"

    def __enter__(self) -> Mesh:
        """Let specs without a mesh refer to this one. Programs run on its devices only if they name
        it, in a sharding, a constraint or `shard_map`; `set_mesh` moves all programs there.
        """
        self.__dict__.setdefault("_before", []).append(_config.enter_local("gradix_mesh", self))
        return self

    def __exit__(self, *exc) -> None:
        _config.leave_local("gradix_mesh", self.__dict__["_before"].pop())

    def __call__(self, function: Callable) -> Callable:
        """As a decorator: `function`, which runs within `with mesh:`."""

        @functools.wraps(function)
        def within(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return within


def _own_process(device) -> int:
    return device.client.process_index()


empty_mesh = Mesh(np.empty((), dtype=object), ())
empty_abstract_mesh = AbstractMesh((), ())


def _check_mesh(name: str, value: Any) -> Any:
    if value is None or isinstance(value, BaseMesh):
        return value
    raise ValueError(f"{name} must be a Mesh, got {value!r} of type {type(value).__name__}.")


_config.define("gradix_mesh", None, _check_mesh, traced=True)
_config.define("gradix_home_mesh", None, _check_mesh, traced=True)
_config.define("gradix_auto_mesh", None, _check_mesh, traced=True)


def mesh_to_run_on() -> Mesh | None:
    """The mesh on whose devices programs run that name no others: `set_mesh` puts it in force."""
    mesh = _config.state.gradix_mesh
    runs = isinstance(mesh, Mesh) and mesh is _config.state.gradix_home_mesh and not mesh.empty
    return mesh if runs else None
