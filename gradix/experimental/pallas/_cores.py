"""Kernels for the cores of a mesh, which are programs of a grid here: `kernel` and `core_map`."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix import lax
from gradix._api.arguments import name_of
from gradix._base.tracebacks import boundary
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._programs import when

_REQUIRED: Any = type("NotSpecified", (), {"__repr__": lambda self: "<not specified>"})()


class CoreMesh:
    """Cores of an accelerator, told apart by their indices along named axes."""

    core_kind = "Core"

    def __init__(self, shape: Sequence[int], axis_names: Sequence[str]):
        if len(shape) != len(axis_names) or any(n < 1 for n in shape):
            raise ValueError(
                f"a mesh of cores needs a positive size for each axis, got sizes {tuple(shape)} for the axes "
                f"{tuple(axis_names)}."
            )
        self.axis_names = tuple(axis_names)
        self.shape: OrderedDict[str, int] = OrderedDict(zip(self.axis_names, map(int, shape)))

    @property
    def size(self) -> int:
        """The number of cores."""
        return math.prod(self.shape.values())

    @property
    def devices(self) -> np.ndarray:
        """The names of the cores, an array with an axis for each axis of the mesh."""
        names = np.array([f"{self.core_kind}(id={i})" for i in range(self.size)], object)
        return names.reshape(tuple(self.shape.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.shape)})"

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and list(other.shape.items()) == list(self.shape.items())

    def __hash__(self) -> int:
        return hash((type(self), *self.shape.items()))


class TensorCoreMesh(CoreMesh):
    """The tensor cores of a TPU, along one axis; by default one.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> mesh = pltpu.TensorCoreMesh("core", num_cores=2)
        >>> mesh.shape["core"], mesh.size, mesh.devices
        (2, 2, array(['TensorCore(id=0)', 'TensorCore(id=1)'], dtype=object))
    """

    core_kind = "TensorCore"

    def __init__(self, axis_name: str, num_cores: int | None = None, devices: Any = None):
        super().__init__((num_cores or 1,), (axis_name,))


class ScalarSubcoreMesh(CoreMesh):
    """The scalar subcores of the sparse cores of a TPU, along one axis.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu_sc
        >>> def count(ref):
        ...     @pl.core_map(tpu_sc.ScalarSubcoreMesh(axis_name="core", num_cores=2))
        ...     def _():
        ...         ref[...] += 1 + gradix.lax.axis_index("core")
        >>> pl.run_state(count)(jnp.array(0))
        Array(3, dtype=int32)
    """

    core_kind = "ScalarSubcore"

    def __init__(self, *, axis_name: str, num_cores: int = 1):
        super().__init__((num_cores,), (axis_name,))


class VectorSubcoreMesh(CoreMesh):
    """The vector subcores of the sparse cores of a TPU, along an axis of cores and one of subcores.

    Example:
        >>> from gradix.experimental.pallas import tpu_sc
        >>> mesh = tpu_sc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2)
        >>> mesh, mesh.size
        (VectorSubcoreMesh({'core': 2, 'subcore': 16}), 32)
    """

    core_kind = "VectorSubcore"

    def __init__(self, *, core_axis_name: str, subcore_axis_name: str, num_cores: int = 1, num_subcores: int = 16):
        super().__init__((num_cores, num_subcores), (core_axis_name, subcore_axis_name))


def create_tensorcore_mesh(axis_name: str, devices: Any = None, num_cores: int | None = None) -> TensorCoreMesh:
    """The tensor cores of a TPU along an axis of this name: `num_cores` of them, by default one.

    Example:
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> pltpu.create_tensorcore_mesh("core", num_cores=2)
        TensorCoreMesh({'core': 2})
    """
    return TensorCoreMesh(axis_name, num_cores)


def _checked(mesh: Any, what: str) -> CoreMesh:
    if isinstance(mesh, CoreMesh):
        return mesh
    if isinstance(mesh, (tuple, list)):
        raise NotImplementedError(
            f"{what} runs on one mesh, got {len(mesh)}. Call a kernel for each mesh, and pass results from one to the "
            "next."
        )
    raise TypeError(
        f"{what} needs a mesh of cores, such as pltpu.create_tensorcore_mesh('core', num_cores=2), got {mesh!r} of "
        f"type {type(mesh).__name__}."
    )


def kernel(
    body: Callable[..., None] = _REQUIRED,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: Any = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Any:
    """A function that runs a kernel on each core of a mesh, on references to whole arrays.

    Cores run one after another, the last axis of the mesh fastest. `lax.axis_index` tells a kernel
    its core. The function can be differentiated, mapped and jitted as those of `pallas_call`.

    Args:
        body: a function of references: to each argument, to each result, and to scratch memory. It
            returns None. Without it, `kernel` is a decorator.
        out_type: the types of the results, a pytree.
        mesh: the cores, such as `pltpu.create_tensorcore_mesh("core", num_cores=2)`.
        scratch_types: places of memory; a dict gives them to the kernel by name.
        debug: whether to print the traced kernel.
        name: the name of the call in printed programs.
        interpret: as for `pallas_call`.
        compiler_params, cost_estimate, metadata: accepted; they have no effect here.

    Raises:
        TypeError: the mesh is not one of cores.
        NotImplementedError: several meshes are given.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> @pl.kernel(
        ...     out_type=gradix.ShapeDtypeStruct((4,), jnp.float32),
        ...     mesh=pltpu.create_tensorcore_mesh("core", num_cores=2),
        ...     scratch_types=[pltpu.VMEM((2,), jnp.float32)],
        ... )
        ... def add_core(x, o, part):
        ...     core = gradix.lax.axis_index("core")
        ...     pltpu.sync_copy(x.at[pl.ds(2 * core, 2)], part)
        ...     part[...] += core
        ...     pltpu.sync_copy(part, o.at[pl.ds(2 * core, 2)])
        >>> add_core(jnp.zeros(4))
        Array([0., 0., 1., 1.], dtype=float32)
    """
    cores = _checked(mesh, "kernel")
    if body is _REQUIRED:
        options = {"scratch_types": scratch_types, "interpret": interpret, "debug": debug, "name": name}
        return lambda f: kernel(f, out_type, mesh=mesh, **options)
    return pallas_call(
        body,
        out_type,
        grid=tuple(cores.shape.items()),
        scratch_shapes=scratch_types,
        debug=debug,
        interpret=interpret,
        name=name,
    )


@boundary
def core_map(
    mesh: Any,
    *,
    compiler_params: Any = None,
    interpret: Any = False,
    debug: bool = False,
    cost_estimate: Any = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
) -> Callable[[Callable[..., None]], None]:
    """A decorator that runs a function on each core of a mesh, one after another.

    Args:
        mesh: the cores, such as `pltpu.create_tensorcore_mesh("core", num_cores=2)`.
        debug: whether to print the traced function.
        name: the name of the call in printed programs.
        scratch_shapes: places of memory, to which the function gets references.
        interpret: as for `pallas_call`.
        compiler_params, cost_estimate, metadata: accepted; they have no effect here.

    Returns:
        A decorator for a function that reads and writes references from outside, and returns None.

    Raises:
        TypeError: the mesh is not one of cores.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def count(ref):
        ...     @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2))
        ...     def _():
        ...         ref[gradix.lax.axis_index("core")] += 1
        >>> pl.run_state(count)(jnp.zeros(3))
        Array([1., 1., 0.], dtype=float32)
    """
    cores = _checked(mesh, "core_map")

    def run(f: Callable[..., None]) -> None:
        pallas_call(
            f,
            (),
            grid=tuple(cores.shape.items()),
            scratch_shapes=scratch_shapes,
            debug=debug,
            interpret=interpret,
            name=name or name_of(f),
        )()

    return run


def run_on_first_core(core_axis_name: Any) -> Callable[[Callable[[], None]], None]:
    """A decorator that runs a function, which takes and returns nothing, on the first core alone.

    Args:
        core_axis_name: the name of the axis of the mesh, or a tuple of names.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def count(ref):
        ...     @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2))
        ...     def _():
        ...         @pltpu.run_on_first_core("core")
        ...         def _():
        ...             ref[...] += 1
        >>> pl.run_state(count)(jnp.array(0))
        Array(1, dtype=int32)
    """
    return when(lax.axis_index(core_axis_name) == 0)


def core_barrier(sem: Any, *, core_axis_name: str) -> None:
    """Wait for the other cores along an axis of one core, where there is nothing to wait for.

    Raises:
        NotImplementedError: there are other cores, which run after this one has ended.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def twice(ref):
        ...     @pl.core_map(pltpu.create_tensorcore_mesh("core"), scratch_shapes=[pltpu.SemaphoreType.BARRIER])
        ...     def _(barrier):
        ...         ref[...] += 1
        ...         pltpu.core_barrier(barrier, core_axis_name="core")
        ...         ref[...] *= 2
        >>> pl.run_state(twice)(jnp.array(4))
        Array(10, dtype=int32)
    """
    n = lax.axis_size(core_axis_name)
    if n != 1:
        raise NotImplementedError(
            f"core_barrier over {core_axis_name!r}, which has {n} cores: they run one after another here, so none can "
            "wait for a later one. Make two kernels of what is before and after the barrier."
        )
