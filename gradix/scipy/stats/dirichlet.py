"""The Dirichlet distribution on the simplex: `Γ(Σα) Π xᵢ^(αᵢ - 1) / Π Γ(αᵢ)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import gammaln, xlogy
from gradix.scipy.stats.operands import arguments

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density of the Dirichlet distribution.

    Args:
        x: components along the first axis, as many as in `alpha`; or one less, where the last
            component is 1 minus their sum.
        alpha: the concentrations, a vector of positive numbers.

    Returns:
        An array of the shape of `x` without its first axis; minus infinity outside of the simplex.

    Raises:
        ValueError: the shapes do not fit each other.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import dirichlet
        >>> dirichlet.logpdf(jnp.array([0.25, 0.75]), jnp.ones(2)).round(4) + 0.0
        Array(0., dtype=float32)
    """
    x, alpha = arguments("dirichlet.logpdf", (x, alpha))
    if alpha.aval.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.aval.shape}. Use vmap for several.")
    n = alpha.aval.shape[0]
    if not x.aval.ndim or x.aval.shape[0] not in (n, n - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got "
            f"x.shape={x.aval.shape}, alpha.shape={alpha.aval.shape}."
        )
    if x.aval.shape[0] == n - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)])
    weights = alpha.reshape(n, *[1] * (x.ndim - 1))
    inside = jnp.all(x >= 0, 0) & jnp.all(x <= 1, 0) & (abs(jnp.sum(x, 0) - 1) < 1e-6 * max(1, n))
    safe = jnp.where(inside, x, 1 / n)
    value = jnp.sum(xlogy(weights - 1, safe), 0) + gammaln(jnp.sum(alpha)) - jnp.sum(gammaln(alpha))
    return jnp.where(inside, value, -np.inf)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density of the Dirichlet distribution.

    Args:
        x: components along the first axis, as many as in `alpha`; or one less, where the last
            component is 1 minus their sum.
        alpha: the concentrations, a vector of positive numbers.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import dirichlet
        >>> dirichlet.pdf(jnp.array([0.25, 0.75]), jnp.ones(2)).round(4)
        Array(1., dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))


__dir__ = _own_names(__name__)
