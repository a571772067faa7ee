"""Vector quantization, as in `scipy.cluster.vq`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax, numpy as jnp
from gradix._base.listing import listing
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import promote_dtypes_inexact

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The number of the code nearest to each observation, and its Euclidean distance.

    Args:
        obs: observations of shape (M, N), or (M,) for numbers.
        code_book: codes of shape (K, N), or (K,) for numbers.
        check_finite: has no effect.

    Returns:
        Two arrays of shape (M,): int32 numbers, of equally near codes the first, and distances.

    Raises:
        ValueError: the ranks differ or are not 1 or 2, the lengths of rows differ, or there are no
            codes.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.cluster.vq import vq
        >>> vq(jnp.array([[0.0, 1.0], [4.0, 0.0]]), jnp.array([[0.0, 0.0], [4.0, 3.0]]))
        (Array([0, 1], dtype=int32), Array([1., 3.], dtype=float32))
    """
    x, codes = promote_dtypes_inexact("vq", obs, code_book)
    if x.aval.ndim != codes.aval.ndim:
        raise ValueError(
            f"Observation and code_book should have the same rank, got shapes {x.aval.shape} and {codes.aval.shape}."
        )
    if x.aval.ndim not in (1, 2):
        raise ValueError(
            f"ndim different than 1 or 2 are not supported, got shapes {x.aval.shape} and "
            f"{codes.aval.shape}. Reshape them to matrices."
        )
    if x.aval.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    if x.aval.shape[1] != codes.aval.shape[1] or not codes.aval.shape[0]:
        raise ValueError(
            "vq: there must be at least one code, and observations and codes must have one length; got "
            f"shapes {x.aval.shape} and {codes.aval.shape}."
        )
    off = x[:, None, :] - codes[None, :, :]
    squares = lax.real(off * lax.conj(off)) if off.aval.dtype in COMPLEX else off * off
    distances = jnp.sum(squares, -1)
    return jnp.argmin(distances, -1).astype("int32"), jnp.sqrt(jnp.min(distances, -1))


__dir__ = listing(__name__)
