"""Statistics of samples: the most frequent value, ranks, and the standard error of the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.dimensions.expression import check_some
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand, convert, inexact_operand, raise_rank, working_dtype

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class ModeResult(NamedTuple):
    """The result of `mode`: the most frequent values, and their counts."""

    mode: Array
    count: Array  # type: ignore[assignment]


def _check_policy(name: str, nan_policy: str, allowed: tuple) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of {{'propagate', 'omit', 'raise'}}.")
    if nan_policy == "raise":
        raise NotImplementedError(
            f"{name}: nan_policy='raise' is not supported, because values are not known when a program "
            "is compiled. Check jnp.isnan(a).any() outside of jit instead."
        )
    if nan_policy not in allowed:
        raise NotImplementedError(
            f"{name}: nan_policy={nan_policy!r} is not implemented. Remove NaNs first, as by a[~jnp.isnan(a)]."
        )


def _ordered(x, axis):
    """The array with the axis last, or flattened if it is None; and the axis as a number."""
    if axis is None:
        return x.reshape(-1), 0
    axis = axis_of(axis, x.ndim)
    return jnp.moveaxis(x, axis, -1), axis


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, and its count; of several values the smallest.

    Args:
        a: the array.
        axis: the axis; None for all elements.
        nan_policy: must be "propagate": NaN counts as a value.
        keepdims: whether to keep the axis, with size 1.

    Raises:
        NotImplementedError: `nan_policy` is "omit" or "raise".
        ValueError: `nan_policy` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import mode
        >>> mode(jnp.array([3, 1, 2, 2]))
        ModeResult(mode=Array(2, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy, ("propagate",))
    x = as_operand("mode", a)
    x = x.reshape(1) if not x.ndim else x
    rows, place = _ordered(x, axis)
    n = rows.shape[-1]
    check_some("mode", (n,), "dtype")
    if not n:
        value = jnp.full(rows.shape[:-1], np.nan)
        count = jnp.zeros_like(value)
    else:
        rows = jnp.sort(rows, axis=-1)
        same = (rows[..., 1:] == rows[..., :-1]) | (
            (rows[..., 1:] != rows[..., 1:]) & (rows[..., :-1] != rows[..., :-1])
        )
        numbers = raise_rank(lax.iota(np.int32, n), rows.ndim)
        starts = jnp.where(jnp.concatenate([jnp.ones_like(same, shape=(*rows.shape[:-1], 1)), ~same], -1), numbers, 0)
        lengths = numbers - lax.cummax(starts, axis=rows.ndim - 1) + 1
        best = jnp.argmax(lengths, -1, keepdims=True)
        value = jnp.take_along_axis(rows, best, -1)[..., 0]
        count = jnp.max(lengths, -1)
    if keepdims:
        shape = (1,) * x.ndim if axis is None else (*x.shape[:place], 1, *x.shape[place + 1 :])
        value, count = value.reshape(shape), count.reshape(shape)
    return ModeResult(value, count)


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The ranks of elements, counted from 1.

    Args:
        a: the array.
        method: the ranks of equal elements: the mean of their ranks for "average", the smallest for
            "min", the largest for "max", the smallest without gaps after it for "dense", and
            different ranks in their order for "ordinal".
        axis: the axis; None for all elements of the flattened array.
        nan_policy: must be "propagate": all ranks of a row with a NaN are NaN.

    Returns:
        An array of floats, of the shape of `a`, or flat if `axis` is None.

    Raises:
        ValueError: `method` or `nan_policy` has another value.
        NotImplementedError: `nan_policy` is "omit" or "raise".

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import rankdata
        >>> rankdata(jnp.array([30, 10, 20, 20]))
        Array([4. , 1. , 2.5, 2.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method {method!r}. Use 'average', 'min', 'max', 'dense' or 'ordinal'.")
    x = as_operand("rankdata", a)
    x = x.reshape(1) if not x.ndim else x
    rows, place = _ordered(x, axis)
    n = rows.shape[-1]
    if not n:
        return jnp.zeros(x.shape if axis is not None else (0,))
    order = jnp.argsort(rows, axis=-1, stable=True)
    back = jnp.argsort(order, axis=-1)
    ranks = _sorted_ranks(jnp.take_along_axis(rows, order, -1), method) if method != "ordinal" else None
    out = (back + 1).astype(float) if ranks is None else jnp.take_along_axis(ranks, back, -1)
    if x.aval.dtype in INEXACT:
        out = jnp.where(jnp.any(rows != rows, -1, keepdims=True), np.nan, out)
    return out if axis is None else jnp.moveaxis(out, -1, place)


def _sorted_ranks(rows, method: str):
    """The ranks of sorted elements."""
    n, last = rows.shape[-1], rows.ndim - 1
    numbers = lax.iota(np.int32, n)
    one = jnp.ones(rows.shape[:-1] + (1,), bool)
    new = jnp.concatenate([one, rows[..., 1:] != rows[..., :-1]], -1)[..., :n]  # of nothing, one is too many
    if method == "dense":
        return jnp.cumsum(new, -1).astype(float)
    least = lax.cummax(jnp.where(new, numbers, 0), axis=last) + 1
    ends = jnp.concatenate([new[..., 1:], one], -1)[..., :n]
    largest = lax.cummin(jnp.where(ends, numbers, n), axis=last, reverse=True) + 1
    if method == "min":
        return least.astype(float)
    return largest.astype(float) if method == "max" else (least + largest) / 2


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: the standard deviation over the root of the count.

    Args:
        a: the array.
        axis: the axis; None for all elements.
        ddof: the number that is subtracted from the count in the standard deviation.
        nan_policy: "propagate", or "omit" to ignore NaNs.
        keepdims: whether to keep the axis, with size 1.

    Raises:
        NotImplementedError: `nan_policy` is "raise".
        ValueError: `nan_policy` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import sem
        >>> sem(jnp.array([1.0, 2.0, 3.0, 4.0])).round(4)
        Array(0.6455, dtype=float32)
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    given = inexact_operand("sem", a)
    x = convert(given, working_dtype(given.aval.dtype), given.aval.weak_type)
    real = jnp.finfo(x.dtype).dtype if x.aval.dtype in COMPLEX else x.dtype
    if nan_policy == "propagate":
        count = x.size if axis is None else x.shape[axis_of(axis, x.ndim)]
        out = jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(jnp.asarray(count, real))
    else:
        count = jnp.sum(~jnp.isnan(x), axis, dtype=real, keepdims=keepdims)
        out = jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count)
    return out if x is given else convert(out, given.aval.dtype)
