"""Functions that each device calls with its part of the arguments: `debug.print(..., partitioned=True)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from gradix._api.custom_partitioning import local_part, next_number
from gradix._control.cond import cond_p
from gradix._core.array import scalar_array
from gradix._core.aval import make_aval
from gradix._core.mesh import BaseMesh
from gradix._core.named_sharding import GSPMDSharding
from gradix._core.sharding import Sharding
from gradix._core.trace import bind
from gradix._ops.bitwise import bitwise_and
from gradix._ops.collectives import axis_index_p
from gradix._ops.comparison import eq
from gradix._ops.convert import convert_element_type
from gradix._runtime.program import lower
from gradix._transforms.staging import stage_closed

_ZERO = make_aval((), np.dtype("int32"))


class Partitioner:
    """A call in a program for several devices, of which the compiler asks what one device does.

    Args:
        whole: for each operand how many leading axes a device has whole.
        axes: mesh axes along which only the first device calls.
        called: binds the operation on the operands of one device.
        avals: the types of the operands.
        functions: what the program calls already.
    """

    def __init__(self, whole: tuple, axes: tuple, called: Callable, avals: tuple, functions: Sequence):
        self.whole, self.axes, self.called, self.functions = whole, axes, called, tuple(functions)
        self.number, self.in_avals, self.out_avals = next_number(), avals, (_ZERO,)

    def answer(self, mesh: BaseMesh, devices: tuple, in_shardings: Sequence, out_shardings: Sequence):
        """The program of one device, with shardings that leave it the axes it needs whole."""
        given = [_divided(s, a, n, devices) for s, a, n in zip(in_shardings, self.in_avals, self.whole)]
        parts = [local_part(a, s) for a, s in zip(self.in_avals, given)]

        def part(*xs):
            zero = scalar_array(0, _ZERO.dtype, False)
            is_first = scalar_array(True, np.dtype(bool), False)
            for name in self.axes:
                here = bind(axis_index_p, (), {"axes": (name,)})
                is_first = bitwise_and(is_first, eq(here, zero))
            if self.axes:
                branches = stage_closed(lambda *xs: [], parts), stage_closed(lambda *xs: self.called(*xs), parts)
                bind(cond_p, [convert_element_type(is_first, _ZERO.dtype), *xs], {"branches": branches})
            else:
                self.called(*xs)
            return [zero]

        closed = stage_closed(part, parts)
        text = lower(closed, "part", devices=devices, part_of=mesh, host_callbacks=self.functions).text
        return text, given, out_shardings


def _divided(sharding: Sharding, aval, whole: int, devices: tuple) -> Sharding:
    """The sharding, unless it divides one of the first axes, or leaves devices parts of different sizes."""
    counts = sharding.factors(aval.ndim)  # type: ignore[attr-defined]
    is_even = all(n % c == 0 for n, c in zip(aval.shape, counts))
    if is_even and prod(counts[:whole]) == 1:
        return sharding
    row = [1 if i < whole or n % c else c for i, (n, c) in enumerate(zip(aval.shape, counts))]
    places = [[0 if f == 1 else p for p, f in zip(ps, row)] for ps in sharding.coordinates(aval.ndim)]  # type: ignore[attr-defined]
    return GSPMDSharding(devices, row, places)
