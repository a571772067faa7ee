"""Functions that choose between arrays element by element: where, select, piecewise, clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.tracebacks import boundary
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import (
    BESIDE,
    as_operand,
    broadcast_to,
    common_shape,
    convert,
    number,
    operands,
    promote_dtypes,
)

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)


@overload
def where(
    condition: Any, x: Literal[None] = None, y: Literal[None] = None, /, *, size=None, fill_value=None
) -> tuple[Array, ...]: ...


@overload
def where(condition: Any, x: Any, y: Any, /, *, size=None, fill_value=None) -> Array: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of `x` where the condition is true, and those of `y` elsewhere.

    With the condition alone, it is `nonzero(condition, size=size, fill_value=fill_value)`.

    Args:
        condition: an array of booleans; other numbers are true if they are not zero.
        x: an array of values to take where the condition is true.
        y: an array of values to take elsewhere.
        size: for the condition alone, how many indices to return.
        fill_value: for the condition alone, the index to fill in.

    Returns:
        An array of the broadcast shape of all three, in the promoted dtype of `x` and `y`; or a
        tuple of vectors of indices.

    Raises:
        ValueError: only one of `x` and `y` is given, `size` is given beside both, or the shapes do
            not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(4)
        >>> jnp.where(x > 1, x, -1)
        Array([-1, -1,  2,  3], dtype=int32)
        >>> jnp.where(jnp.array([0, 3, 0, 5]))
        (Array([1, 3], dtype=int32),)

    See also:
        `jnp.select`, `lax.select`, `jnp.nonzero`; `lax.cond`, which computes one branch only.
    """
    if x is None or y is None:
        return _where_indices(condition, x, y, size, fill_value)
    if size is not None or fill_value is not None:
        raise ValueError(
            f"where: size and fill_value are for the condition alone, got size={size} and "
            f"fill_value={fill_value} beside x and y."
        )
    if isinstance(x, Array) and isinstance(condition, Array):
        a, b = condition.aval, x.aval
        if a.shape == b.shape and a.dtype is _BOOL:
            if isinstance(y, Array):
                if y.aval is b:
                    return lax._choose(condition, y, x)
            elif not b.weak_type and b.dtype in BESIDE.get(type(y), ()):
                return lax._choose(condition, number(y, b.dtype), x)
    return _select(truth("where", condition), *_values(x, y))


def _values(x, y):
    """Both values in their promoted dtype, each with its own shape."""
    if (
        isinstance(x, Array)
        and isinstance(y, Array)
        and x.aval.dtype == y.aval.dtype
        and (x.aval.weak_type == y.aval.weak_type)
    ):
        return x, y
    if isinstance(x, Array) and not x.aval.weak_type and x.aval.dtype in BESIDE.get(type(y), ()):
        return x, number(y, x.aval.dtype)
    if isinstance(y, Array) and not y.aval.weak_type and y.aval.dtype in BESIDE.get(type(x), ()):
        return number(x, y.aval.dtype), y
    return promote_dtypes("where", x, y)


def _select(condition, x, y):
    shape = common_shape("where", condition, x, y)
    if condition.aval.ndim:
        condition = broadcast_to(condition, shape)
    if y.aval.ndim:
        y = broadcast_to(y, shape)
    if x.aval.ndim or not y.aval.ndim:  # A scalar may stay one beside an array.
        x = broadcast_to(x, shape)
    return lax._choose(condition, y, x)


def truth(name: str, x) -> Array:
    """Whether each element is other than zero."""
    x = as_operand(name, x)
    dtype = x.aval.dtype
    return x if dtype == _BOOL else lax.ne(x, number(0, dtype))


