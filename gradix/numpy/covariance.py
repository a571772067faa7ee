"""Covariances and correlation coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dimensions.expression import check_not_one, larger
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.matrices import diagonal
from gradix.numpy.moments import mean
from gradix.numpy.promotion import as_operand, convert, number, promote_dtypes_inexact, working_dtype
from gradix.numpy.reductions import sum
from gradix.numpy.selection import clip

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike


@replayed
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables that were observed together.

    Args:
        m: a matrix with a variable in each row and an observation in each column, or a vector of
            observations of one variable.
        y: more variables, in the form of `m`.
        rowvar: whether the variables are in the rows; otherwise they are in the columns.
        bias: whether to divide by the number of observations n, and not by n - 1.
        ddof: the number that is subtracted from n in the divisor; it overrides `bias`.
        fweights: a vector of integers, how many times each observation was made.
        aweights: a vector of weights of the observations.
        dtype: the dtype in which to compute.

    Returns:
        A matrix with a row and a column for each variable, or a scalar for one variable, in a
        floating or complex dtype.

    Raises:
        ValueError: `ddof` is not an integer, `dtype` is neither floating nor complex, or an array
            has more than two axes.
        RuntimeError: the weights are not a vector with an element for each observation.
        TypeError: `fweights` are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.cov(jnp.array([[0.0, 1, 2], [2, 1, 0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    values = [as_operand("cov", v, i) for i, v in enumerate((m,) if y is None else (m, y))]
    for name, v in zip("my", values):
        if v.aval.ndim > 2:
            raise ValueError(f"cov: {name} must be a vector or a matrix, got shape {v.aval.shape}.")
    values = promote_dtypes_inexact("cov", *values)
    if dtype is not None:
        wanted = dtypes.requested_dtype(dtype, "cov", stacklevel=3)
        if wanted not in dtypes.INEXACT:
            raise ValueError(f"cov: dtype must be floating or complex, got {wanted}.")
        values = [convert(v, wanted) for v in values]
    result = values[0].aval.dtype
    values = [convert(v, working_dtype(result), v.aval.weak_type) for v in values]
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: ddof must be an integer, got {ddof}.")
    rows = [_variables(v, rowvar) for v in values]
    x = rows[0] if len(rows) == 1 else lax.concatenate(rows, 0)
    if not x.aval.shape[0]:
        return lax.full((0, 0), number(0, result))
    w = _observation_weights(x, fweights, aweights)
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    center, factor = _center(x, w, ddof, aweights)
    x = lax.sub(x, center)
    weighted = x if w is None else lax.mul(x, convert(lax.reshape(w, (1, *w.aval.shape)), x.aval.dtype))
    weighted = lax.conj(weighted) if weighted.aval.dtype in COMPLEX else weighted
    out = lax.dot(x, lax.transpose(weighted, (1, 0)))
    out = convert(lax.div(out, convert(factor, out.aval.dtype)), result, out.aval.weak_type)
    check_not_one("cov", out.aval.shape)
    return lax.squeeze(out, tuple([i for i, n in enumerate(out.aval.shape) if n == 1]))


def _variables(x, in_rows: bool):
    if x.aval.ndim < 2:
        return lax.reshape(x, (1, x.aval.size))
    return x if in_rows else lax.transpose(x, (1, 0))


def _observation_weights(x, fweights, aweights):
    n, w = x.aval.shape[1], None
    real = dtypes.real_dtype(x.aval.dtype)
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        v = as_operand("cov", given)
        if v.aval.ndim != 1:
            raise RuntimeError(f"cov: {name} must be a vector, got shape {v.aval.shape}.")
        if v.aval.shape[0] != n:
            raise RuntimeError(
                f"cov: {name} must have a weight for each of the {n} observations, got {v.aval.shape[0]}."
            )
        if name == "fweights" and v.aval.dtype not in dtypes.INTEGER:
            raise TypeError(f"cov: fweights must be integers, got dtype {v.aval.dtype}.")
        v = convert(v, real)
        w = v if w is None else lax.mul(w, v)
    return w


def _center(x, w, ddof: int, aweights):
    """A column of the means of the rows, and the divisor of the covariance."""
    n, real = x.aval.shape[1], dtypes.real_dtype(x.aval.dtype)
    if w is None:
        return mean(x, 1, None, None, True), number(larger(n - ddof, 0), real)
    total = sum(w)
    column = lax.broadcast_in_dim(convert(w, x.aval.dtype), (1, n), (1,))
    center = lax.div(sum(lax.mul(x, column), 1, None, None, True), convert(total, x.aval.dtype))
    if not ddof:
        return center, total
    off = number(ddof, real)
    if aweights is not None:
        share = lax.div(sum(lax.mul(w, convert(as_operand("cov", aweights), real))), total)
        off = lax.mul(off, share)
    return center, lax.sub(total, off)


@replayed
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables that were observed together.

    Args:
        x: a matrix with a variable in each row and an observation in each column, or a vector of
            observations of one variable.
        y: more variables, in the form of `x`.
        rowvar: whether the variables are in the rows; otherwise they are in the columns.
        dtype: the dtype in which to compute.

    Returns:
        A matrix with a row and a column for each variable, or a scalar for one variable, in a
        floating or complex dtype; its elements are between -1 and 1.

    Raises:
        ValueError: an array has more than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.corrcoef(jnp.array([[0.0, 1, 2], [2, 1, 0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.aval.ndim:
        return lax.div(c, c)
    n = c.aval.shape[0]
    spread = lax.sqrt(lax.real(diagonal(c)) if c.aval.dtype in COMPLEX else diagonal(c))
    spread = convert(spread, c.aval.dtype)
    c = lax.div(c, lax.broadcast_in_dim(spread, (n, n), (0,)))
    c = lax.div(c, lax.broadcast_in_dim(spread, (n, n), (1,)))
    if c.aval.dtype in COMPLEX:
        return lax.complex(*[clip(part(c), -1, 1) for part in (lax.real, lax.imag)])
    return clip(c, -1, 1)
