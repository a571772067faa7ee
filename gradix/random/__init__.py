"""Random numbers drawn with keys; a key gives the same numbers on all devices and in all programs.

Example:
    >>> from gradix import random
    >>> key = random.key(42)
    >>> key, subkey = random.split(key)
    >>> x = random.normal(subkey, (3,))
"""

from gradix.random.continuous import (
    cauchy as cauchy,
    double_sided_maxwell as double_sided_maxwell,
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    lognormal as lognormal,
    maxwell as maxwell,
    pareto as pareto,
    rayleigh as rayleigh,
    triangular as triangular,
    wald as wald,
    weibull_min as weibull_min,
)
from gradix.random.counts import binomial as binomial, multinomial as multinomial, poisson as poisson
from gradix.random.discrete import (
    bernoulli as bernoulli,
    categorical as categorical,
    geometric as geometric,
    rademacher as rademacher,
)
from gradix.random.floats import bits as bits, normal as normal, uniform as uniform
from gradix.random.gammas import (
    beta as beta,
    chisquare as chisquare,
    dirichlet as dirichlet,
    f as f,
    gamma as gamma,
    loggamma as loggamma,
    t as t,
)
from gradix.random.generator import Generator as Generator
from gradix.random.integers import randint as randint
from gradix.random.keys import (
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from gradix.random.permutations import choice as choice, permutation as permutation
from gradix.random.truncated import truncated_normal as truncated_normal
from gradix.random.vectors import (
    ball as ball,
    generalized_normal as generalized_normal,
    multivariate_normal as multivariate_normal,
    orthogonal as orthogonal,
)
from gradix._base.listing import listing as _listing
from gradix._base.lazy import on_demand as _on_demand

with _on_demand(globals()):
    from gradix.random.gamma_primitive import random_gamma_p as random_gamma_p

__dir__ = _listing(__name__)
