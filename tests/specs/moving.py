"""Primitives that move, repeat, convert or choose elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix import lax
from tests.specs.spec import BF16, BOOL, C64, F16, F32, I8, I32, U8, U32, Operand, Sample, Spec

EVERY = (F32, F16, BF16, I32, I8, U8, U32, BOOL, C64)


def one(shape, /, **params) -> Sample:
    return Sample((Operand(shape),), params)


def _pad(x, value, padding_config):
    for axis, (lo, hi, inner) in enumerate(padding_config):
        n = x.shape[axis]
        shape = list(x.shape)
        shape[axis] = max(n + (n - 1) * inner if n else 0, 0)
        wide = np.full(shape, value, x.dtype)
        wide[(slice(None),) * axis + (slice(None, None, inner + 1),)] = x
        shape[axis] = max(lo, 0) + wide.shape[axis] + max(hi, 0)
        full = np.full(shape, value, x.dtype)
        full[(slice(None),) * axis + (slice(max(lo, 0), max(lo, 0) + wide.shape[axis]),)] = wide
        x = full[(slice(None),) * axis + (slice(max(-lo, 0), full.shape[axis] - max(-hi, 0)),)]
    return x


def _dynamic_slice(x, *starts, slice_sizes):
    at = [int(np.clip(s if s >= 0 else s + n, 0, n - k)) for s, n, k in zip(starts, x.shape, slice_sizes)]
    return x[tuple(slice(a, a + k) for a, k in zip(at, slice_sizes))]


def _dynamic_update_slice(x, update, *starts):
    out = x.copy()
    at = [int(np.clip(s if s >= 0 else s + n, 0, n - k)) for s, n, k in zip(starts, x.shape, update.shape)]
    out[tuple(slice(a, a + k) for a, k in zip(at, update.shape))] = update
    return out


def _convert(x, new_dtype):
    kind = np.dtype(getattr(ml_dtypes, new_dtype, new_dtype))
    if kind == bool:
        return x != 0
    x = np.real(x) if kind.kind != "c" else x
    return np.trunc(x).astype(kind) if kind.kind in "iu" and x.dtype.kind == "f" else x.astype(kind)


def index(value) -> Operand:
    return Operand((), dtype=I32, values=value, linear=False)


SPECS = [
    Spec(
        "broadcast_in_dim",
        lax.broadcast_in_dim,
        (
            one((), shape=(2, 3), broadcast_dimensions=()),
            one((3,), shape=(2, 3), broadcast_dimensions=(1,)),
            one((2, 1), shape=(2, 4, 3), broadcast_dimensions=(0, 2)),
            one((0,), shape=(2, 0), broadcast_dimensions=(1,)),
        ),
        lambda x, shape, broadcast_dimensions: np.broadcast_to(
            x.reshape(
                [x.shape[broadcast_dimensions.index(d)] if d in broadcast_dimensions else 1 for d in range(len(shape))]
            ),
            shape,
        ),
        EVERY,
        errors=((lambda: lax.broadcast_in_dim(np.ones(3, "f4"), (2, 4), (1,)), (TypeError, ValueError), r"3"),),
    ),
    Spec(
        "reshape",
        lax.reshape,
        (
            one((2, 3), new_sizes=(3, 2)),
            one((4,), new_sizes=(2, 1, 2)),
            one((), new_sizes=(1, 1)),
            one((0, 3), new_sizes=(3, 0)),
        ),
        lambda x, new_sizes: x.reshape(new_sizes),
        EVERY,
        errors=((lambda: lax.reshape(np.ones(3, "f4"), (2, 2)), TypeError, r"\(3,\).*\(2, 2\)|\(2, 2\).*\(3,\)"),),
    ),
    Spec(
        "transpose",
        lax.transpose,
        (one((2, 3, 4), permutation=(2, 0, 1)), one((), permutation=()), one((0, 2), permutation=(1, 0))),
        lambda x, permutation: x.transpose(permutation),
        EVERY,
        errors=((lambda: lax.transpose(np.ones((2, 3), "f4"), (0, 0)), TypeError, r"\(0, 0\)"),),
    ),
    Spec(
        "squeeze",
        lax.squeeze,
        (one((1, 3, 1), dimensions=(0, 2)), one((2, 1), dimensions=(1,)), one((1,), dimensions=(0,))),
        lambda x, dimensions: x.squeeze(dimensions),
        EVERY,
        errors=((lambda: lax.squeeze(np.ones((2, 3), "f4"), (0,)), ValueError, r"\(2, 3\)|2"),),
    ),
    Spec(
        "rev",
        lax.rev,
        (one((2, 3), dimensions=(1,)), one((2, 3), dimensions=(0, 1)), one((0,), dimensions=(0,))),
        lambda x, dimensions: np.flip(x, dimensions),
        EVERY,
    ),
    Spec(
        "pad",
        lax.pad,
        tuple(
            Sample((Operand(s), Operand(())), {"padding_config": c})
            for s, c in (
                ((3,), ((1, 2, 0),)),
                ((3,), ((0, 0, 2),)),
                ((4,), ((-1, -1, 0),)),
                ((2, 3), ((1, -1, 1), (0, 2, 0))),
                ((0,), ((1, 1, 0),)),
                ((3,), ((-2, 1, 1),)),
            )
        ),
        _pad,
        EVERY,
        errors=((lambda: lax.pad(np.ones(3, "f4"), np.int32(0), ((1, 1, 0),)), TypeError, "float32.*int32"),),
    ),
    Spec(
        "concatenate",
        lambda *xs, dimension: lax.concatenate(xs, dimension),
        (
            Sample((Operand((2, 3)), Operand((2, 1)), Operand((2, 0))), {"dimension": 1}),
            Sample((Operand((2,)), Operand((3,))), {"dimension": 0}),
            Sample((Operand((2,)),), {"dimension": 0}),
        ),
        lambda *xs, dimension: np.concatenate(xs, dimension),
        EVERY,
        errors=(
            (
                lambda: lax.concatenate([np.ones((2, 3), "f4"), np.ones((3, 3), "f4")], 1),
                TypeError,
                r"\(2, 3\).*\(3, 3\)",
            ),
        ),
    ),
    Spec(
        "split",
        lax.split,
        (one((5,), sizes=(2, 3)), one((2, 4), sizes=(1, 0, 3), axis=1)),
        lambda x, sizes, axis=0: np.split(x, np.cumsum(sizes)[:-1], axis),
        EVERY,
    ),
    Spec(
        "stack",
        lambda *xs, axis: lax.stack(xs, axis),
        (Sample((Operand((3,)), Operand((3,))), {"axis": 0}), Sample((Operand((2, 3)), Operand((2, 3))), {"axis": 1})),
        lambda *xs, axis: np.stack(xs, axis),
        EVERY,
    ),
    Spec(
        "unstack",
        lax.unstack,
        (one((3, 2), axis=0), one((2, 3), axis=1)),
        lambda x, axis: [np.take(x, i, axis) for i in range(x.shape[axis])],
        EVERY,
    ),
    Spec(
        "tile",
        lax.tile,
        (one((3,), reps=(2,)), one((2, 1), reps=(1, 3)), one((2, 2), reps=(2, 2)), one((2,), reps=(0,))),
        lambda x, reps: np.tile(x, reps),
        EVERY,
    ),
    Spec(
        "slice",
        lax.slice,
        (
            one((5,), start_indices=(1,), limit_indices=(4,)),
            one((5, 4), start_indices=(0, 1), limit_indices=(5, 4), strides=(2, 3)),
            one((5,), start_indices=(2,), limit_indices=(2,)),
        ),
        lambda x, start_indices, limit_indices, strides=None: x[
            tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))
        ],
        EVERY,
        errors=((lambda: lax.slice(np.ones(3, "f4"), (1,), (5,)), TypeError, "5"),),
    ),
    Spec(
        "dynamic_slice",
        lambda x, *s, slice_sizes: lax.dynamic_slice(x, s, slice_sizes),
        tuple(
            Sample((Operand(shape), *map(index, starts)), {"slice_sizes": sizes})
            for shape, starts, sizes in (
                ((5,), (2,), (2,)),
                ((5,), (9,), (2,)),
                ((5,), (-2,), (2,)),
                ((4, 3), (1, 1), (2, 2)),
                ((4,), (0,), (4,)),
            )
        ),
        _dynamic_slice,
        EVERY,
    ),
    Spec(
        "dynamic_update_slice",
        lambda x, u, *s: lax.dynamic_update_slice(x, u, s),
        tuple(
            Sample((Operand(shape), Operand(update), *map(index, starts)))
            for shape, update, starts in (
                ((5,), (2,), (2,)),
                ((5,), (2,), (9,)),
                ((4, 3), (2, 2), (1, 1)),
                ((4,), (0,), (1,)),
            )
        ),
        _dynamic_update_slice,
        EVERY,
    ),
    Spec(
        "select_n",
        lambda which, *cases: lax.select_n(which, *cases),
        (
            Sample((Operand((3,), dtype=BOOL, values=[1, 0, 1], linear=False), Operand((3,)), Operand((3,)))),
            Sample((Operand((), dtype=BOOL, values=1, linear=False), Operand((2, 3)), Operand((2, 3)))),
            Sample(
                (
                    Operand((4,), dtype=I32, values=[0, 1, 2, 1], linear=False),
                    Operand((4,)),
                    Operand((4,)),
                    Operand((4,)),
                )
            ),
        ),
        lambda which, *cases: np.choose(np.asarray(which).astype(int), cases),
        EVERY,
        errors=(
            (
                lambda: lax.select_n(np.ones(3, bool), np.ones(2, "f4"), np.ones(2, "f4")),
                (TypeError, ValueError),
                r"\(3,\)|\(2,\)",
            ),
        ),
    ),
    Spec(
        "convert_element_type",
        lambda x, new_dtype: lax.convert_element_type(x, np.dtype(getattr(ml_dtypes, new_dtype, new_dtype))),
        tuple(one((5,), new_dtype=d) for d in (F32, F16, BF16, I32, I8, U8, BOOL, C64)),
        None,
        (F32, F16, BF16, I32, I8, BOOL),
        derivative="rounds",
    ),
    Spec(
        "bitcast_convert_type",
        lambda x, new_dtype: lax.bitcast_convert_type(x, np.dtype(new_dtype)),
        (
            one((3,), new_dtype="int32"),
            one((3,), new_dtype="uint8"),
            one((3,), new_dtype="int16"),
            one((), new_dtype="uint8"),
        ),
        None,
        (F32, I32, U32),
        "zero",
    ),
    Spec(
        "reduce_precision",
        lax.reduce_precision,
        (one((7,), exponent_bits=5, mantissa_bits=10), one((7,), exponent_bits=8, mantissa_bits=3)),
        None,
        (F32,),
        derivative="skip",
    ),
    Spec(
        "iota",
        lambda **p: lax.broadcasted_iota(np.dtype(I32), **p),
        (Sample((), {"shape": (2, 3), "dimension": 1}), Sample((), {"shape": (0,), "dimension": 0})),
        lambda shape, dimension: np.broadcast_to(
            np.arange(shape[dimension]).reshape([-1 if i == dimension else 1 for i in range(len(shape))]), shape
        ),
        (I32,),
        "zero",
        mapped=False,
    ),
    Spec("stop_gradient", lax.stop_gradient, (one((3,)), one(())), lambda x: x, (F32, C64), "zero"),
    Spec("name", lambda x: lax.name_p.bind(x, name="a"), (one((3,)), one(())), lambda x: x, EVERY),
    Spec("optimization_barrier", lambda x: lax.optimization_barrier(x), (one((3,)), one(())), lambda x: x, (F32, I32)),
    Spec(
        "after",
        lax.after_p.bind,
        (Sample((Operand((3,)), Operand(()))), Sample((Operand(()), Operand((2, 2))))),
        lambda x, y: x,
        (F32, I32),
    ),
    Spec(
        "add_any",
        lambda x, y: lax.add_any_p.bind(x, y),
        (Sample((Operand((3,)), Operand((3,)))), Sample((Operand(()), Operand(())))),
        np.add,
        (F32, I32, C64),
    ),
]
