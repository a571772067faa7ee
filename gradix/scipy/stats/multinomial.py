"""The multinomial distribution: `n! Π pᵢ^xᵢ / xᵢ!`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.dtypes import BITWISE
from gradix._core.operators import Array
from gradix.numpy.promotion import convert, inexact_operand, promote_dtypes, raise_rank
from gradix.scipy.special import gammaln, xlogy

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of counts under the multinomial distribution.

    Args:
        x: the count of each outcome along the last axis, integers.
        n: the number of trials, an integer.
        p: the probability of each outcome along the last axis.

    Returns:
        An array of the shape of `x` without its last axis; minus infinity where counts are negative
        or do not add up to `n`.

    Raises:
        ValueError: the dtype of `x` or `n` is not an integer dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import multinomial
        >>> multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(4)
        Array(-0.6931, dtype=float32)
    """
    counts, n = promote_dtypes("multinomial.logpmf", x, n)
    if counts.aval.dtype not in BITWISE:
        raise ValueError(
            f"x and n must be of integer type; got dtype {counts.aval.dtype}. Convert them with .astype(int)."
        )
    fits = (jnp.sum(counts, -1) == n) & jnp.all(counts >= 0, -1)
    p = inexact_operand("multinomial.logpmf", p)
    x = convert(counts, p.aval.dtype)
    total = n.astype(x.dtype)
    rank = max(x.ndim, p.ndim)
    x, p = raise_rank(x, rank), raise_rank(p, rank)
    value = gammaln(total + 1) + jnp.sum(xlogy(x, p) - gammaln(x + 1), -1)
    return jnp.where(fits, value, -np.inf)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of counts under the multinomial distribution.

    Args:
        x: the count of each outcome along the last axis, integers.
        n: the number of trials, an integer.
        p: the probability of each outcome along the last axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import multinomial
        >>> multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])).round(4)
        Array(0.5, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))


__dir__ = _own_names(__name__)
