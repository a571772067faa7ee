"""Runs the programs of a kernel: side by side, by `vmap`, and after one another, by loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.mapping.vmap import vmap
from gradix._transforms.staging import eval_closed
from gradix.experimental.pallas._contents import memory_of, undefined
from gradix.experimental.pallas._joining import sums_products
from gradix.experimental.pallas._kernels import Kernel, Plan, in_order, is_empty, plan, steps
from gradix.experimental.pallas._memory import first_value
from gradix.experimental.pallas._windows import as_index

# Loops of so few programs and equations are written out, and those of so many that add up products.
_UNROLLED_PROGRAMS, _UNROLLED_EQUATIONS = 4, 200
_UNROLLED_PRODUCTS = 32
# Of loops of more programs, the indices are computed and not looked up.
_TABLED_PROGRAMS = 1 << 22


def run(kernel: Kernel, arrays, first_outputs: dict[int, Any], watch: Any = None) -> list:
    """The results of a kernel.

    Args:
        arrays: the arguments.
        first_outputs: from the number of a result to the array that it holds at first.
        watch: the `Watch` that checks blocks and programs; then the program of the kernel returns
            the state of its checks, too.

    Returns:
        The last values of all windows: of the arguments, and of the results.
    """
    with memory_of(kernel.contents):
        return _run(kernel, arrays, first_outputs, watch)


def _run(kernel: Kernel, arrays, first_outputs: dict[int, Any], watch: Any) -> list:
    windows = kernel.windows
    outputs = windows[len(arrays) :]
    values = [w.padded(x) for w, x in zip(windows, arrays)]
    values += [
        w.padded(first_outputs[i]) if i in first_outputs else undefined(w.padded_shape, w.aval.dtype)
        for i, w in enumerate(outputs)
    ]
    if kernel.order is not None and not is_empty(kernel.grid):
        values = _on_cores(kernel, values, arrays[: kernel.num_prefetched], watch)
    elif not is_empty(kernel.grid):
        values = _Run(kernel, plan(kernel), arrays[: kernel.num_prefetched], watch).all(values)
    return [w.trimmed(x) for w, x in zip(windows, values)]


def _on_cores(kernel: Kernel, values: list, prefetched, watch: Any) -> list:
    """The values of the windows after the programs of each core, one core after another."""
    run, own = _Run(kernel, in_order(kernel), prefetched, watch), kernel.order.num_own
    first = values[:own]
    for core, table in enumerate(kernel.order.tables):
        values = run.on_core(core, table, [*first, *values[own:]])
    return values


class _Run:
    """One run of a kernel by a plan."""

    def __init__(self, kernel: Kernel, how: Plan, prefetched, watch: Any = None):
        self.kernel, self.plan, self.prefetched = kernel, how, list(prefetched)
        self.watch = watch
        n = len(kernel.windows)
        self.written = [w for w in kernel.written if w < n]
        self.scratch = [w - n for w in kernel.written if w >= n]
        read = kernel.is_read()
        # scratch memory that programs take over from those before them
        self.kept = [s for s in self.scratch if read[n + s]]

    def all(self, values: list) -> list:
        """The values of the windows after all programs have run."""
        parts = [self._split(w, x) for w, x in enumerate(values)]
        labels = [label for _, label in parts]
        ids = [0 if isinstance(n, int) else None for n in self.kernel.grid]
        outs = self._mapped(self.plan.mapped, [x for x, _ in parts], labels, ids)
        values = list(values)
        for w, x in zip(self.written, outs):
            values[w] = self._joined(w, values[w], x)
        return values

    # -- programs side by side ---------------------------------------------------------------------

    def _split(self, w: int, x) -> tuple[Any, list]:
        """A window's array with an axis for each mapped axis that divides it, and what its axes are.

        An axis of the array is (grid axis, True) or (dimension, False).
        """
        lanes = {d: a for a, d in self.plan.lanes[w].items()}
        if not lanes:
            return x, [(d, False) for d in range(x.ndim)]
        window, shape, labels = self.kernel.windows[w], [], []
        covered = []
        for d, dim in enumerate(window.dims):
            if d in lanes:
                n = self.kernel.grid[lanes[d]]
                shape += [n, dim.size]
                labels += [(lanes[d], True), (d, False)]
                covered.append(n * dim.size)
            else:
                shape.append(dim.extent)
                labels.append((d, False))
                covered.append(dim.extent)
        if covered != list(x.shape):
            x = lax.slice(x, [0] * len(covered), covered)
        return lax.reshape(x, shape), labels

    def _joined(self, w: int, whole, x):
        """A window's array with the parts that `_split` made of it replaced."""
        if not self.plan.lanes[w]:
            return x
        divided = self.plan.lanes[w].values()
        covered = [n if d not in divided else self._covered(w, d) for d, n in enumerate(whole.shape)]
        x = lax.reshape(x, covered)
        if covered == list(whole.shape):
            return x
        return lax.dynamic_update_slice(whole, x, [as_index(0)] * len(covered))

    def _covered(self, w: int, d: int) -> int:
        axis = next(a for a, dim in self.plan.lanes[w].items() if dim == d)
        return self.kernel.grid[axis] * self.kernel.windows[w].dims[d].size

    def _mapped(self, axes, values, labels, ids) -> list:
        """The written windows after the programs of the mapped axes have run, one axis at a time."""
        if not axes:
            return self._looped(values, ids)
        axis, rest = axes[0], axes[1:]
        places = [row.index((axis, True)) if (axis, True) in row else None for row in labels]
        inner = [[label for label in row if label != (axis, True)] for row in labels]

        def lane(values, i):
            return self._mapped(rest, values, inner, [*ids[:axis], i, *ids[axis + 1 :]])

        lane.__name__ = "programs"
        numbers = lax.iota(np.int32, self.kernel.grid[axis])
        return vmap(lane, (places, 0), [places[w] for w in self.written])(values, numbers)

    # -- programs after one another ----------------------------------------------------------------

    def _looped(self, values, ids) -> list:
        """The written windows after the programs of the looped axes have run."""
        kernel, axes = self.kernel, self.plan.looped
        carry = [values[w] for w in self.written]
        carry += [first_value(kernel.scratch[s]) for s in self.kept]
        n = len(self.written)
        if not axes:
            return self._step(kernel, values, carry, ids)[:n]
        sizes = [kernel.grid[a] for a in axes]
        if not all(isinstance(n, int) for n in sizes) or math.prod(sizes) > _TABLED_PROGRAMS:
            return self._counted(values, carry, ids)[:n]
        table = steps(kernel.grid, axes)
        most = _UNROLLED_PRODUCTS if self._sums_products() else _UNROLLED_PROGRAMS
        if len(table) <= most and len(table) * len(kernel.program.eqns) <= _UNROLLED_EQUATIONS:
            for row in table:
                carry = self._known(row, values, carry, ids)
            return carry[:n]
        return self._scanned(table, values, carry, ids)[:n]

    def on_core(self, core: int, table, values: list) -> list:
        """The values of the windows after the programs of one core, whose indices are known."""
        order = self.kernel.order

        def turn(carry, row):
            ids = [row[a] for a in range(len(self.kernel.grid))]
            order.record(ids, core)
            return self._step(self.kernel, values, carry, ids), None

        turn.__name__ = "programs"
        carry = [*[values[w] for w in self.written], *[first_value(self.kernel.scratch[s]) for s in self.kept]]
        carry, _ = lax.scan(turn, carry, jnp.asarray(table))
        last = dict(zip(self.written, carry))
        return [last.get(w, x) for w, x in enumerate(values)]

    def _sums_products(self) -> bool:
        """Whether all programs but the first and last of the loop add a product to what is carried."""
        axes, grid = self.plan.looped, self.kernel.grid
        if len(axes) != 1 or self.watch is not None:
            return False
        span: list = [None] * len(grid)
        span[axes[0]] = range(1, grid[axes[0]] - 1)
        return sums_products(self.kernel.for_ids(span).program)

    def _known(self, row, values, carry, ids) -> list:
        """One program whose indices along looped axes are known."""
        known = dict(zip(self.plan.looped, map(int, row)))
        kernel = self.kernel.for_ids([known.get(a) for a in range(len(ids))])
        return self._step(kernel, values, carry, [known.get(a, i) for a, i in enumerate(ids)])

    def _scanned(self, table, values, carry, ids) -> list:
        """The loop over known indices; its first and last program apart if their branches differ."""
        kernel, axes = self.kernel, self.plan.looped
        middle = kernel
        is_peeled = False
        if len(axes) == 1:
            span: list = [None] * len(ids)
            span[axes[0]] = range(1, len(table) - 1)
            middle = kernel.for_ids(span)
            is_peeled = _branches(middle) < _branches(kernel)
        if not is_peeled:
            middle = kernel

        def turn(carry, row):
            own = dict(zip(axes, [row[i] for i in range(len(axes))]))
            return self._step(middle, values, carry, [own.get(a, i) for a, i in enumerate(ids)]), None

        turn.__name__ = "programs"
        if not is_peeled:
            return lax.scan(turn, carry, table)[0]
        carry = self._known(table[0], values, carry, ids)
        carry = lax.scan(turn, carry, table[1:-1])[0]
        return self._known(table[-1], values, carry, ids)

    def _counted(self, values, carry, ids) -> list:
        """The loop over a grid some of whose sizes are traced."""
        axes = self.plan.looped
        sizes = [as_index(self.kernel.grid[a]).astype(np.int32) for a in axes]
        sizes = [jnp.maximum(s, 0) for s in sizes]
        total = math.prod(sizes[1:], start=sizes[0])

        def turn(count, carry):
            own = {}
            for a, size in zip(reversed(axes), reversed(sizes)):
                own[a] = lax.rem(count, size)
                count = lax.div(count, size)
            return self._step(self.kernel, values, carry, [own.get(a, i) for a, i in enumerate(ids)])

        return lax.fori_loop(as_index(0), total, turn, carry)

    def _step(self, kernel: Kernel, values, carry, ids) -> list:
        """What one program makes of the written windows and the scratch memory that is kept."""
        n = len(self.written)
        values = list(values)
        for w, x in zip(self.written, carry):
            values[w] = x
        for argument, result in kernel.order.aliases.items() if kernel.order is not None else ():
            whole = kernel.windows[result].trimmed(values[result])
            values[argument] = kernel.windows[argument].padded(whole)
        scratch = [first_value(s) for s in kernel.scratch]
        for s, x in zip(self.kept, carry[n:]):
            scratch[s] = x
        starts = [self._starts(w, ids) for w in range(len(values))]
        if self.watch is not None:
            for w, (window, s) in enumerate(zip(kernel.windows, starts)):
                if w in self.written or not kernel.contents.reads_beyond:
                    self.watch.block(window, s, ids)
        blocks = [w.cut(x, s) for w, x, s in zip(kernel.windows, values, starts)]
        outs = eval_closed(kernel.program, *kernel.consts, *map(as_index, ids), *blocks, *scratch)
        if self.watch is not None:
            outs = self.watch.outcome(outs, ids)
        new = [kernel.windows[w].put(values[w], starts[w], out) for w, out in zip(self.written, outs)]
        last = dict(zip(self.scratch, outs[n:]))
        return new + [last[s] for s in self.kept]

    def _starts(self, w: int, ids) -> list:
        """Where a window's block begins within the part of its array that the lane has."""
        starts = self.kernel.windows[w].starts(ids, self.prefetched)
        divided = self.plan.lanes[w].values()
        return [0 if d in divided else s for d, s in enumerate(starts)]


def _branches(kernel: Kernel) -> int:
    """The number of conditionals of a kernel's program."""
    return sum([eqn.primitive.name == "cond" for eqn in kernel.program.eqns])
