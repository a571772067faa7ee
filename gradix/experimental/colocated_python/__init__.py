"""Python functions and objects on the hosts of the devices that hold their arguments.

The devices of this process are on its own host, so a function is called here, in the thread of its
caller, and the call ends when the function does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix._api.devices import Device, devices as all_devices
from gradix._api.placing import device_put
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.config import default_device
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import equality_errors, keystr, tree_flatten_with_path, tree_map
from gradix._core.array import ArrayImpl, as_array
from gradix._core.mesh import Mesh
from gradix._core.trace import Tracer

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices on the hosts of the given devices, in their order.

    Args:
        devices_or_mesh: a sequence of devices, or a mesh.

    Returns:
        A list of devices, or a mesh of the same shape and axes. A CPU device stands for itself, the
        device number i of a process for the CPU device number i of this process, from the first
        again where there are fewer.

    Raises:
        ValueError: a device belongs to another process, whose CPU devices are not known here.

    Example:
        >>> import gradix
        >>> from gradix.experimental import colocated_python
        >>> colocated_python.colocated_cpu_devices(gradix.devices()[:1])
        [CpuDevice(id=0)]
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        found = np.empty(mesh.devices.size, dtype=object)
        found[:] = colocated_cpu_devices(mesh.devices.flat)
        return Mesh(found.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types)
    devices = list(devices_or_mesh) if hasattr(devices_or_mesh, "__iter__") else [devices_or_mesh]
    if not all(isinstance(d, Device) for d in devices):
        raise TypeError(f"colocated_cpu_devices takes a Mesh or a sequence of devices, got {devices_or_mesh!r}.")
    return [_cpu_of(device) for device in devices]


def _cpu_of(device):
    if device.platform == "cpu":
        return device
    cpus = [d for d in all_devices("cpu") if d.process_index == device.process_index]
    if not cpus:
        raise ValueError(
            f"colocated_cpu_devices got {device}, which belongs to process {device.process_index}; the CPU devices of "
            "another process are not known here. Give the devices of this process: gradix.local_devices()."
        )
    return cpus[device.local_hardware_id % len(cpus) if device.local_hardware_id is not None else 0]


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs in Python on the host of the devices that hold its arguments.

    Args:
        fun: a function of pytrees of arrays, which returns a pytree. It gets arrays with values, so
            it may print them, write files and call any library. Arrays that it makes are put on the
            first of the devices unless it says otherwise.

    Returns:
        The function. Its method `specialize(in_specs=None, out_specs_fn=None, devices=None)` returns
        one that knows more: `in_specs`, a pytree of `ShapeDtypeStruct` for `(args, kwargs)`, which the
        arguments are compared with; `out_specs_fn`, which is given the specs of the arguments and
        returns those of the results, which these are compared with and put to; and the `devices`,
        which a function without arguments needs. Each can be given once.

    Raises:
        TypeError: an argument is not an array, or is traced; `out_specs_fn` disagrees with the result.
        ValueError: the arguments lie on different devices, or disagree with `in_specs`; there are
            neither arguments nor devices.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.colocated_python import colocated_python
        >>> def log(x):
        ...     print("the sum is", float(x.sum()))
        ...     return x + 1
        >>> colocated_python(log)(jnp.arange(3))
        the sum is 3.0
        Array([1, 2, 3], dtype=int32)
    """
    return _specialized(fun, {})


def _specialized(fun: Callable, known: dict[str, Any]) -> Callable:
    def specialize(
        in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None, devices: Sequence[Any] | None = None
    ) -> Callable[..., Any]:
        """The function with these specs or devices known as well; see `colocated_python`."""
        given = {"in_specs": in_specs, "out_specs_fn": out_specs_fn, "devices": devices}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if name in known:
                raise ValueError(f"{name} is already specified for {_name(fun)}: specialize the function as it was.")
        if devices is not None:
            given["devices"] = tuple(devices)
            if not given["devices"]:
                raise ValueError(f"devices is empty: {_name(fun)} needs a device to run beside.")
        return _specialized(fun, known | given)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        specs = _specs((args, kwargs), fun)
        if "in_specs" in known:
            _compare(known["in_specs"], specs, fun, "in_specs", "the argument", ValueError)
        wanted = known["out_specs_fn"](*specs[0], **specs[1]) if "out_specs_fn" in known else None
        with default_device(_devices(args, kwargs, known.get("devices"), fun)[0]):
            result = tree_map(as_array, fun(*args, **kwargs))
        if wanted is None:
            return result
        _compare(wanted, result, fun, "out_specs_fn", "the result", TypeError)
        return tree_map(lambda s, y: y if s.sharding is None else device_put(y, s.sharding), wanted, result)

    call.specialize = specialize  # type: ignore[attr-defined]
    return call


