"""Maps over an axis in chunks of a few examples, which needs the memory of one chunk only."""

from __future__ import annotations

from collections.abc import Callable
from operator import index as as_index

from gradix._api.derivatives.checkpoint import checkpoint
from gradix._base.lazy import lazy_module
from gradix._control.program_interning import interned
from gradix._control.scan import bind_scan
from gradix._core.aval import make_aval
from gradix._core.jaxpr import DebugInfo
from gradix._core.trace import NeedsProgram
from gradix._ops.basis import move_axis
from gradix._ops.indexing.slicing import index_in_dim, slice_in_dim
from gradix._ops.joining import concatenate
from gradix._ops.shape import reshape
from gradix._transforms.batch import AxisData, batch
from gradix._transforms.staging import give_back, hoist, stage_with_refs, with_refs, written

_counted = lazy_module("gradix._api.counted.mapping")


def check_chunk_size(name: str, chunk_size) -> int | None:
    """`chunk_size` as an int.

    Raises:
        TypeError: `chunk_size` is not an int.
        ValueError: `chunk_size` is not positive.
    """
    if chunk_size is None:
        return None
    try:
        size = as_index(chunk_size)
    except TypeError:
        raise TypeError(f"{name} chunk_size must be a positive int or None, got {chunk_size!r}.") from None
    if size < 1:
        raise ValueError(f"{name} chunk_size must be positive, got {size}. Pass None to map over all examples at once.")
    return size


def _plan(size: int, chunk: int, peel: bool) -> tuple[int, int]:
    """The number of examples outside of the loop, and the chunk size inside.

    The chunk size is between 3/4 of `chunk` and `chunk`, such that as few examples as possible are
    outside: XLA may run these at the same time as the loop, which takes more memory.
    """

    def outside(c):
        return (size - 1) % c + 1 if peel else size % c

    head, at_a_time = min([(outside(c), -c) for c in range(max(1, 3 * chunk // 4, chunk - 256), chunk + 1)])
    return head, -at_a_time


def batch_in_chunks(
    function: Callable, axis: AxisData, args, in_axes, chunk: int | None, peel: bool = False
) -> tuple[list, list]:
    """As `batch`, for `chunk` or somewhat fewer examples at a time; the remainder goes first.

    With `peel`, the first chunk is mapped outside of the loop, so that values that the function
    stores are not tracers of the loop. Reverse mode recomputes each chunk, and keeps no residuals.
    """
    if chunk is None or chunk >= axis.size:
        return batch(function, axis, args, in_axes, named=True)
    places = [i for i, a in enumerate(in_axes) if a is not None]
    rows = [move_axis(args[i], in_axes[i], 0) for i in places]
    axes = [None if a is None else 0 for a in in_axes]
    mapped: list[bool] = []

    def one(*values):
        given = list(args)
        for i, v in zip(places, values):
            given[i] = v
        part = AxisData(None, values[0].shape[0] if values else chunk)
        try:
            outs, got = batch(function, part, given, axes, named=True)
        except NeedsProgram:
            outs, got, sizes = _counted.batch_whole(function, part, given, axes)
            if sizes:
                raise _counted.no_chunks() from None
        mapped[:] = [a is not None for a in got]
        return [o if a is None else move_axis(o, a, 0) for o, a in zip(outs, got)]

    head, chunk = _plan(axis.size, chunk, peel)
    first = one(*[slice_in_dim(x, 0, head) for x in rows]) if head else None
    turns = (axis.size - head) // chunk
    if not turns:
        return first or [], [0 if m else None for m in mapped]
    xs = [reshape(slice_in_dim(x, head, axis.size) if head else x, (turns, chunk, *x.aval.shape[1:])) for x in rows]
    avals = [make_aval(x.aval.shape[1:], x.aval.dtype, x.aval.weak_type) for x in xs]
    traced = stage_with_refs(checkpoint(one, prevent_cse=False), avals, DebugInfo.of("chunk", [], ""))
    refs = written(traced[2])
    body, consts = hoist(*with_refs(*traced, refs))
    body = interned(body)
    results = give_back(refs, bind_scan(body, consts, [r.read() for r in refs], xs, turns, False, unroll=1))
    outs = []
    for i, y in enumerate(results):
        if not mapped[i]:
            outs.append(index_in_dim(y, 0, 0, keepdims=False))
            continue
        y = reshape(y, (turns * chunk, *y.aval.shape[2:]))
        outs.append(y if first is None else concatenate([first[i], y], 0))
    return outs, [0 if m else None for m in mapped]
