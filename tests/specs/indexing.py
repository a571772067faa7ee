"""gather and the scatter family."""

from __future__ import annotations

from functools import partial

import numpy as np

from gradix import lax
from tests.specs.spec import BF16, C64, F32, I32, Operand, Sample, Spec

ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
POINTS = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))
WINDOWS = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
BATCHED = lax.GatherDimensionNumbers(
    offset_dims=(),
    collapsed_slice_dims=(1,),
    start_index_map=(1,),
    operand_batching_dims=(0,),
    start_indices_batching_dims=(0,),
)


def at(values) -> Operand:
    values = np.asarray(values)
    return Operand(values.shape, dtype=I32, values=values, linear=False)


def _gathers():
    for mode in ("clip", "fill", "promise_in_bounds"):
        out = mode != "promise_in_bounds"
        rows = [[0], [2], [9 if out else 1], [-1 if out else 2]]
        yield Sample((Operand((4, 3)), at(rows)), {"dimension_numbers": ROWS, "slice_sizes": (1, 3), "mode": mode})
        yield Sample(
            (Operand((4, 3)), at([[0, 1], [3, 2], [7 if out else 1, 0]])),
            {"dimension_numbers": POINTS, "slice_sizes": (1, 1), "mode": mode},
        )
        yield Sample(
            (Operand((4, 3)), at([[0, 1], [2, 0], [1, 1]])),
            {"dimension_numbers": WINDOWS, "slice_sizes": (2, 2), "mode": mode},
        )
        yield Sample(
            (Operand((2, 4)), at([[[1], [3]], [[0], [8 if out else 2]]])),
            {"dimension_numbers": BATCHED, "slice_sizes": (1, 1), "mode": mode},
        )
    yield Sample(
        (Operand((4, 3)), at(np.zeros((0, 1)))), {"dimension_numbers": ROWS, "slice_sizes": (1, 3), "mode": "clip"}
    )


S_ROWS = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
S_POINTS = lax.ScatterDimensionNumbers(
    update_window_dims=(), inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1)
)
S_WINDOWS = lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
)
S_BATCHED = lax.ScatterDimensionNumbers(
    update_window_dims=(),
    inserted_window_dims=(1,),
    scatter_dims_to_operand_dims=(1,),
    operand_batching_dims=(0,),
    scatter_indices_batching_dims=(0,),
)


def _scatters(unique):
    rows = [[0], [2], [9]] if unique else [[0], [2], [2], [9]]
    for mode in ("drop", "clip"):
        indices = [[0], [2], [1]] if unique and mode == "clip" else rows
        yield Sample(
            (Operand((4, 3)), at(indices), Operand((len(indices), 3))), {"dimension_numbers": S_ROWS, "mode": mode}
        )
    yield Sample(
        (Operand((4, 3)), at([[0, 1], [3, 2], [1, 0]]), Operand((3,))), {"dimension_numbers": S_POINTS, "mode": "drop"}
    )
    yield Sample(
        (Operand((5, 4)), at([[0, 0], [2, 2]]), Operand((2, 2, 2))), {"dimension_numbers": S_WINDOWS, "mode": "drop"}
    )
    yield Sample(
        (Operand((2, 4)), at([[[1], [3]], [[0], [2]]]), Operand((2, 2))),
        {"dimension_numbers": S_BATCHED, "mode": "drop"},
    )
    yield Sample(
        (Operand((4, 3)), at(np.zeros((0, 1))), Operand((0, 3))), {"dimension_numbers": S_ROWS, "mode": "drop"}
    )


def _reference(combine):
    """Row and point updates one by one, in order, past the ends dropped or moved inside; other forms have no reference."""

    def scatter(x, indices, updates, dimension_numbers, mode):
        out = x.copy()
        if dimension_numbers is S_WINDOWS:
            for (i, j), u in zip(indices, updates):
                out[i : i + 2, j : j + 2] = combine(out[i : i + 2, j : j + 2], u)
        elif dimension_numbers is S_BATCHED:
            for b in range(2):
                for (i,), u in zip(indices[b], updates[b]):
                    out[b, i] = combine(out[b, i], u)
        else:
            for ix, u in zip(indices, updates):
                ix = [int(np.clip(i, 0, n - 1)) if mode == "clip" else int(i) for i, n in zip(ix, x.shape)]
                if all(0 <= i < n for i, n in zip(ix, x.shape)):
                    out[tuple(ix)] = combine(out[tuple(ix)], u)
        return out

    return scatter


def _scatter(name, combine, **kw):
    unique = name not in ("scatter_add", "scatter_sub")
    call = partial(getattr(lax, name), unique_indices=True) if name == "scatter_mul" else getattr(lax, name)
    return Spec(
        name.replace("_", "-"),
        call,
        tuple(_scatters(unique)),
        _reference(combine),
        kw.pop("dtypes", (F32, I32, BF16, C64)),
        errors=(
            (
                lambda: getattr(lax, name)(
                    np.ones((4, 3), "f4"), np.zeros((2, 1), "i4"), np.ones((2, 3), "i4"), S_ROWS
                ),
                TypeError,
                "float32.*int32|int32.*float32",
            ),
        ),
        **kw,
    )


SPECS = [
    Spec(
        "gather",
        lax.gather,
        tuple(_gathers()),
        None,
        (F32, I32, BF16, C64, "bool"),
        errors=(
            (
                lambda: lax.gather(np.ones((4, 3), "f4"), np.zeros((2, 1), "f4"), ROWS, (1, 3)),
                (TypeError, ValueError),
                "float32|integer",
            ),
            (
                lambda: lax.gather(np.ones((4, 3), "f4"), np.zeros((2, 1), "i4"), ROWS, (1, 5)),
                (TypeError, ValueError),
                "5",
            ),
        ),
    ),
    _scatter("scatter", lambda a, b: b),
    _scatter("scatter_add", np.add),
    _scatter("scatter_sub", np.subtract),
    _scatter("scatter_mul", np.multiply),
    _scatter("scatter_min", np.minimum, dtypes=(F32, I32), second=False),
    _scatter("scatter_max", np.maximum, dtypes=(F32, I32), second=False),
]
