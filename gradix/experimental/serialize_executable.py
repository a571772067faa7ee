"""Compiled programs as bytes, which other processes load instead of compiling."""

from __future__ import annotations

import functools
import hashlib
import io
import pickle
import sys
from typing import Any

import ml_dtypes
import numpy as np

from gradix._api.jit.placed import Placing
from gradix._api.jit.stages import Compiled
from gradix._api.jit.stats import TraceLog
from gradix._api.jit.traced import Owner, Staged, Traced
from gradix._base.listing import own_names as _own_names
from gradix._core import array, array_layouts, mesh, named_sharding, scalar_types, sharding
from gradix._core.aval import ShapedArray, located
from gradix._core.jaxpr import DebugInfo
from gradix._core.refs import Ref
from gradix._runtime import compilation, tuning, xla
from gradix._runtime.compilation import Saved
from gradix._runtime.placement import Home, Orders
from gradix._runtime.program import Program
from gradix._runtime.xla_options import Options
from gradix._stablehlo.module import LoweredModule

__all__ = ["deserialize_and_load", "serialize"]

_FORMAT = 3
_MAGIC = b"gradix executable\0"
_DIGEST = 32  # bytes, after the magic ones


class _Signature:
    """The types of a program of which only the machine code is kept."""

    def __init__(self, in_avals, out_avals, effects=frozenset()):
        self.invars, self.out_avals, self.effects, self.jaxpr = in_avals, out_avals, effects, self
        self.outvars = [None] * len(out_avals)  # none is known to be an argument


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled program as bytes, with the tree of its `(args, kwargs)` and that of its results.

    The bytes hold machine code for this kind of processor and this version of jaxlib, and the
    arrays that the function captured.

    Args:
        compiled: what `jit(f).lower(...).compile()` returns.

    Returns:
        The bytes and the two trees, which `deserialize_and_load` takes.

    Raises:
        TypeError: `compiled` is not a compiled program.
        ValueError: the program calls Python functions, or uses a mutable array that the function
            captured, which exist in this process only.

    Example:
        >>> import gradix
        >>> from gradix.experimental import serialize_executable
        >>> double = gradix.jit(lambda x: 2 * x).lower(1.0).compile()
        >>> serialize_executable.deserialize_and_load(*serialize_executable.serialize(double))(4.0)
        Array(8., dtype=float32, weak_type=True)
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize: compiled must be the result of jit(f).lower(...).compile(), got {compiled!r} of "
            f"type {type(compiled).__name__}."
        )
    traced, program = compiled._traced, compiled._program
    module = program.lowered
    if traced.refs is not None and any(isinstance(s.where, Ref) for s in traced.refs.sources):
        raise ValueError(
            f"serialize: {traced.name} uses a mutable array that it captured, which another process does not "
            "have. Pass it as an argument."
        )
    if module.host_callbacks:
        raise ValueError(
            f"serialize: {traced.name} calls functions of this Python process "
            f"({len(module.host_callbacks)} of them), which another process does not have. Compile it "
            "without debug.print, pure_callback and io_callback."
        )
    options = tuning.options_for(
        module, traced.compiler_options, is_alone=program.home is None or len(program.home.devices) == 1
    )
    fields = {
        "format": _FORMAT,
        "jaxlib": xla.jaxlib_version,
        "code": _code(program, options),
        "options": options,
        "name": traced.name,
        "module": module._replace(facts=None, partitioners=()),
        "donated": traced.donated,
        "consts": list(traced.consts),
        "avals": list(traced.avals),
        "arguments": traced.debug.arg_names,
        "out_avals": list(traced.jaxpr.out_avals),
        "places": None,
    }
    if program.home is not None:
        fields["places"] = (
            program.home.devices,
            program.home.mesh,
            list(program.in_shardings),
            list(program.executable.out_shardings),
            [(a.plain, a.place) for a in compiled._places or ()],
            tuple(program.orders),
        )
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(fields)
    content = out.getvalue()
    return _MAGIC + _digest(content) + content, compiled.in_tree, compiled.out_tree


