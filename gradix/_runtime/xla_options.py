"""Compile options of XLA; whether XLA knows an option is found by trying, not by its version."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np

from gradix._base.lazy import lazy_module

xc: Any = lazy_module("jaxlib.xla_client")
SMALL_LOOP_BYTES = 1 << 18
# options of a compilation that are no debug options: how much is spent on it
_EFFORTS = frozenset(
    {"exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level"}
)
_dropped: set[str] = set()  # the flags that this version of XLA does not know
_REFUSED = re.compile(r"No such compile option: '(\w+)'|While setting option (\w+), .* is not a valid")


class Options(NamedTuple):
    """Compiler options; `docs/design/running.md` tells when each pays.

    The record is hashable, so that it can be part of a cache key.

    Attributes:
        small_loops: whether to emit loops over little memory as one native function.
        small_dots: whether to keep float32 products out of library calls, which prevent that.
        quick: whether to compile much faster, for a program that runs much slower.
        overrides: XLA's debug options, as `((name, value), ...)`.
        fusion_emitters: whether to use XLA:CPU's newer code generator, which compiles small
            programs more slowly.
        unroll: whether LLVM may unroll loops, which takes long for loops of known, small size.
        narrow: whether to use vectors of 128 bits where the processor has longer ones.
        spread_convolutions: whether to use XLA's own convolutions, which use all cores for each.
    """

    small_loops: bool = False
    small_dots: bool = False
    quick: bool = False
    overrides: tuple[tuple[str, Any], ...] = ()
    fusion_emitters: bool = True
    unroll: bool = True
    narrow: bool = False
    spread_convolutions: bool = False


DEFAULT = Options()


def options(
    *,
    small_loops: bool = False,
    small_dots: bool = False,
    quick: bool = False,
    fusion_emitters: bool = True,
    unroll: bool = True,
    narrow: bool = False,
    spread_convolutions: bool = False,
    compiler_options: dict | None = None,
) -> Options:
    """Options by keyword; `compiler_options` are XLA's debug options, which override the others."""
    return Options(
        small_loops,
        small_dots,
        quick,
        tuple(sorted((compiler_options or {}).items())),
        fusion_emitters,
        unroll,
        narrow,
        spread_convolutions,
    )


def build(opts: Options, devices: np.ndarray, platform: str = "cpu", chosen: list | None = None) -> xc.CompileOptions:
    """XLA's option object for a program.

    Args:
        opts: the options.
        devices: the ids of the devices, an array of shape [replicas, partitions].
        platform: the platform of the devices.
        chosen: for each result, whether XLA chooses its sharding; None for programs that are not
            partitioned.
    """
    o = xc.CompileOptions()
    b = o.executable_build_options
    o.num_replicas = b.num_replicas = devices.shape[0]
    o.num_partitions = b.num_partitions = devices.shape[1]
    assignment = xc.DeviceAssignment.create(devices.astype(np.int32))
    o.device_assignment = b.device_assignment = assignment
    if chosen is not None:
        b.use_spmd_partitioning = b.use_shardy_partitioner = True
        b.allow_spmd_sharding_propagation_to_output = chosen or [True]
    flags = _flags(opts, platform)
    for name in _EFFORTS & flags.keys():
        effort = flags.pop(name)
        if hasattr(b, name):  # newer versions of XLA have fewer of them
            setattr(b, name, type(getattr(b, name))(effort))
    o.env_option_overrides = [(k, v) for k, v in flags.items() if k not in _dropped or k in dict(opts.overrides)]
    extra = b"".join([_extra_option(k, v) for k, v in _extras(opts, platform)])
    return xc.CompileOptions.ParseFromString(o.SerializeAsString() + extra) if extra else o


def _extras(opts: Options, platform: str) -> list[tuple[str, str]]:
    """The options that exist only in the map `xla_backend_extra_options`."""
    found = []
    if opts.small_loops and platform == "cpu":
        found.append(("xla_cpu_small_while_loop_byte_threshold", str(SMALL_LOOP_BYTES)))
    if not opts.unroll and platform == "cpu":
        found.append(("xla_cpu_disable_loop_unrolling", ""))
    return found


def _flags(opts: Options, platform: str) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    if platform == "cpu":
        if not opts.fusion_emitters:
            flags["xla_cpu_use_fusion_emitters"] = False
        if opts.narrow:
            flags["xla_cpu_prefer_vector_width"] = 128
        if opts.small_dots:
            flags["xla_cpu_experimental_ynn_fusion_type"] = ""
        elif opts.spread_convolutions:  # This is the default set of library calls without convolutions.
            flags["xla_cpu_experimental_ynn_fusion_type"] = "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE"
    if opts.quick:
        flags["xla_backend_optimization_level"] = 0
    return {**flags, **dict(opts.overrides)}


def options_key(opts: Options, platform: str) -> str:
    """The options as text, for the key of a disk cache."""
    return f"{sorted(_flags(opts, platform).items())} {_extras(opts, platform)}"


def drop_unknown(opts: Options, error: Exception) -> bool:
    """Whether `error` refuses a flag that the user did not set; it is then never passed again."""
    refused = _REFUSED.search(str(error))
    if refused is None:
        return False
    flag = refused[1] or refused[2]
    if flag in dict(opts.overrides) or flag in _dropped:
        return False
    _dropped.add(flag)
    return True


@functools.lru_cache(None)
def _extra_option(key: str, value: str) -> bytes:
    """`build_options.debug_options.xla_backend_extra_options[key] = value` as protobuf bytes.

    No attribute of CompileOptions reaches this map, but concatenated protobuf messages merge.
    """
    entry = _field(1, key.encode()) + _field(2, value.encode())
    return _field(3, _field(3, _field(500, entry)))


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)
