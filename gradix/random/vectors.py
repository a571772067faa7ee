"""Random vectors and matrices: normal vectors, vectors in balls, and orthogonal matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax, numpy as jnp
from gradix._api.constraints import divided
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.axes import known_int
from gradix.random.continuous import exponential
from gradix.random.discrete import rademacher
from gradix.random.draws import float_dtype, parameter, raise_rank, rejection_sampler, sampler, shape_of
from gradix.random.floats import draw_normal, split_keys
from gradix.random.gammas import gamma
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_METHODS = ("cholesky", "eigh", "svd")


# -- multivariate normal ---------------------------------------------------------------------------


def multivariate_normal(
    key: KeyLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Normal random vectors with a given mean and covariance.

    Args:
        key: a key, typed or raw.
        mean: the mean, of shape (..., n).
        cov: the covariance, of shape (..., n, n).
        shape: the shape of the result without the last axis; by default the one to which the other
            axes of `mean` and `cov` broadcast.
        dtype: the floating dtype in which normal numbers are drawn; by default that of `mean` and
            `cov`. The result has the wider of both.
        method: how the covariance is factored: "cholesky" is the fastest; "eigh" and "svd" also
            work for singular covariances.
        out_sharding: the sharding of the result.

    Returns:
        An array of shape (*shape, n).

    Raises:
        ValueError: the shapes do not fit, `dtype` is not floating, or `method` is unknown.

    Example:
        >>> from gradix import random, numpy as jnp
        >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
        (3, 2)
    """
    if out_sharding is not None:
        return divided(multivariate_normal, out_sharding, key, mean, cov, shape, dtype, method)
    mean, cov = parameter("multivariate_normal", mean), parameter("multivariate_normal", cov)
    common = dtypes.to_inexact_dtype(dtypes.result_type(mean, cov))
    dtype = float_dtype("multivariate_normal", common if dtype is None else dtype)
    mean, cov = lax.convert_element_type(mean, common), lax.convert_element_type(cov, common)
    if method not in _METHODS:
        raise ValueError(
            f"multivariate_normal: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}."
        )
    _check_moments(mean.aval.shape, cov.aval.shape)
    own = lax.broadcast_shapes(mean.aval.shape[:-1], cov.aval.shape[:-2])
    if shape is None:
        shape = own
    else:
        shape = shape_of("multivariate_normal", shape)
        if lax.broadcast_shapes(shape, own) != shape:
            raise ValueError(
                f"multivariate_normal got shape={shape} for mean of shape {mean.aval.shape} and "
                f"cov of shape {cov.aval.shape}. It must end with their other axes, {own}."
            )
    return _multivariate_normal(
        take_key("multivariate_normal", key), mean, cov, shape=shape, dtype=dtype, method=method
    )


def _check_moments(mean, cov) -> None:
    if not mean:
        raise ValueError("multivariate_normal: mean must have at least one axis, got mean.ndim == 0.")
    if len(cov) < 2:
        raise ValueError(
            f"multivariate_normal: cov must have at least two axes, got cov.ndim == {len(cov)}. "
            "Write jnp.diag(variances) for independent elements."
        )
    if cov[-2:] != (mean[-1], mean[-1]):
        raise ValueError(
            f"multivariate_normal: cov must have shape (..., n, n) for n={mean[-1]}, the size of "
            f"mean, got cov.shape == {cov}."
        )


