"""Sorts by XLA's operation, in NumPy's order: NaN comes last, complex numbers go by their parts."""

from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._ops.indexing.gather import emit_gather
from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers

_I32 = np.dtype("int32")


def emit_sort(em, xs, axis: int, is_stable: bool, num_keys: int):
    """The sorted operands."""
    if not xs[0].aval.size:
        return list(xs)
    scalars = [make_aval((), x.aval.dtype) for x in xs for _ in (0, 1)]
    before = em.region(scalars, lambda *pairs: _before(em, pairs, num_keys))
    attrs = f"dimension = {axis} : i64, is_stable = {str(is_stable).lower()}"
    return em.ops("sort", [x.aval for x in xs], *xs, regions=(before,), attrs=attrs)


def emit_top_k(em, outs, x, k: int, axis: int):
    """The largest `k` in IEEE's total order and their places."""
    dtype, ndim = x.aval.dtype, x.aval.ndim
    if not outs[0].size:
        return [em.constant(0, o) for o in outs]
    order = axis_last(ndim, axis)
    moved, back = em.transpose(comparable(em, x), order), [order.index(i) for i in range(ndim)]
    shape = (*moved.aval.shape[:-1], k)
    types = [make_aval(shape, moved.aval.dtype), make_aval(shape, _I32)]
    if is_symbolic_shape((k,)):
        found = em.custom_call("stablehlo.dynamic_top_k", types, moved, em.dimension(k), api_version=2, is_refined=True)
    else:
        found = em.ops("chlo.top_k", types, moved, attrs=f"k = {k} : i64")
    values, places = [em.transpose(v, back) for v in found]
    return [em.convert(values, dtype), places]


def comparable(em, x):
    """The operand of a top_k, with booleans and narrow integers widened to a dtype XLA compares."""
    dtype = x.aval.dtype
    if dtype in dtypes.BOOL | dtypes.NARROW_INTEGER:
        return em.convert(x, np.dtype("int8" if dtype in dtypes.SIGNED else "uint8"))
    return x


def axis_last(ndim: int, axis: int) -> list[int]:
    """The permutation that puts an axis last."""
    return [*[i for i in range(ndim) if i != axis], axis]


def fetch(em, x, places, axis):
    """`x` at `places` along an axis; all other axes are batch axes."""
    ndim = x.aval.ndim
    column = em.reshape(places, (*places.aval.shape, 1))
    others = tuple([i for i in range(ndim) if i != axis])
    dnums = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    out = make_aval(places.aval.shape, x.aval.dtype)
    return emit_gather(em, out, x, column, dnums, (1,) * ndim)


# -- comparators -----------------------------------------------------------------------------------


def _before(em, scalars, num_keys):
    """Whether `a` comes before `b`, by pairs of scalars; on equality the next key decides."""
    pairs = [p for i in range(num_keys) for p in _parts(em, scalars[2 * i], scalars[2 * i + 1])]
    flag = make_aval((), np.dtype(bool))
    result = _smaller(em, *pairs[-1])
    for a, b in reversed(pairs[:-1]):
        result = em.op("or", flag, _smaller(em, a, b), em.op("and", flag, _equal(em, a, b), result))
    return result


def _parts(em, a, b):
    if a.aval.dtype not in dtypes.COMPLEX:
        return [(a, b)]
    part = make_aval((), dtypes.real_dtype(a.aval.dtype))
    parts = [(em.op(name, part, a), em.op(name, part, b)) for name in ("real", "imag")]
    # NaN in the imaginary part comes after all numbers, before NaN in the real part.
    return [*[(em.compare(x, x, "NE"), em.compare(y, y, "NE")) for x, y in parts], *parts]


def _smaller(em, a, b):
    less = em.compare(a, b, "LT")
    if a.aval.dtype not in dtypes.FLOAT:
        return less
    only_b_is_nan = em.op("and", less.aval, em.compare(b, b, "NE"), em.compare(a, a, "EQ"))
    return em.op("or", less.aval, less, only_b_is_nan)


def _equal(em, a, b):
    equal = em.compare(a, b, "EQ")
    if a.aval.dtype not in dtypes.FLOAT:
        return equal
    return em.op("or", equal.aval, equal, em.op("and", equal.aval, em.compare(a, a, "NE"), em.compare(b, b, "NE")))
