"""`pmap`: maps a function over an axis, with one example on each device."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from gradix._api.arguments import argument_names, as_numbers, check_callable, leaf_names, name_of, positions, stand_in
from gradix._api.boundary import Flat, arrays
from gradix._api.devices import devices as all_devices
from gradix._api.jit.jit import jit
from gradix._api.mapping.shard_map import shard_map
from gradix._api.mapping.vmap import vmap
from gradix._api.placing import placed
from gradix._base.config import guards_transfers
from gradix._base.tracebacks import boundary
from gradix._base.tree import flatten_axes, tree_flatten as flatten
from gradix._control.shard_map import Frame
from gradix._core.array import ArrayImpl, as_array
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.sharding import PartitionSpec
from gradix._core.trace import Tracer, state
from gradix._ops.basis import expand_axis
from gradix._ops.shape import reshape
from gradix._runtime import xla
from gradix._runtime.placement import check_move

_UNNAMED = "_internal_pmap_axis_name"


def pmap(
    fun: Callable,
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """`fun` mapped over an axis of its arguments, with each example on its own device.

    Args:
        fun: the function of one example.
        axis_name: a name of the axis for collectives such as `lax.psum`.
        in_axes: the axis of each positional argument that is mapped: an int, None for an argument
            that all devices get whole, or a tree prefix of the tuple of arguments. Keyword
            arguments map over axis 0.
        out_axes: the position of the mapped axis in each result; None for a result that is the same
            on all devices.
        static_broadcasted_argnums: positional arguments that are Python values.
        devices: the devices to use; by default the first devices of this process.
        backend: the name of the platform, such as "cpu".
        axis_size: the number of examples; it must fit the arguments.
        donate_argnums: arguments whose memory the results may reuse.

    Returns:
        The mapped function, compiled. Inside of another `pmap` or of `shard_map` its examples are
        mapped as by `vmap`, since the devices are taken.

    Raises:
        ValueError: there are more examples than devices, mapped sizes differ, or nothing is mapped.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.pmap(lambda x: x / gradix.lax.psum(x, "i"), axis_name="i")(jnp.ones((1, 2)))
        Array([[1., 1.]], dtype=float32)
    """
    check_callable("pmap", fun)
    static = as_numbers("static_broadcasted_argnums", static_broadcasted_argnums)
    donated = as_numbers("donate_argnums", donate_argnums)
    if axis_name is None:
        axis_name = _UNNAMED
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if any(isinstance(a, bool) or not hasattr(a, "__index__") for a in flatten(axes)[0]):
            raise TypeError(
                f"pmap {name} must be an int, None, or (nested) container with those types as leaves, but got {axes!r}."
            )
    if backend is not None:
        all_devices(backend)
    if devices is not None and not len(devices):
        raise ValueError("pmap got an empty list of devices. Leave devices out for the devices of this process.")
    return PmapFunction(
        fun, axis_name, in_axes, out_axes, static=static, devices=devices, axis_size=axis_size, donated=donated
    )


_functions: weakref.WeakSet = weakref.WeakSet()


@xla.on_renewal
def _forget_devices() -> None:
    for f in _functions:
        f._plans.clear()


class PmapFunction:
    """A function mapped over devices; made by `pmap`."""

    def __init__(self, fun, axis_name, in_axes, out_axes, *, static, devices, axis_size, donated):
        stand_in(self, fun)
        self._fun, self._name, self._axis = fun, name_of(fun), axis_name
        self._in_axes, self._out_axes = in_axes, out_axes
        self._static, self._size = static, axis_size
        self._devices = list(devices) if devices is not None else None
        self._plans: dict = {}
        _functions.add(self)

        def whole(*args, **kwargs):
            return self._mapped(args, kwargs)

        whole.__name__, whole.__qualname__ = self._name, self._name
        self._jit = jit(whole, static_argnums=static or None, donate_argnums=donated or None)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    @boundary
    def __call__(self, *args, **kwargs):
        # `debug.values()` shows the numbers of all devices, as those of examples
        if any(isinstance(t, Frame) for t in state.axes.values()) or state.shows_values:
            return self._on_one_device(args, kwargs)
        if not self._static and state.stage is None:
            leaves, tree = flatten((args, kwargs))
            try:
                key = (tree, tuple([x.aval if type(x) is ArrayImpl else (x.shape, x.dtype) for x in leaves]))
                plan = self._plans.get(key)
            except (AttributeError, TypeError):
                key = plan = None  # arguments of other types have no plan
            if guards_transfers() or any(isinstance(x, Tracer) for x in leaves):  # which the slow path checks or moves
                plan = key = None
            if plan is None and key is not None:
                plan = self._plan(args, kwargs, key)
            if plan is not None:
                pairs = zip(map(as_array, leaves), plan)
                args, kwargs = tree.unflatten([x if x.aval.place is p else placed(x, p.sharding) for x, p in pairs])
                return self._jit(*args, **kwargs)
        return self._jit(*self._placed(args, kwargs), **{k: self._put(k, v, 0) for k, v in kwargs.items()})

    def _plan(self, args, kwargs, key) -> list:
        """The placements of the leaves, for arguments of these types."""
        given = self._placed(args, kwargs), {k: self._put(k, v, 0) for k, v in kwargs.items()}
        plan = [x.aval.place for x in flatten(given)[0]]
        if len(self._plans) >= 256:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    @boundary
    def lower(self, *args, **kwargs):
        """The function traced and lowered to StableHLO, for arguments like these."""
        return self._jit.lower(*self._placed(args, kwargs), **kwargs)

    @boundary
    def trace(self, *args, **kwargs):
        """The function traced for arguments like these."""
        return self._jit.trace(*self._placed(args, kwargs), **kwargs)

    @boundary
    def eval_shape(self, *args, **kwargs):
        """The types of the results."""
        return self._jit.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Drop all traces and compiled programs of this function."""
        self._jit.clear_cache()

    def __repr__(self) -> str:
        return f"<pmap of {self._fun!r}>"

    # -- axes --------------------------------------------------------------------------------------

    def _axes(self, args) -> list:
        """For each positional argument the axes of its leaves; None for a static one."""
        static = positions(self._static, len(args))
        given = self._in_axes
        if isinstance(given, tuple) and len(given) != len(args):
            raise ValueError(
                "pmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got {len(given)} entries in "
                f"in_axes={given} for {len(args)} positional arguments of {self._name}."
            )
        out: list = []
        for i, a in enumerate(args):
            entry = given[i] if isinstance(given, tuple) else given
            out.append(None if i in static else flatten_axes(f"pmap in_axes of argument {i}", flatten(a)[1], entry))
        return out

    def _size_of(self, args, kwargs) -> int:
        """The number of examples."""
        rows = []
        for name, a, axes in zip(argument_names(self._fun, len(args)), args, self._axes(args)):
            if axes is not None:
                rows += [(n, x, k) for n, x, k in zip(leaf_names(name, a), flatten(a)[0], axes) if k is not None]
        for name, a in kwargs.items():
            rows += [(n, x, 0) for n, x in zip(leaf_names(name, a), flatten(a)[0])]
        sizes = {}
        for name, x, k in rows:
            shape = np.shape(x)
            if not -len(shape) <= k < len(shape):
                raise ValueError(
                    f"pmap was requested to map its argument along axis {k}, which implies that its rank "
                    f"should be at least {k + 1 if k >= 0 else -k}, but is only {len(shape)}: argument "
                    f"{name} of {self._name} has shape {shape}."
                )
            sizes[name] = shape[k]
        if self._size is not None:
            sizes["axis_size"] = self._size
        if not sizes:
            raise ValueError(
                "pmap requires at least one argument with a mapped axis, or axis_size; nothing is mapped "
                f"in the call of {self._name}."
            )
        if len(set(sizes.values())) > 1:
            raise ValueError(
                "pmap got inconsistent sizes for array axes to be mapped, in the call of "
                f"{self._name}: {', '.join([f'{n} has {s}' for n, s in sizes.items()])}. All must have "
                "the same size; share an argument among the devices with in_axes=None."
            )
        return next(iter(sizes.values()))

    def _mesh(self, size: int) -> Mesh:
        found = self._devices if self._devices is not None else xla.local_devices()
        if size > len(found) or (self._devices is not None and size != len(found)):
            there = "devices=" if self._devices is not None else "this process"
            raise ValueError(
                f"compiling computation of {self._name} that requires {size} logical devices, but "
                f"{len(found)} XLA devices are available of {there}: pmap runs one example on each. Use "
                f"vmap for more, or, on the CPU, gradix.config.update('jax_num_cpu_devices', {size})."
            )
        chosen = np.empty(size, dtype=object)
        chosen[:] = found[:size]
        return Mesh(chosen, (self._axis,))

    # -- calls -------------------------------------------------------------------------------------

    def _placed(self, args, kwargs) -> list:
        """The arguments, divided over the devices."""
        mesh = self._mesh(self._size_of(args, kwargs))
        self._here = mesh
        return [a if axes is None else self._put(a, a, axes, mesh) for a, axes in zip(args, self._axes(args))]

    def _put(self, name, value, axes, mesh: Mesh | None = None):
        mesh = mesh or self._here
        leaves, tree = flatten(value)
        axes = [axes] * len(leaves) if isinstance(axes, int) else axes
        return tree.unflatten([self._put_leaf(x, k, mesh) for x, k in zip(leaves, axes)])

    def _put_leaf(self, x, axis, mesh: Mesh):
        try:
            x = as_array(x)
        except TypeError:
            return x  # `jit` raises the error, which names the argument
        if isinstance(x, Tracer) or state.stage is not None or type(x) is not ArrayImpl:
            return x
        sharding = NamedSharding(mesh, self._spec(axis, x.aval.ndim))
        check_move(x, sharding)
        return placed(x, sharding)

    def _spec(self, axis, ndim: int) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * (axis % ndim), self._axis)

    def _mapped(self, args, kwargs):
        """The whole mapped function, by `shard_map` over the devices."""
        mesh = self._mesh(self._size_of(args, kwargs))
        static = positions(self._static, len(args))
        dynamic = [a for i, a in enumerate(args) if i not in static]
        axes = [k for k in self._axes(args) if k is not None]
        leaves, tree = flatten((dynamic, kwargs))
        every = [k for part in axes for k in part] + [0] * (len(leaves) - sum(map(len, axes)))
        specs = [self._spec(k, x.ndim) for k, x in zip(every, leaves)]
        out_specs: list = []

        def given(parts):
            own = [x if k is None else _without(x, k % x.ndim) for x, k in zip(parts, every)]
            positional, named = tree.unflatten(own)
            rest = iter(positional)
            return [a if i in static else next(rest) for i, a in enumerate(args)], named

        def close(results, out_tree):
            wanted = flatten_axes("pmap out_axes", out_tree, self._out_axes)
            results = arrays(f"pmap of {self._name}", results, out_tree, "output")
            out_specs[:] = [self._out_spec(k, r) for k, r in zip(wanted, results)]
            return [r if k is None else expand_axis(r, k % (r.ndim + 1)) for r, k in zip(results, wanted)]

        flat = Flat(self._fun, self._name, given, close=close)

        def part(*arguments):
            return flat(*arguments)

        part.__name__ = self._name

        results = shard_map(part, mesh=mesh, in_specs=tuple(specs), out_specs=lambda: out_specs, check_vma=False)(
            *leaves
        )
        return flat.out_tree.unflatten(results)

    def _out_spec(self, axis, x) -> PartitionSpec:
        if axis is not None and not -x.ndim - 1 <= axis <= x.ndim:
            raise ValueError(
                f"pmap out_axes={axis} is out of range for a result of {self._name} with {x.ndim + 1} "
                "axes, including the mapped one."
            )
        return PartitionSpec() if axis is None else self._spec(axis % (x.ndim + 1), x.ndim + 1)

    def _on_one_device(self, args, kwargs):
        """The mapped function inside of one device's program: examples are mapped as by `vmap`."""
        static = positions(self._static, len(args))
        given = self._in_axes if isinstance(self._in_axes, tuple) else (self._in_axes,) * len(args)
        dynamic = [a for i, a in enumerate(args) if i not in static]
        axes = tuple([k for i, k in enumerate(given) if i not in static])

        def one(*xs, **named):
            rest = iter(xs)
            return self._fun(*[a if i in static else next(rest) for i, a in enumerate(args)], **named)

        return vmap(one, axes, self._out_axes, axis_name=self._axis, axis_size=self._size)(*dynamic, **kwargs)


def _without(x, axis: int):
    """A device's part without its mapped axis, which has size 1."""
    shape = x.aval.shape
    return reshape(x, (*shape[:axis], *shape[axis + 1 :]))