def _where_indices(condition, x, y, size, fill_value):
    if x is not None or y is not None:
        raise ValueError(
            f"where: x and y must both be given, or neither, got only {'x' if y is None else 'y'}. "
            "Write where(condition, x, 0) to choose a constant."
        )
    from_mask = as_operand("where", condition)
    return from_mask.nonzero(size=size, fill_value=fill_value)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The elements of several arrays, each from the array whose condition is the first true one.

    Args:
        condlist: a list of boolean arrays.
        choicelist: a list of as many arrays to choose from.
        default: the value where no condition is true.

    Returns:
        An array of the broadcast shape of all arrays, in the promoted dtype of the choices.

    Raises:
        ValueError: the lists are empty, or differ in length.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(5)
        >>> jnp.select([x < 2, x > 3], [-x, x * x])
        Array([ 0, -1,  0,  0, 16], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            "select: condlist and choicelist must have the same length, which is not zero, got "
            f"{len(condlist)} conditions and {len(choicelist)} choices."
        )
    conditions = [truth("select", c) for c in condlist]
    *choices, out = promote_dtypes("select", *choicelist, default)
    shape = common_shape("select", *conditions, *choices, out)
    out = broadcast_to(out, shape)
    for c, choice in zip(conditions[::-1], choices[::-1]):
        out = lax.select_n(broadcast_to(c, shape), out, broadcast_to(choice, shape))
    return out


@boundary
def piecewise(
    x: ArrayLike, condlist: ArrayLike | Sequence[ArrayLike], funclist: Sequence[Any], *args: Any, **kw: Any
) -> Array:
    """The values at `x` of a function that is defined by pieces.

    Args:
        x: an array.
        condlist: a list of boolean arrays of the shape of `x`, or one array of these.
        funclist: a function or constant for each condition, and optionally one more where no
            condition is true (0 by default). Where several are true, the last one counts.
        *args: further arguments of the functions.
        **kw: further keyword arguments of the functions.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        ValueError: there are not as many functions as conditions, or one more.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.array([-2.0, 3.0])
        >>> jnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * v])
        Array([2., 9.], dtype=float32)
    """
    x = as_operand("piecewise", x)
    conditions = _piece_conditions(condlist)
    n, m = len(conditions), len(funclist)
    if m not in (n, n + 1):
        raise ValueError(f"piecewise: funclist must have {n} or {n + 1} functions for {n} conditions, got {m}.")
    functions = list(funclist) + [0] * (n + 1 - m)
    pieces = [f(x, *args, **kw) if callable(f) else f for f in functions]
    pieces = [convert(as_operand("piecewise", p), x.aval.dtype) for p in pieces]
    # Where several conditions are true, the last one counts.
    return select(conditions[::-1], pieces[:n][::-1], pieces[n])


def _piece_conditions(condlist) -> list:
    if isinstance(condlist, (Array, np.ndarray)):
        c = as_operand("piecewise", condlist)
        return [truth("piecewise", c[i]) for i in range(c.shape[0])] if c.ndim > 1 else [truth("piecewise", c)]
    if not isinstance(condlist, (list, tuple)) or (condlist and isinstance(condlist[0], (bool, np.bool_))):
        condlist = [np.asarray(condlist)]
    return [truth("piecewise", c) for c in condlist]


@replayed
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The elements brought between `min` and `max`: `minimum(max, maximum(min, arr))`.

    Args:
        arr: an array.
        min: the lower bound, if there is one.
        max: the upper bound, if there is one. Where `min > max`, the result is `max`.

    Returns:
        An array of the broadcast shape, in the promoted dtype.

    Raises:
        ValueError: `arr` is missing, or an argument is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.clip(jnp.arange(5), 1, 3)
        Array([1, 1, 2, 3, 3], dtype=int32)
        >>> jnp.clip(jnp.array([-1.0, 2.0]), min=0.0)
        Array([0., 2.], dtype=float32)

    See also:
        `jnp.minimum`, `jnp.maximum`, `lax.clamp`, `nn.relu6`.
    """
    if arr is None:
        raise ValueError("clip: arr is missing. Write jnp.clip(arr, min, max).")
    for value in (arr, min, max):
        if value is not None and _is_complex(value):
            raise ValueError(
                "clip: arr, min and max must be real, as complex numbers have no order. Clip the "
                "real and the imaginary part."
            )
    if min is not None:
        arr = lax.max(*operands("clip", min, arr))
    if max is not None:
        arr = lax.min(*operands("clip", max, arr))
    return as_operand("clip", arr)


def _is_complex(x) -> bool:
    return not isinstance(x, (int, float)) and as_operand("clip", x).aval.dtype in COMPLEX
