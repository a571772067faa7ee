"""Checks of kernels under `jit(f, check=...)`, whose errors name the program that failed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.checks.errors import OOBError
from gradix._api.checks.programs import PROGRAM_RULES, Checker, Found
from gradix._control.call import jit_p
from gradix._control.check import Site, check_p
from gradix._control.kernel_call import pallas_call_p
from gradix._core.trace import bind
from gradix._transforms.staging import stage_closed
from gradix.experimental.pallas._kernels import Kernel
from gradix.experimental.pallas._running import run
from gradix.experimental.pallas._windows import as_index

_RECORD = "kernel"


class Record(NamedTuple):
    """What the program of a kernel call was made of: the kernel, whose constants are its first inputs.

    `first_outputs` tells from the number of a result which input it begins with; `kept` are the
    places of the results among the windows.
    """

    kernel: Kernel
    name: str
    num_consts: int
    first_outputs: dict[int, int]
    kept: list[int]


def note(closed: Any, record: Record) -> None:
    """Keep a record with the program of a kernel call."""
    closed.memo.setdefault(_RECORD, record)


class Watch:
    """Makes the checks of each program of a kernel, and adds to their errors which program it was.

    `program` is that of the kernel with checks, whose last results are a state; `sites` are those
    checks. If there are none, `program` is None.
    """

    def __init__(self, checker: Checker, record: Record, place: Any):
        kernel = record.kernel
        own = Checker(
            checker.errors, kernel.program, checker.kinds, is_screen=checker.is_screen, by_sums=checker.by_sums
        )
        self.program, self.sites, self.width = own.program(kernel.program), own.sites, own.width
        self.where, self.rank = f"the kernel {record.name}", len(kernel.grid)
        self.looks_at_blocks, self.place = OOBError in checker.errors, place

    def block(self, window, starts, ids) -> None:
        """Check that a block lies inside of its array."""
        if not self.looks_at_blocks:
            return
        for axis, (start, dim) in enumerate(zip(starts, window.dims)):
            limit = dim.extent - dim.size
            if isinstance(start, (int, np.integer)) and 0 <= start <= limit:
                continue
            start = as_index(start)
            bad = (start < 0) | (start > limit)
            self._bind(bad, lax.reshape(start, (1,)), ids, [self._of_block(window, axis)])

    def _of_block(self, window, axis: int) -> Site:
        dim, n, place = window.dims[axis], window.aval.shape[axis], self.place

        def exception(words):
            start = int(words[:1].view(np.int32)[0])
            return OOBError(
                f"out-of-bounds block: the index map of {window.origin} gives {start // dim.unit} along axis {axis}, "
                f"for {dim.size} elements from {start} on of an array that has {n}{self._program(words, 1)}. ({place})"
            )

        return Site(OOBError, exception, place)

    def outcome(self, outs: list, ids) -> list:
        """The results of a program of the kernel without the state, which is checked."""
        if self.program is None:
            return outs
        *outs, code, words = outs
        self._bind(code, words, ids, [self._of_program(s) for s in self.sites])
        return outs

    def _of_program(self, site: Site) -> Site:
        def exception(words):
            error = site.exception(words[: self.width])
            return type(error)(f"{error}{self._program(words, self.width)}")

        return site._replace(exception=exception)

    def _program(self, words, before: int) -> str:
        """The text that names a program by the words after those of the check."""
        ids = tuple(words[before : before + self.rank].view(np.int32).tolist())
        return f", in program {ids} of {self.where}"

    def _bind(self, code, words, ids, sites: list[Site]) -> None:
        own = [lax.reshape(lax.bitcast_convert_type(as_index(i), np.uint32), (1,)) for i in ids]
        words = lax.convert_element_type(words, np.uint32)
        bind(
            check_p,
            [lax.convert_element_type(code, np.int32), jnp.concatenate([words, *own])],
            {"sites": tuple(sites), "kind": "raise"},
        )


def _kernel_call(checker: Checker, eqn, args, found: Found):
    """The call of a kernel with checks of each of its programs."""
    closed = eqn.params["jaxpr"]
    record = closed.memo.get(_RECORD)
    if record is None:  # a program derived from that of the call; its checks name no program
        return PROGRAM_RULES[jit_p](checker, eqn, args, found)
    watch = Watch(checker, record, eqn.source)

    def checked(*xs):
        n = record.num_consts
        kernel = record.kernel._replace(consts=list(xs[:n]), program=watch.program or record.kernel.program)
        arrays = list(xs[n:])
        first = {o: arrays[i] for o, i in record.first_outputs.items()}
        outs = run(kernel, arrays, first, watch)
        return [outs[w] for w in record.kept]

    whole = stage_closed(checked, closed.in_avals, closed.jaxpr.debug_info)
    raising = Checker(frozenset(), whole, ("raise",))
    raising.sites, raising.width = checker.sites, checker.width
    program = raising.program(whole)
    if program is None:
        return bind(eqn.primitive, args, eqn.params)
    *outs, code, words = bind(jit_p, args, {"jaxpr": program, "name": eqn.params["name"]})
    found.take(code, words)
    return outs


PROGRAM_RULES[pallas_call_p] = _kernel_call
