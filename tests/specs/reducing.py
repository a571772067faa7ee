"""Reductions, running reductions, sorts."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix.lax.order import ranked
from tests.specs.indexing import at
from tests.specs.spec import BF16, BOOL, C64, F16, F32, I8, I32, U8, Operand, Sample, Spec, distinct

NUMBERS = (F32, F16, BF16, I32, I8, U8, C64)
REAL = (F32, F16, BF16, I32, I8, U8)
SHAPES = (((), ()), ((3,), (0,)), ((2, 3, 2), (1,)), ((2, 3, 2), (0, 2)), ((2, 3), ()), ((1,), (0,)))
EMPTY = (((0,), (0,)), ((2, 0), (1,)))


def _samples(shapes, operand):
    return tuple(Sample((operand(s),), {"axes": a}) for s, a in shapes)


def reduction(name, reference, dtypes=NUMBERS, operand=Operand, shapes=(*SHAPES, *EMPTY), **kw):
    return Spec(
        name,
        getattr(lax, name),
        _samples(shapes, operand),
        reference,
        dtypes,
        errors=(
            (lambda: getattr(lax, name)(np.ones((2, 3), dtypes[0]), (2,)), (ValueError, TypeError, IndexError), "2"),
            (lambda: getattr(lax, name)(np.ones((2, 3), dtypes[0]), (0, 0)), ValueError, "0"),
        ),
        **kw,
    )


def _axes(f):
    return lambda x, axes: f(x, axis=axes) if axes else x


def running(name, reference, dtypes=REAL, operand=Operand, **kw):
    samples = tuple(
        Sample((operand(s),), {"axis": a, "reverse": r})
        for s, a in (((5,), 0), ((2, 4), 1), ((3, 2), 0), ((0,), 0), ((1,), 0))
        for r in (False, True)
    )
    return Spec(
        name,
        getattr(lax, name),
        samples,
        lambda x, axis, reverse: np.flip(reference(np.flip(x, axis), axis), axis) if reverse else reference(x, axis),
        dtypes,
        **kw,
    )


def _cumlogsumexp(x, axis):
    return np.logaddexp.accumulate(x, axis)


def _sorts():
    for shape, dimension in (((7,), 0), ((2, 5), 1), ((4, 2), 0), ((0,), 0), ((1,), 0)):
        yield Sample((distinct(shape),), {"dimension": dimension})


def _ranked():
    for shape, ranks in (((7, 1), [[3], [0]]), ((4, 2), [[3, 1]]), ((1, 3), [[0, 0, 0]])):
        yield Sample((distinct(shape), at(ranks)), {})


def _top_k(x, k, axis=-1):
    order = np.argsort(-x, axis, kind="stable")
    taken = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, taken, axis), taken


def _arg(f):
    return lambda x, axis, index_dtype: f(x, axis)


SPECS = [
    reduction("reduce_sum", _axes(np.sum)),
    reduction("reduce_prod", _axes(np.prod), rtol=1e-5),
    reduction("reduce_max", _axes(np.max), REAL, distinct, SHAPES),
    reduction("reduce_min", _axes(np.min), REAL, distinct, SHAPES),
    reduction("reduce_and", _axes(np.bitwise_and.reduce), (BOOL, I32, U8), derivative="zero"),
    reduction("reduce_or", _axes(np.bitwise_or.reduce), (BOOL, I32, U8), derivative="zero"),
    reduction("reduce_xor", _axes(np.bitwise_xor.reduce), (BOOL, I32, U8), derivative="zero"),
    *[
        Spec(
            n,
            getattr(lax, n),
            tuple(
                Sample((distinct(s),), {"axis": a, "index_dtype": np.dtype("int32")})
                for s, a in (((4,), 0), ((2, 3), 1), ((3, 2), 0), ((1,), 0))
            ),
            _arg(f),
            (F32, BF16, I32),
            "zero",
        )
        for n, f in (("argmax", np.argmax), ("argmin", np.argmin))
    ],
    running("cumsum", np.cumsum, NUMBERS, rtol=1e-5),
    running("cumprod", np.cumprod, NUMBERS, rtol=1e-5),
    running("cummax", np.maximum.accumulate, REAL, distinct),
    running("cummin", np.minimum.accumulate, REAL, distinct),
    running("cumlogsumexp", _cumlogsumexp, (F32,), rtol=1e-5),
    Spec(
        "sort",
        lax.sort,
        tuple(_sorts()),
        lambda x, dimension: np.sort(x, dimension),
        (F32, BF16, I32, U8),
        second=False,
    ),
    Spec(
        "ranked",
        ranked,
        tuple(_ranked()),
        lambda x, ranks: np.take_along_axis(np.sort(x, 0), ranks, 0),
        (F32, BF16, I32),
        second=False,
        errors=((lambda: ranked(np.ones(3, "f4"), np.zeros((1, 1), "i4")), TypeError, "matrices"),),
    ),
    Spec(
        "top_k",
        lax.top_k,
        (
            Sample((distinct((6,)),), {"k": 2}),
            Sample((distinct((2, 5)),), {"k": 3}),
            Sample((distinct((4, 3)),), {"k": 2, "axis": 0}),
            Sample((distinct((3,)),), {"k": 0}),
        ),
        _top_k,
        (F32, I32),
        second=False,
        errors=((lambda: lax.top_k(np.ones(3, "f4"), 5), ValueError, "5"),),
    ),
]