def _name(fun: Callable) -> str:
    return getattr(fun, "__qualname__", repr(fun))


def _argument(path: tuple) -> str:
    return ("args", "kwargs")[path[0].idx] + keystr(path[1:])


def _specs(values: Any, fun: Callable) -> Any:
    """The types and shardings of arrays with values."""
    for path, x in tree_flatten_with_path(values)[0]:
        if isinstance(x, Tracer):
            raise TypeError(
                f"{_name(fun)} runs in Python on arrays with values, and was given a traced value, {x}. Inside of jit, "
                "grad or vmap call it by gradix.pure_callback or gradix.experimental.io_callback."
            )
        if not isinstance(x, ArrayImpl):
            raise TypeError(
                f"{_name(fun)} takes arrays, which lie on a device; {_argument(path)} is of type "
                f"{type(x).__name__}. Write gradix.numpy.asarray(x), or gradix.device_put(x, device)."
            )
    return tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding, weak_type=x.weak_type), values)


def _devices(args, kwargs, given: tuple | None, fun: Callable) -> tuple:
    """The devices of a call, in order: those of its arguments, which must be those that are given."""
    found = {path: tuple(x.sharding._device_assignment) for path, x in tree_flatten_with_path((args, kwargs))[0]}
    if given is None and not found:
        raise ValueError(
            f"{_name(fun)} was called without arrays, so its devices are not known: call "
            f"{_name(fun)}.specialize(devices=gradix.devices()) first."
        )
    first = given or next(iter(found.values()))
    for path, devices in found.items():
        if devices != first:
            raise ValueError(
                f"all arguments of {_name(fun)} must lie on the same devices: {_argument(path)} lies on "
                f"{list(devices)}, {'the function' if given else 'the first argument'} on {list(first)}. Move it with "
                "gradix.device_put."
            )
    return first


def _compare(wanted: Any, found: Any, fun: Callable, name: str, what: str, kind: type[Exception]) -> None:
    """Raise an error where specs differ in structure, shape or dtype."""
    for path, one, two, why in equality_errors(wanted, found):
        raise kind(f"{name} of {_name(fun)} has {one} at {keystr(path) or 'its top'}, {what} {two}: {why}.")
    for (path, want), (_, have) in zip(tree_flatten_with_path(wanted)[0], tree_flatten_with_path(found)[0]):
        if (want.shape, want.dtype) != (have.shape, have.dtype):
            raise kind(
                f"{name} of {_name(fun)} says {want.dtype}{list(want.shape)} at {keystr(path) or 'its top'}, and "
                f"{what} there is {have.dtype}{list(have.shape)}."
            )


def colocated_python_class(cls: type[object]) -> type[object]:
    """A class whose methods run in Python on the host of the devices that hold their arguments.

    Args:
        cls: the class. An object of it is made when a method is called for the first time, with the
            arguments that the returned class was called with, and lives as long as the object that
            stands for it.

    Returns:
        A class with the methods of `cls`, each as by `colocated_python`; other attributes of its
        objects are not reached from here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.colocated_python import colocated_python_class
        >>> @colocated_python_class
        ... class Counter:
        ...     def __init__(self, start):
        ...         self.count = start
        ...     def add(self, x):
        ...         self.count += 1
        ...         return x + self.count
        >>> counter = Counter(10)
        >>> int(counter.add(jnp.int32(1))), int(counter.add(jnp.int32(1)))
        (12, 13)
    """

    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class takes a class, got {cls!r}. Write colocated_python(f) for a function.")

    class Colocated:
        def __init__(self, *args, **kwargs):
            self._make = functools.cache(lambda: cls(*args, **kwargs))

    def method(name: str, fun: Callable) -> Callable:
        @functools.wraps(fun)
        def call(self, *args, **kwargs):
            @functools.wraps(fun)
            def bound(*args, **kwargs):
                return getattr(self._make(), name)(*args, **kwargs)

            return colocated_python(bound)(*args, **kwargs)

        return call

    own = {name: fun for base in reversed(cls.__mro__[:-1]) for name, fun in vars(base).items()}
    for name, fun in own.items():
        if callable(fun) and not isinstance(fun, type) and name not in ("__init__", "__new__", "__del__"):
            setattr(Colocated, name, method(name, fun))
    Colocated.__name__, Colocated.__qualname__ = cls.__name__, cls.__qualname__
    Colocated.__doc__, Colocated.__module__ = cls.__doc__, cls.__module__
    return Colocated


__dir__ = _own_names(__name__)