def _digest(content: Any) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def _code(program, options) -> bytes:
    try:
        return program.executable.serialize()
    except xla.RuntimeFailure:  # It came from bytes, or has run; some of these cannot be serialized.
        if "CustomSPMDPartitioning" in program.lowered.text and not program.lowered.partitioners:
            raise ValueError(
                "serialize: the program was loaded from bytes, and is divided by functions of Python, which "
                "bytes do not hold. Keep the bytes from which it was loaded."
            ) from None
        return _compiled_anew(program, options).serialize()


def _compiled_anew(program, options):
    home, on = program.home, xla.HERE
    if home is not None:
        on = xla.On(home.devices, home.mesh, program.executable.out_shardings)
    return compilation.compiled(program.lowered, options, on)


def deserialize_and_load(
    serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None, execution_devices: Any = None
) -> Compiled:
    """The compiled program that was given to `serialize`, ready to be called.

    Damaged bytes are refused, and unpickling makes arrays, types and shardings only. But the bytes
    hold machine code, which is run, and the digest is not a signature: load only bytes from sources
    you trust.

    Args:
        serialized, in_tree, out_tree: what `serialize` returned.
        backend: the platform or its client; it must be the default one.
        execution_devices: the devices to run on, as many as the program was compiled for; by
            default those with the same numbers.

    Raises:
        TypeError: `serialized` is not bytes.
        ValueError: the bytes are damaged or were made with another version of jaxlib, the trees do
            not belong to them, or a device does not exist.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import serialize_executable
        >>> compiled = gradix.jit(lambda x: x + 1).lower(jnp.zeros(2)).compile()
        >>> again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
        >>> again(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    if backend is not None and getattr(backend, "platform", backend) != xla.local_devices()[0].platform:
        raise ValueError(
            "deserialize_and_load: backend must be the default platform, "
            f"{xla.local_devices()[0].platform}, or None; got backend={backend!r}."
        )
    fields = _Unpickler(io.BytesIO(_content(serialized)), execution_devices).fields()
    if fields["format"] != _FORMAT or fields["jaxlib"] != xla.jaxlib_version:
        raise ValueError(
            f"the program was serialized with jaxlib {fields['jaxlib']} (format {fields['format']}), and "
            f"this process has jaxlib {xla.jaxlib_version} (format {_FORMAT}). Compile the function "
            "again and serialize it."
        )
    if in_tree.num_leaves != len(fields["avals"]):
        raise ValueError(
            f"in_tree has {in_tree.num_leaves} leaves, but the program takes {len(fields['avals'])} arrays. "
            "Pass the trees that serialize returned with these bytes."
        )
    owner = Owner(fields["name"], False, None, False, TraceLog())
    placed = fields["places"]
    signature: Any = _Signature([*fields["consts"], *fields["avals"]], fields["out_avals"])
    traced = Traced(
        owner,
        Staged(
            signature,
            fields["consts"],
            out_tree,
            DebugInfo.of(fields["name"], fields["arguments"]),
            fields["avals"],
            fields["donated"],
        ),
        None if placed is None else lambda new: Placing(new, None, in_tree),
    )
    donated, saved = traced.donated_inputs, Saved(fields["code"], fields["options"])
    if placed is None:
        program = Program(signature, fields["name"], donated=donated, lowered=fields["module"], saved=saved)
        return Compiled(traced, in_tree, program)
    devices, mesh, ins, outs, places, orders = placed
    avals = [located(a, p) for a, p in places]
    every = [*[c.aval for c in fields["consts"]], *avals]
    program = Program(
        signature,
        fields["name"],
        Home(tuple(devices), mesh),
        every,
        ins,
        outs,
        orders=Orders(*orders),
        donated=donated,
        lowered=fields["module"],
        saved=saved,
    )
    return Compiled(traced, in_tree, program, avals)


def _content(serialized: Any) -> Any:
    """The pickle in the bytes that `serialize` returned.

    Raises:
        ValueError: they are damaged, or not of this format.
    """
    if not isinstance(serialized, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"deserialize_and_load: serialized must be bytes, got a {type(serialized).__name__}. Pass what "
            "serialize returned."
        )
    start = len(_MAGIC) + _DIGEST
    content = memoryview(serialized)[start:]
    if bytes(serialized[: len(_MAGIC)]) != _MAGIC:
        raise ValueError(
            "the bytes are not a compiled program of this version of gradix. Compile the function again and "
            "serialize it."
        )
    if bytes(serialized[len(_MAGIC) : start]) != _digest(content):
        raise ValueError(
            "the bytes of the compiled program are damaged: their digest does not fit them. Compile the "
            "function again and serialize it."
        )
    return content


class _Pickler(pickle.Pickler):
    """A pickler that writes devices as their numbers."""

    def persistent_id(self, obj):
        return ("device", obj.id) if isinstance(obj, xla.Device) else None


@functools.lru_cache(None)
def _known() -> tuple:
    """The classes, and the functions that make objects of them, which a pickle may name."""
    some, number = np.zeros(1), np.float32(0)
    # NumPy's own functions are private and have moved between its versions, so it is asked for them.
    of_numpy = [f.__reduce_ex__(n)[0] for f in (some, number) for n in (2, 5)]
    of_types = [t for t in vars(ml_dtypes).values() if isinstance(t, type)]
    of_meshes = [mesh.Mesh, mesh.AbstractDevice, mesh.AxisType, mesh._abstract_mesh]
    of_shardings = [
        sharding.MemorySpace,
        sharding.Placement,
        sharding.SingleDeviceSharding,
        sharding._rebuild,
        named_sharding.GSPMDSharding,
        named_sharding._named,
    ]
    of_arrays = [ShapedArray, scalar_types.KeyType, array._rebuild, np.dtype, np.ndarray]
    others = [Options, LoweredModule, array_layouts.Format, array_layouts.Layout]
    return (*of_numpy, *of_types, *of_meshes, *of_shardings, *of_arrays, *others)


class _Unpickler(pickle.Unpickler):
    """An unpickler that takes the given devices in turn, or those with the written numbers."""

    def __init__(self, file, devices):
        super().__init__(file)
        self.given = None if devices is None else list(devices)
        self.here = {d.id: d for d in xla.devices()}
        self.order: dict[int, Any] = {}

    def fields(self) -> dict[str, Any]:
        """The fields that `serialize` wrote.

        Raises:
            ValueError: the bytes hold something else.
        """
        try:
            found = self.load()
        except ValueError:
            raise
        except Exception as e:  # Forged bytes can raise anything here.
            raise ValueError(f"the bytes are not a compiled program: {e}.") from None
        if type(found) is not dict or not {"format", "jaxlib"} <= found.keys():
            raise ValueError("the bytes are not a compiled program: they hold something else.")
        return found

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules.get(module), name, None)
        if any(found is known for known in _known()):
            return found
        raise ValueError(
            f"the bytes of the compiled program name {module}.{name}, which no compiled program holds. They "
            "were forged; do not use them."
        )

    def persistent_load(self, pid):
        number = pid[1]
        if self.given is not None:
            if number not in self.order and len(self.order) == len(self.given):
                raise ValueError(f"the program needs more devices than the {len(self.given)} in execution_devices.")
            return self.order.setdefault(number, self.given[len(self.order) % len(self.given)])
        if number not in self.here:
            raise ValueError(
                f"the program was compiled for device {number}, but this process has the devices "
                f"{sorted(self.here)}. Pass the devices to run on as execution_devices."
            )
        return self.here[number]


__dir__ = _own_names(__name__)
