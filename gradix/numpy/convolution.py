"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.lazy import lazy_module
from gradix._core.dimensions.expression import has_counts, is_count, larger, smaller
from gradix._core.dtypes import COMPLEX, INTEGER
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.conversion import asarray
from gradix.numpy.indexing import take_index
from gradix.numpy.promotion import convert, promote_dtypes_inexact

_places = lazy_module("gradix._api.counted.places")

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike


@replayed(host=host_implementations.convolve)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The discrete convolution of two vectors: `cₖ = Σₙ aₙ · vₖ₋ₙ`.

    Args:
        a: a vector of size n.
        v: a vector of size m.
        mode: 'full' for all positions where the vectors overlap, 'same' for as many as the longer
            one has elements, 'valid' for the positions where they overlap wholly.
        precision: the precision of the products, as for `lax.dot`.
        preferred_element_type: the dtype in which products are summed.

    Returns:
        A vector in a floating or complex dtype, of size n + m - 1, max(n, m), or |n - m| + 1.

    Raises:
        ValueError: `a` or `v` is not a vector or is empty, or `mode` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
        Array([1., 3., 2.], dtype=float32)
    """
    x, y = _vectors("convolve", a, v, mode)
    if has_counts((*x.aval.shape, *y.aval.shape)):
        return _of_counted(x, y, mode, precision, preferred_element_type)
    if x.aval.shape[0] < y.aval.shape[0]:
        x, y = y, x
    return _slide(x, lax.rev(y, (0,)), mode, precision, preferred_element_type)


@replayed(host=host_implementations.correlate)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two vectors: `cₖ = Σₙ aₙ₊ₖ · conj(vₙ)`.

    Args:
        a: a vector of size n.
        v: a vector of size m.
        mode: 'full', 'same' or 'valid', as for `convolve`.
        precision: the precision of the products, as for `lax.dot`.
        preferred_element_type: the dtype in which products are summed.

    Returns:
        A vector in a floating or complex dtype, of size n + m - 1, max(n, m), or |n - m| + 1.

    Raises:
        ValueError: `a` or `v` is not a vector or is empty, or `mode` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]))
        Array([2., 3.], dtype=float32)
    """
    x, y = _vectors("correlate", a, v, mode)
    y = lax.conj(y) if y.aval.dtype in COMPLEX else y
    if has_counts((*x.aval.shape, *y.aval.shape)) and mode != "same":
        return _of_counted(x, lax.rev(y, (0,)), mode, precision, preferred_element_type)
    if x.aval.shape[0] >= y.aval.shape[0]:
        return _slide(x, y, mode, precision, preferred_element_type)
    return lax.rev(_slide(y, x, mode, precision, preferred_element_type), (0,))


def _vectors(name: str, a, v, mode: str):
    x, y = promote_dtypes_inexact(name, a, v)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"{name}: a and v must be vectors, got shapes {x.aval.shape} and {y.aval.shape}. "
            f"scipy.signal.{name} takes arrays of more axes."
        )
    if not x.aval.size or not y.aval.size:
        raise ValueError(f"{name}: a and v must not be empty, got shapes {x.aval.shape} and {y.aval.shape}.")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    return x, y


def _slide(x, y, mode: str, precision, preferred):
    """The sums of products of `y` with each piece of `x` of the same size."""
    m = y.aval.shape[0]
    padding = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}[mode]
    preferred = None if preferred is None else asarray(0, preferred).aval.dtype
    lhs, rhs = (lax.broadcast_in_dim(v, (1, 1, v.aval.shape[0]), (2,)) for v in (x, y))
    fits = preferred is None or preferred not in INTEGER
    out = lax.conv_general_dilated(
        lhs, rhs, (1,), [padding], precision=precision, preferred_element_type=preferred if fits else None
    )
    out = lax.squeeze(out, (0, 1))
    return out if fits else convert(out, preferred)  # integers are summed as floats, as without this option


def _of_counted(x, y, mode: str, precision, preferred):
    """The convolution of vectors, where values decide the size of one or both."""
    if not is_count(x.aval.shape[0]):
        x, y = y, x
    n, m = x.aval.shape[0], y.aval.shape[0]
    kernel = _places.whole(y, 0) if is_count(m) else y  # zeros after it add nothing
    out = _slide(x, lax.rev(kernel, (0,)), "full", precision, preferred)
    long, short = larger(n, m), smaller(n, m)
    start, size = {
        "full": (0, larger(n + m - 1, 0)),
        "same": (larger(short - 1, 0) // 2, long),
        "valid": (larger(short - 1, 0), long - short + 1),
    }[mode]
    return take_index(out, slice(start, start + size))
