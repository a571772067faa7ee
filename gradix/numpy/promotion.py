"""Operands of array functions: numbers and NumPy values become arrays of one dtype and one rank."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from gradix import lax
from gradix._base.config import state
from gradix._base.errors import InconclusiveDimensionOperation, class_of
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, as_number, check_number, shared
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dtypes import COMPLEX, FLOAT, INEXACT, NUMERIC
from gradix._core.operators import Array
from gradix._core.promotion import promote_all
from gradix._core.refs import Ref
from gradix._core.trace import is_unknown

# A Python number of this type fits beside a strongly typed array of these dtypes without changing
# them.
BESIDE: dict[type, frozenset] = {float: INEXACT, int: NUMERIC, complex: COMPLEX}

_INT32, _F32 = np.dtype("int32"), np.dtype("float32")
_NUMBERS_LIMIT = 4096
_numbers: dict[tuple, ArrayImpl] = {}


_CONVERTERS = (__file__,)

# -- single values ---------------------------------------------------------------------------------


def number_of(n, dtype):
    """A size, also a symbolic one, as a scalar array of a dtype."""
    return number(float(n), dtype) if type(n) is int else convert(n.__jax_array__(), dtype)


def number(x, dtype, weak: bool = False) -> Any:
    """A Python number as a 0-d array of `dtype`; the same number gives the same array.

    Raises:
        OverflowError: an int fits neither `dtype` nor the default integer dtype.
    """
    try:
        key = (x or repr(x), dtype, weak)  # Zeros are told apart by their text, as 0.0 == -0.0.
    except InconclusiveDimensionOperation:
        return convert(as_array(x), dtype, weak)
    found = _numbers.get(key)
    if found is None:
        if type(x) is SymbolicDim:
            return convert(as_array(x), dtype, weak)
        with np.errstate(all="ignore"):
            found = as_number(ArrayImpl(_host_number(x, dtype), make_aval((), dtype, weak)))
        if len(_numbers) < _NUMBERS_LIMIT:
            _numbers[key] = shared(found)
    return found


def like(x: Array, value) -> ArrayImpl:
    """A Python number as a 0-d array of the dtype of `x`; it is weak only beside a weak scalar."""
    aval = x.aval
    return number(value, aval.dtype, aval.weak_type and not aval.ndim)


def matching(x: Array, value) -> ArrayImpl:
    """A Python number as a 0-d array of the dtype and weakness of `x`."""
    aval = x.aval
    return number(value, aval.dtype, aval.weak_type)


def _host_number(x, dtype) -> np.ndarray:
    if isinstance(x, int) and dtype in dtypes.INTEGER:
        try:
            dtypes.check_python_int(x, dtype)
        except OverflowError:
            default = dtypes.python_scalar_dtype(int)
            dtypes.check_python_int(x, default)  # In int8(3) + 300, the number wraps as an int32.
            return np.asarray(x, default).astype(dtype)
    if dtypes.is_extended(dtype):
        return dtype.filled(int(x))
    if dtype == dtypes.float0:
        return np.zeros((), dtype)  # values of this dtype have no bits
    # As when arrays are converted, a float becomes the nearest integer that the dtype holds.
    if isinstance(x, float) and dtype in dtypes.INTEGER:
        info = dtypes.iinfo(dtype)
        x = 0 if x != x else int(min(max(x, int(info.min)), int(info.max)))
    return np.asarray(x, dtype)


def as_operand(name: str, x, position: int = 0) -> Array:
    """`x` as an array.

    Raises:
        TypeError: `x` is a list, None, or anything else that is neither an array nor a number.
    """
    if isinstance(x, Array):
        return x
    if state.jax_transfer_guard_host_to_device is not None:
        check_number(x, _CONVERTERS)
    try:
        return as_array(x)
    except TypeError:
        if hasattr(x, "__jax_array__") and not isinstance(x, Ref):  # it says itself why it is no array
            raise
        raise TypeError(_not_an_array(name, x, position)) from None


def _not_an_array(name: str, x, position: int) -> str:
    if isinstance(x, (np.ndarray, np.generic)):
        return f"{name}, operand at position {position}: {dtypes.refusal(x.dtype)}"
    if isinstance(x, Ref):
        return f"{name} takes arrays and numbers, got a {x.aval} at position {position}. Read its value with ref[...]."
    text = f"{name} takes arrays and numbers, got {class_of(x)} at position {position}."
    if isinstance(x, (list, tuple)):
        return text + " Write jnp.array(...) around it; lists are not converted, as that is slow."
    if x is None:
        return text + " The usual cause is a function that returns nothing."
    return text + " Convert it with jnp.asarray(...)."


def value_of(x):
    """`x` without its derivatives, so that a value differentiated eagerly may determine a shape."""
    return lax.stop_gradient(x) if is_unknown(x) else x


def convert(x: Array, dtype, weak: bool = False) -> Array:
    """`x` with this dtype and weakness; `x` itself if it has them."""
    aval = x.aval
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    return lax._convert_element_type(x, dtype, weak)


def working_dtype(dtype):
    """Where sums, squares and counts are taken: float32 for shorter floats, else `dtype` itself."""
    return _F32 if dtype in FLOAT and dtype.itemsize < 4 else dtype


# -- ranks -----------------------------------------------------------------------------------------


def raise_rank(x: Array, rank: int) -> Array:
    """`x` with leading axes of size 1, until it has `rank` axes."""
    aval = x.aval
    missing = rank - aval.ndim
    if not missing:
        return x
    return lax.broadcast_in_dim(x, (1,) * missing + aval.shape, tuple(range(missing, rank)))


def same_rank(name: str, *xs: Array) -> tuple:
    """Arrays raised to the highest rank among them; scalars stay, as they broadcast anyway."""
    ranks = {x.aval.ndim for x in xs}
    ranks.discard(0)
    if len(ranks) < 2:
        return xs
    check_rank_promotion(name, xs)
    # The error names the user's shapes, not those with axes added.
    common_shape(name, *xs)
    rank = max(ranks)
    return tuple([raise_rank(x, rank) if x.aval.ndim else x for x in xs])


def check_rank_promotion(name: str, xs) -> None:
    """Warn or raise, as the option `jax_numpy_rank_promotion` says, of operands of several ranks."""
    mode = state.jax_numpy_rank_promotion
    if mode == "allow":
        return
    shapes = " ".join(str(x.aval.shape) for x in xs)
    text = (
        f"{name} on operands of shapes {shapes} needs rank promotion, and "
        f"jax_numpy_rank_promotion is {mode!r}. Give the operands one rank, for example with "
        "x[None, :] or x[:, None]."
    )
    if mode == "raise":
        raise ValueError("Operands could not be broadcast together: " + text)
    warnings.warn(text, UserWarning, stacklevel=4)


# -- two operands ----------------------------------------------------------------------------------


def _kind(name: str, x, position: int):
    """`x` as an array, or as the Python number it is, with its dtype and weakness."""
    t = type(x)
    if t is float or t is int or t is complex or t is bool:
        if state.jax_transfer_guard_host_to_device is not None:
            check_number(x, _CONVERTERS)
        return x, *dtypes.scalar_type(t)
    x = as_operand(name, x, position)
    aval = x.aval
    return x, aval.dtype, aval.weak_type


def _cast(x, dtype, weak) -> Array:
    return convert(x, dtype, weak) if isinstance(x, Array) else number(x, dtype, weak)


def operands(name: str, x, y) -> tuple[Array, Array]:
    """Two operands in their common dtype and rank."""
    if isinstance(x, Array):
        a = x.aval
        if isinstance(y, Array):
            b = y.aval
            if a is b or (a.dtype == b.dtype and a.weak_type == b.weak_type):
                return (x, y) if a.ndim == b.ndim else same_rank(name, x, y)
        elif not a.weak_type and a.dtype in BESIDE.get(type(y), ()):
            if state.jax_transfer_guard_host_to_device is not None:
                check_number(y, _CONVERTERS)
            return x, number(y, a.dtype)
    elif isinstance(y, Array):
        b = y.aval
        if not b.weak_type and b.dtype in BESIDE.get(type(x), ()):
            if state.jax_transfer_guard_host_to_device is not None:
                check_number(x, _CONVERTERS)
            return number(x, b.dtype), y
    x, da, wa = _kind(name, x, 0)
    y, db, wb = _kind(name, y, 1)
    if dtypes.is_extended(da) or dtypes.is_extended(db):
        raise TypeError(
            f"{name} does not accept dtypes {da}, {db}: random keys are not numbers. Draw numbers with gradix.random."
        )
    dtype, weak = _common(name, (da, wa), (db, wb))
    return same_rank(name, _cast(x, dtype, weak), _cast(y, dtype, weak))


def _common(name: str, *kinds):
    """The dtype of operands of these dtypes, each with whether it is weak; and whether it is weak itself."""
    try:
        return promote_all(kinds, dtypes.promotion_mode())
    except ValueError:
        if any(d == dtypes.float0 for d, _ in kinds):
            raise dtypes.no_float0(name) from None
        raise


def numeric_operands(name: str, x, y) -> tuple[Array, Array]:
    """As `operands`; booleans become int32, even if the default integer is wider."""
    x, y = operands(name, x, y)
    return (convert(x, _INT32), convert(y, _INT32)) if x.aval.dtype == bool else (x, y)


def inexact_operands(name: str, x, y) -> tuple[Array, Array]:
    """As `operands`; integers and booleans become floating-point numbers."""
    if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval and x.aval.dtype in INEXACT:
        return x, y
    x, da, wa = _kind(name, x, 0)
    y, db, wb = _kind(name, y, 1)
    dtype, weak = _common(name, (da, wa), (db, wb))
    dtype = dtypes.to_inexact_dtype(dtype)
    return same_rank(name, _cast(x, dtype, weak), _cast(y, dtype, weak))


# -- one operand -----------------------------------------------------------------------------------


def inexact_operand(name: str, x) -> Array:
    """`x` as an array in which integers and booleans became floating-point numbers."""
    x = as_operand(name, x)
    aval = x.aval
    return x if aval.dtype in INEXACT else convert(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)


def numeric_operand(name: str, x) -> Array:
    """`x` as an array in which booleans became int32, even if the default integer is wider."""
    x = as_operand(name, x)
    return x if x.aval.dtype != bool else convert(x, _INT32)


# -- any number of operands ------------------------------------------------------------------------


def promote_dtypes(name: str, *xs) -> list[Array]:
    """Arrays in their promoted dtype, each with its own shape."""
    kinds = [_kind(name, x, i) for i, x in enumerate(xs)]
    if len(kinds) == 1:
        x, dtype, weak = kinds[0]
    else:
        dtype, weak = _common(name, *[(d, w) for _, d, w in kinds])
    return [_cast(x, dtype, weak) for x, _, _ in kinds]


def promote_dtypes_inexact(name: str, *xs) -> list[Array]:
    """Arrays in their promoted dtype, which becomes a floating one if it is not inexact."""
    xs = promote_dtypes(name, *xs)
    aval = xs[0].aval
    dtype = dtypes.to_inexact_dtype(aval.dtype)
    return [convert(x, dtype, aval.weak_type) for x in xs]


def broadcast_to(x: Array, shape: tuple) -> Array:
    """`x` broadcast to `shape`; its axes are the last ones."""
    own = x.aval.shape
    if own == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own), len(shape))))


def common_shape(name: str, *xs: Any) -> tuple:
    """The shape to which arrays broadcast together.

    Raises:
        ValueError: the shapes do not broadcast.
    """
    shapes = tuple([s for x in xs if (s := x.aval.shape)])
    shape = _broadcast(shapes)
    if shape is None:
        raise ValueError(
            f"Incompatible shapes for broadcasting in {name}: {', '.join(map(str, shapes))}. Axes "
            "are matched from the last one, and must agree or have size 1."
        )
    return shape


@functools.lru_cache(4096)
def _broadcast(shapes: tuple) -> tuple | None:
    """The shape to which shapes broadcast; None if they do not."""
    rank = max(map(len, shapes), default=0)
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes]):
        wide = [n for n in sizes if n != 1]
        if any(n != wide[0] for n in wide[1:]):
            return None
        out.append(wide[0] if wide else 1)
    return tuple(out)
