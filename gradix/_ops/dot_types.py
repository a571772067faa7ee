"""Types of contractions: shape and dtype of the result, and the dtype computed in."""

from __future__ import annotations

from functools import cache

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.basis import free_axes


def _rank(dtype) -> tuple:
    kinds = dtypes.BOOL, dtypes.INTEGER, dtypes.FLOAT, dtypes.COMPLEX
    kind = next(i for i, members in enumerate(kinds) if dtype in members)
    return kind, dtypes.itemsize_bits(dtype), dtype.name.startswith(("int", "bfloat")), dtype.name


@cache
def joined_dtype(a, b):
    """The dtype of a product: that of the operand of higher kind, or of the wider one in a kind.

    It differs from promotion in sums, where operands of mixed signedness give a wider dtype.
    """
    return a if a == b or _rank(a) > _rank(b) else b


def compute_dtype(x, y, out):
    """The dtype that holds both operands and the result; small floats are summed in float32."""
    work = joined_dtype(joined_dtype(x, y), out)
    if work in dtypes.INTEGER and out in dtypes.BOOL | dtypes.INTEGER:
        return out
    return np.dtype("float32") if work in dtypes.FLOAT and work.itemsize < 4 else work


def rounded_to(dtype, out):
    """The dtype to round a product of floats to before it is converted to `out`.

    It is None where nothing is rounded in between.
    """
    if dtype not in dtypes.FLOAT or dtype == out or out in dtypes.COMPLEX:
        return None
    return dtype if out not in dtypes.FLOAT or dtypes.itemsize_bits(out) <= dtypes.itemsize_bits(dtype) else None


# Products of these kinds may not be returned in a narrower dtype. The number says of how many parts
# an element consists.
_EXACT = (dtypes.INTEGER, 1), (dtypes.COMPLEX, 2)


# -- types -----------------------------------------------------------------------------------------


def result_type(lhs, rhs, dimension_numbers, preferred):
    (lc, rc), (lb, rb) = dimension_numbers
    _check_axes("lhs", lhs, lb, lc)
    _check_axes("rhs", rhs, rb, rc)
    for what, l, r in (("batch", lb, rb), ("contracting", lc, rc)):
        if len(l) != len(r):
            raise TypeError(
                f"dot_general requires equal numbers of lhs_{what} and rhs_{what} dimensions, got "
                f"lhs_{what} {l} and rhs_{what} {r}."
            )
        sizes = tuple([lhs.shape[i] for i in l]), tuple([rhs.shape[i] for i in r])
        if sizes[0] != sizes[1]:
            both = "lhs batch dimensions and rhs batch dimensions" if what == "batch" else "contracting dimensions"
            raise TypeError(
                f"dot_general requires {both} to have the same shape, got {sizes[0]} and {sizes[1]}. The "
                f"operands have shapes {lhs.shape} and {rhs.shape}, dimension_numbers={dimension_numbers}."
            )
    shape = (
        *[lhs.shape[i] for i in lb],
        *[lhs.shape[i] for i in free_axes(lhs.ndim, lc, lb)],
        *[rhs.shape[i] for i in free_axes(rhs.ndim, rc, rb)],
    )
    dtype = joined_dtype(lhs.dtype, rhs.dtype)
    if preferred is None:
        return make_aval(shape, dtype, lhs.weak_type and rhs.weak_type)
    narrower = any(
        dtype in kind and dtypes.itemsize_bits(preferred) * parts < dtypes.itemsize_bits(dtype)
        for kind, parts in _EXACT
    )
    if narrower or dtype in dtypes.INTEGER and preferred in dtypes.BOOL:
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred} for result type of {dtype}. Convert the result."
        )
    return make_aval(shape, preferred, lhs.weak_type and rhs.weak_type)


def _check_axes(side: str, x, batch, contracting) -> None:
    if x.dtype not in dtypes.SUPPORTED:
        raise TypeError(f"dot_general does not accept dtype {dtypes.dtype_name(x.dtype)} for its {side}.")
    if not all(0 <= i < x.ndim for i in (*batch, *contracting)):
        raise TypeError(
            f"dot_general requires {side} dimension numbers to be nonnegative and less than the number of "
            f"axes of the {side} value, got {side}_batch of {batch} and {side}_contracting of "
            f"{contracting} for {side} of rank {x.ndim}."
        )
    for what, axes in (("batch", batch), ("contracting", contracting)):
        if len(set(axes)) != len(axes):
            raise TypeError(f"dot_general requires {side} {what} dimensions to be distinct, got {side}_{what} {axes}.")
    if set(batch) & set(contracting):
        raise TypeError(
            f"dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, got "
            f"{side}_batch {batch} and {side}_contracting {contracting}."
        )