@sampler
def _multivariate_normal(key, mean, cov, *, shape, dtype, method):
    if method == "cholesky":
        factor = jnp.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    else:
        vectors, values, _ = jnp.linalg.svd(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    noise = draw_normal(key, shape=(*shape, mean.aval.shape[-1]), dtype=dtype)
    return raise_rank(mean, noise.aval.ndim) + jnp.einsum("...ij,...j->...i", factor, noise)


# -- generalized normal ----------------------------------------------------------------------------


def generalized_normal(
    key: KeyLike,
    p: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random numbers with density proportional to `exp(-|x|^p)`.

    Args:
        key: a key, typed or raw.
        p: the exponent, a positive number.
        shape: the shape of the result.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating.

    Example:
        >>> from gradix import random
        >>> random.generalized_normal(random.key(0), 1.5, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(generalized_normal, out_sharding, key, p, shape, dtype)
    dtype, shape = float_dtype("generalized_normal", dtype), shape_of("generalized_normal", shape)
    draw = _generalized_normal if type(p) in (int, float) else _generalized_normals
    return draw(take_key("generalized_normal", key), p=p, shape=shape, dtype=dtype)


def _generalized_normals(key, *, p, shape, dtype):
    sizes_key, signs_key = split_keys(key, 2)
    sizes = gamma(sizes_key, 1 / p, shape, dtype)
    return rademacher(signs_key, shape, dtype) * sizes ** (1 / p)


_generalized_normal = rejection_sampler(_generalized_normals)


def ball(
    key: KeyLike,
    d: int,
    p: float = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform random vectors in the unit ball of the p-norm.

    The method is that of F. Barthe and others, "A probabilistic approach to the geometry of the
    Lₚⁿ-ball" (2005): generalized normal vectors are divided by a p-norm of themselves and an
    exponential number.

    Args:
        key: a key, typed or raw.
        d: the size of the vectors.
        p: the exponent of the norm, a positive number.
        shape: the shape of the result without the last axis.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Returns:
        An array of shape (*shape, d).

    Raises:
        ValueError: `dtype` is not floating.

    Example:
        >>> from gradix import numpy as jnp, random
        >>> x = random.ball(random.key(0), 3, shape=(100,))
        >>> bool((jnp.linalg.norm(x, axis=-1) <= 1).all())
        True
    """
    if out_sharding is not None:
        return divided(ball, out_sharding, key, d, p, shape, dtype)
    dtype, shape, d = float_dtype("ball", dtype), shape_of("ball", shape), known_int(d, "argument d of ball")
    draw = _ball if type(p) in (int, float) else _balls
    return draw(take_key("ball", key), p=p, shape=(*shape, d), dtype=dtype)


def _balls(key, *, p, shape, dtype):
    inside_key, radius_key = split_keys(key, 2)
    x = generalized_normal(inside_key, p, shape, dtype)
    rest = exponential(radius_key, shape[:-1], dtype)
    return x / (((jnp.abs(x) ** p).sum(-1) + rest) ** (1 / p))[..., None]


_ball = rejection_sampler(_balls)


# -- orthogonal matrices ---------------------------------------------------------------------------


def orthogonal(
    key: KeyLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform random orthogonal matrices, or for complex dtypes unitary ones.

    Matrices that are not square have orthonormal rows or columns. The method is that of
    F. Mezzadri, "How to generate random matrices from the classical compact groups" (2007): the Q
    of the QR factorization of a normal matrix, with the signs of the diagonal of R.

    Args:
        key: a key, typed or raw.
        n: the number of rows.
        shape: the shape of the result without the last two axes.
        dtype: a floating or complex dtype; the default floating one if None.
        m: the number of columns; `n` by default.
        out_sharding: the sharding of the result.

    Returns:
        An array of shape (*shape, n, m).

    Raises:
        ValueError: `dtype` is neither floating nor complex.

    Example:
        >>> from gradix import numpy as jnp, random
        >>> q = random.orthogonal(random.key(0), 3)
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-6))
        True
    """
    if out_sharding is not None:
        return divided(orthogonal, out_sharding, key, n, shape, dtype, m)
    dtype = float_dtype("orthogonal", dtype, dtypes.INEXACT, "float or complex")
    shape, n = shape_of("orthogonal", shape), known_int(n, "argument n of orthogonal")
    m = n if m is None else known_int(m, "argument m of orthogonal")
    return _orthogonal(take_key("orthogonal", key), shape=(*shape, n, m), dtype=dtype)


@sampler
def _orthogonal(key, *, shape, dtype):
    *batch, n, m = shape
    noise = draw_normal(key, shape=(*batch, max(n, m), min(n, m)), dtype=dtype)
    q, r = jnp.linalg.qr(noise)
    q = q * jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return jnp.matrix_transpose(q) if n < m else q
