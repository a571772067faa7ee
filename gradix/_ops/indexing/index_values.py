"""Index values in dtypes that hold the sizes of the axes they index."""

from __future__ import annotations

from gradix._core import dtypes
from gradix._core.array import scalar_array
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.operators import Array
from gradix._ops.arithmetic import add, max, min
from gradix._ops.comparison import lt
from gradix._ops.convert import convert
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.operands import scalar_like
from gradix._ops.select import choose


def wide_index(i: Array, *sizes) -> Array:
    """Indices in a dtype in which numbers up to these sizes can be added to them."""
    own = i.aval.dtype
    dtype = dtypes.index_dtype(own, sizes)
    return i if dtype is own else convert(i, dtype)


def index_from_end(i: Array, size) -> Array:
    """Indices into an axis of this size in which negative ones are counted from its end."""
    if i.aval.dtype not in dtypes.SIGNED:
        return i
    i = wide_index(i, size)
    aval = i.aval
    if type(size) is SymbolicDim:
        end = convert(dim_as_value(size), aval.dtype)
    else:
        end = scalar_array(size, aval.dtype, aval.weak_type)
    return choose(lt(i, scalar_array(0, aval.dtype, aval.weak_type)), i, add(i, end))


def fitted_index(i: Array, dtype) -> Array:
    """Indices in another dtype; those that it does not hold become its nearest number.

    So an index that is out of bounds stays so, where a conversion would drop its high bits.
    """
    if i.aval.dtype == dtype:
        return i
    own, to = dtypes.iinfo(i.aval.dtype), dtypes.iinfo(dtype)
    if own.max > to.max:
        i = min(i, scalar_like(i, int(to.max)))
    if own.min < to.min:
        i = max(i, scalar_like(i, int(to.min)))
    return convert(i, dtype)
