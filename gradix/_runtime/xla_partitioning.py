"""Operations whose division over devices is decided in Python: XLA asks while it partitions a program."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import GSPMDSharding, assignment_of
from gradix._core.sharding import Sharding
from gradix._runtime import xla_callbacks
from gradix._runtime.xla_client import RuntimeFailure
from gradix._runtime.xla_sharded import op_sharding, sharding_of

xc: Any = lazy_module("jaxlib.xla_client")
# of the calls that `_control/custom_partitioning.py` writes
TARGET = "gradix_custom_partitioning"


class _Question(NamedTuple):
    """What an operation's partitioner is to be asked for: where the program that holds it runs."""

    partitioner: Any
    devices: tuple
    mesh: Mesh | None
    context: config.TraceContext


_questions: dict[int, _Question] = {}


@contextlib.contextmanager
def answering(partitioners: Sequence, devices: tuple, mesh: Mesh | None) -> Iterator[None]:
    """Context manager: XLA may ask these while it compiles a program for the devices.

    A partitioner has a `number`, `in_avals` and `out_avals`, and `answer(mesh, devices,
    in_shardings, out_shardings)`, which gives one device's program as text, and the shardings of
    operands and results it is for. What it raises rises here.
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
    """Propagation is by sharding rules alone."""
    raise NotImplementedError("custom_partitioning propagates shardings by its sharding_rule.")


def _partition(in_shapes, in_shardings, out_shape, out_sharding, number):
    """What XLA calls, in a thread of its own."""
    try:
        asked = _questions[int(number)]
        p = asked.partitioner
        outs = out_sharding.tuple_elements() if out_shape.is_tuple() else [out_sharding]
        with config.within(asked.context):
            text, ins, results = p.answer(
                asked.mesh,
                asked.devices,
                [_told(s, a, asked) for s, a in zip(in_shardings, p.in_avals)],
                [_told(s, a, asked) for s, a in zip(outs, p.out_avals)],
            )
        native = [_native(s, a.ndim, asked.devices) for s, a in zip(ins, p.in_avals)]
        wanted = [_native(s, a.ndim, asked.devices) for s, a in zip(results, p.out_avals)]
        whole = (
            xc.HloSharding.tuple_sharding(out_shape, wanted) if out_shape.is_tuple() else wanted[0]
        )
        return text.encode(), native, whole
    except BaseException as error:
        raise RuntimeError(xla_callbacks.failure(error)) from None


def _told(native, aval, asked: _Question):
    if native.is_replicated() and asked.mesh is None:
        return GSPMDSharding(asked.devices)
    return sharding_of(native.to_proto(), asked.devices, asked.mesh, aval.ndim)


def _native(sharding: Sharding, ndim: int, devices: tuple):
    """The sharding of an array of a program over `devices`, which are its own, as XLA's partitioner takes it."""
    own = assignment_of(sharding)
    named = sharding if hasattr(sharding, "coordinates") else GSPMDSharding(own)
    rows = dict(zip(own, named.coordinates(ndim)))  # type: ignore[attr-defined]
    coordinates = np.array([rows[d] for d in devices], np.int64).reshape(len(devices), ndim)
    return xc.HloSharding.from_proto(op_sharding(coordinates, list(named.factors(ndim))))  # type: ignore[attr-defined]
