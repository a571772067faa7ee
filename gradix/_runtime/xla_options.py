"""Compile options of XLA, found out by trying and never by version."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from gradix._base.lazy import lazy_module

xc: Any = lazy_module("jaxlib.xla_client")
SMALL_LOOP_BYTES = 1 << 18
_dropped: set[str] = set()  # flags this jaxlib does not know


class Options(NamedTuple):
    """What to ask of the compiler besides its defaults; hashable, so that it can be part of a cache key.

    - small_loops: emit loops that touch little memory as one native function.
    - small_dots: keep float32 products out of the library calls that prevent it; only for programs
      whose products are all at most about 32 on a side.
    - quick: compile several times faster, run several times slower.
    - fusion_emitters: XLA:CPU's newer code generator for fused loops; compiles small programs in
      twice the time.
    - overrides: XLA debug options by name, as `((name, value), ...)`.
    - unroll: let LLVM unroll loops. Over small arrays of known size it unrolls all, which takes
      long to compile.
    - narrow: use vectors of 128 bits where the processor has longer ones.
    - spread_convolutions: give convolutions to the library that divides each among all cores.
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
    """Options by keyword; `compiler_options` are XLA's own, which win over ours."""
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


def build(
    opts: Options, devices: np.ndarray, platform: str = "cpu", chosen: list | None = None
) -> xc.CompileOptions:
    """XLA's option object for a program on `devices`, an array of ids [replica, partition].

    With `chosen` the program is partitioned as its annotations say; it tells of which results XLA
    chooses the sharding.
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
    o.env_option_overrides = [
        (k, v)
        for k, v in _flags(opts, platform).items()
        if k not in _dropped or k in dict(opts.overrides)
    ]
    extra = b"".join([_extra_option(k, v) for k, v in _extras(opts, platform)])
    return xc.CompileOptions.ParseFromString(o.SerializeAsString() + extra) if extra else o


def _extras(opts: Options, platform: str) -> list[tuple[str, str]]:
    """The options that only the map of XLA's backend has."""
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
            # halves the compile time of small programs
            flags["xla_cpu_use_fusion_emitters"] = False
        if opts.narrow:
            flags["xla_cpu_prefer_vector_width"] = 128
        if opts.small_dots:
            flags["xla_cpu_experimental_ynn_fusion_type"] = ""
        elif opts.spread_convolutions:  # the default set of kernels without convolutions
            flags["xla_cpu_experimental_ynn_fusion_type"] = (
                "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE"
            )
    if opts.quick:
        flags["xla_backend_optimization_level"] = 0
    return {**flags, **dict(opts.overrides)}


def options_key(opts: Options, platform: str) -> str:
    """All that we would ask of the compiler, as text for the key of a disk cache."""
    return f"{sorted(_flags(opts, platform).items())} {_extras(opts, platform)}"


def drop_unknown(opts: Options, error: Exception) -> bool:
    """Whether `error` says that a flag of ours or its value is unknown here; it is then left out for good."""
    text = str(error)
    if "No such compile option" not in text and "is not a valid enum value" not in text:
        return False
    user = {k for k, _ in opts.overrides}
    found = {
        k
        for k in (
            "xla_cpu_use_fusion_emitters",
            "xla_cpu_experimental_ynn_fusion_type",
            "xla_cpu_prefer_vector_width",
        )
        if k in text and k not in user and k not in _dropped
    }
    _dropped.update(found)
    return bool(found)


def is_unknown(flag: str) -> bool:
    """Whether XLA has refused a flag of ours as one it does not know."""
    return flag in _dropped


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
