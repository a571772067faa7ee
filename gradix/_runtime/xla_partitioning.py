"""Operations whose division over devices is decided in Python while XLA partitions a program."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import GSPMDSharding, NamedSharding, assignment_of
from gradix._core.sharding import Sharding
from gradix._runtime import xla_callbacks
from gradix._runtime.xla_client import RuntimeFailure
from gradix._runtime.xla_sharded import op_sharding, sharding_of

xc: Any = lazy_module("jaxlib.xla_client")
# `_control/custom_partitioning.py` writes calls of this target.
TARGET = "gradix_custom_partitioning"


class _Question(NamedTuple):
    """A partitioner, with the devices, mesh and trace context of the program being compiled."""

    partitioner: Any
    devices: tuple
    mesh: Mesh | None
    context: config.TraceContext


_questions: dict[int, _Question] = {}


@contextlib.contextmanager
def answering(partitioners: Sequence, devices: tuple, mesh: Mesh | None) -> Iterator[None]:
    """A context manager in which XLA can ask the partitioners while it compiles a program.

    A partitioner has a `number`, `in_avals` and `out_avals`, and a method `answer(mesh, devices,
    in_shardings, out_shardings)`. The method returns the program of one device as text, and the
    shardings of operands and results for which it was made. Its exceptions are raised here.
    """
    _register()
    for p in partitioners:
        _questions[p.number] = _Question(p, devices, mesh, config.trace_context())
    try:
        yield
    except RuntimeFailure as error:
        cause = xla_callbacks.original(error)
        if cause is None:
            raise
        raise cause from None
    finally:
        for p in partitioners:
            _questions.pop(p.number, None)


@functools.lru_cache(None)
def _register() -> None:
    xc.register_custom_call_partitioner(TARGET, _unasked, _partition, _unasked, True)


def _unasked(*_):
    """XLA's callback for propagation, which is not called because sharding rules propagate."""
    raise NotImplementedError("custom_partitioning propagates shardings by its sharding_rule.")


def _partition(in_shapes, in_shardings, out_shape, out_sharding, number):
    """XLA's callback for partitioning, which runs in one of XLA's threads."""
    try:
        asked = _questions[int(number)]
        p = asked.partitioner
        outs = out_sharding.tuple_elements() if out_shape.is_tuple() else [out_sharding]
        with config.within(asked.context):
            text, ins, results = p.answer(
                asked.mesh,
                asked.devices,
                [_from_native(s, a, asked) for s, a in zip(in_shardings, p.in_avals)],
                [_from_native(s, a, asked) for s, a in zip(outs, p.out_avals)],
            )
        native = [_native(s, a.ndim, asked.devices) for s, a in zip(ins, p.in_avals)]
        wanted = [_native(s, a.ndim, asked.devices) for s, a in zip(results, p.out_avals)]
        whole = xc.HloSharding.tuple_sharding(out_shape, wanted) if out_shape.is_tuple() else wanted[0]
        return text.encode(), native, whole
    except BaseException as error:
        raise RuntimeError(xla_callbacks.failure(error)) from None


def _from_native(native, aval, asked: _Question):
    """The sharding that an object of XLA stands for."""
    if native.is_replicated() and asked.mesh is None:
        return GSPMDSharding(asked.devices)
    return sharding_of(native.to_proto(), asked.devices, asked.mesh, aval.ndim)


def hlo_sharding_of(sharding: Sharding, ndim: int):
    """The `HloSharding` of XLA for arrays of this rank, over the devices of the sharding."""
    return _native(sharding, ndim, assignment_of(sharding))


def _native(sharding: Sharding, ndim: int, devices: tuple):
    """The sharding as an object of XLA, for a program over `devices`."""
    own = assignment_of(sharding)
    named = sharding if hasattr(sharding, "coordinates") else GSPMDSharding(own)
    rows = dict(zip(own, named.coordinates(ndim)))  # type: ignore[attr-defined]
    coordinates = np.array([rows[d] for d in devices], np.int64).reshape(len(devices), ndim)
    return _of_parts(coordinates, list(named.factors(ndim)))  # type: ignore[attr-defined]


def hlo_sharding_on_mesh(sharding: NamedSharding, ndim: int):
    """The `HloSharding` of XLA for arrays of this rank, over devices in the order of the mesh."""
    return _of_parts(sharding.coordinates(ndim), sharding.factors(ndim))


def _of_parts(coordinates: np.ndarray, factors: list[int]):
    return xc.HloSharding.from_proto(op_sharding(coordinates, factors))  # type: ignore[attr-defined]


def op_sharding_from(proto: bytes):
    """The `OpSharding` of XLA, read from the bytes of its protocol buffer."""
    op = xc.OpSharding()
    op.ParseFromString(proto)
    return op


def hlo_sharding_from(proto: bytes):
    """The `HloSharding` of XLA, made of the bytes of an `OpSharding`."""
    return xc.HloSharding.from_proto(op_sharding_from(proto))  # type: ignore[attr-defined]


def hlo_sharding_from_file(proto: bytes, ndim: int, n: int):
    """As `hlo_sharding_from`, of bytes of unknown origin, which must divide arrays over `n` devices.

    Raises:
        ValueError: they are not an `OpSharding`, or not one for arrays of this rank and as many devices.
    """
    op = op_sharding_from(proto)
    kind = xc.OpSharding.Type
    if op.type not in (kind.REPLICATED, kind.OTHER):
        raise ValueError(f"a sharding of the type {op.type} divides no array over devices")
    dims = list(op.tile_assignment_dimensions)
    lists = [dims, list(op.iota_reshape_dims)] if op.iota_reshape_dims else [dims]
    is_listed = bool(op.iota_reshape_dims) or sorted(op.tile_assignment_devices) == list(range(n))
    if op.type == kind.OTHER and not (
        len(dims) >= ndim and is_listed and all(min(x, default=0) > 0 and prod(x) == n for x in lists)
    ):
        raise ValueError(f"a sharding over {dims} fits no array of {ndim} axes on {n} devices")
    return xc.HloSharding.from_proto(op)  # type: ignore[attr-defined]
