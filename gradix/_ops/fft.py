"""The discrete Fourier transform over the last axes."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim, as_dim, is_symbolic_shape, larger
from gradix._core.divisions import undivided
from gradix._core.operators import Array
from gradix._core.primitive import MeshTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import mul
from gradix._ops.basis import broadcast_to, to_front
from gradix._ops.complex_parts import conj, real
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.families import Structural
from gradix._ops.fft_open import emit_fft, emit_open
from gradix._ops.indexing.slicing import pad
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.select import choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_ACCEPTED = frozenset([np.dtype("float32"), np.dtype("float64"), *dtypes.COMPLEX])


class FftType(enum.IntEnum):
    """The kinds of transform: complex, its inverse, real to half a spectrum, and its inverse.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), lax.FftType.RFFT, (4,)).round(2)
        Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


# The names of functions of np.fft, which NumPy imports on first use.
_HOST = {FftType.FFT: "fftn", FftType.IFFT: "ifftn", FftType.RFFT: "rfftn", FftType.IRFFT: "irfftn"}


class Fft(Structural):
    """A Fourier transform over as many last axes as there are lengths."""

    mesh = MeshTraits(linear="all")
    costly = True
    silent = False
    live = None

    def abstract(self, x, *, fft_type, fft_lengths):
        n = len(fft_lengths)
        if x.dtype not in _ACCEPTED or (fft_type == FftType.RFFT) == (x.dtype in dtypes.COMPLEX):
            kind = "real" if fft_type == FftType.RFFT else "complex"
            raise ValueError(
                f"{FftType(fft_type).name} input must be {kind} "
                f"of 32 or 64 bits a part, got {dtypes.dtype_name(x.dtype)}. Convert it with .astype."
            )
        if n not in (1, 2, 3) or n > x.ndim:
            raise ValueError(
                f"lax.fft transforms one to three last axes, got fft_lengths={fft_lengths} for shape {x.shape}."
            )
        given = x.shape[-n:]
        if fft_type == FftType.IRFFT:
            want = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0)
            if given != want:
                raise ValueError(
                    f"IRFFT of fft_lengths={fft_lengths} needs last dimensions {want}, got shape {x.shape}."
                )
            return make_aval((*x.shape[:-1], fft_lengths[-1]), dtypes.real_dtype(x.dtype))
        if given != fft_lengths:
            raise ValueError(
                f"{FftType(fft_type).name} fft_lengths={fft_lengths} must equal the last dimensions of "
                f"the operand, of shape {x.shape}."
            )
        if fft_type == FftType.RFFT:
            half = fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0
            return make_aval((*x.shape[:-1], half), dtypes.to_complex_dtype(x.dtype))
        return make_aval(x.shape, x.dtype)

    def specialise(self, x, *, fft_type, fft_lengths):
        if len(fft_lengths) != 1 or not x.size or not fft_lengths[0]:
            return None
        function, (n,) = getattr(np.fft, _HOST[fft_type].removesuffix("n")), fft_lengths
        return lambda x: function(x, n)

    def host(self, x, *, fft_type, fft_lengths):
        out = self.abstract(make_aval(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        if not x.size or not out.size:
            return np.zeros(out.shape, out.dtype)
        axes = tuple(range(-len(fft_lengths), 0))
        return getattr(np.fft, _HOST[fft_type])(x, fft_lengths, axes).astype(out.dtype, copy=False)

    def transpose(self, ct, x, *, fft_type, fft_lengths):
        # The Fourier matrix is symmetric. Half a spectrum also represents its conjugate half.
        if fft_type == FftType.RFFT:
            return [_from_half(ct, fft_lengths)]
        if fft_type == FftType.IRFFT:
            return [_to_half(ct, fft_lengths)]
        return [bind(self, (ct,), {"fft_type": fft_type, "fft_lengths": fft_lengths})]

    def batch(self, size, args, axes, **params):
        return bind(self, (to_front(size, args[0], axes[0]),), params), 0

    def divide(self, mesh, avals, outs, params):
        x, n = avals[0], len(params["fft_lengths"])
        return [undivided(self.name, x, range(x.ndim - n, x.ndim), "the axes that are transformed")]

    def lower(self, em, out, x, *, fft_type, fft_lengths):
        if not x.aval.size or not out.size:
            return em.constant(0, out)
        if is_symbolic_shape(fft_lengths):
            return emit_open(em, out, x, FftType(fft_type).name, fft_lengths)
        # XLA divides a transform only over the axes before the transformed ones.
        axes = range(out.ndim - len(fft_lengths), out.ndim)
        x, name = em.in_rows(em.gathered(x, axes)), FftType(fft_type).name
        found = em.in_rows(emit_fft(em, out, x, name, fft_lengths))
        return em.gathered(found, axes)


def _from_half(ct, lengths):
    """The transpose of a real transform: transform the half spectrum, padded by zeros."""
    missing = lengths[-1] - ct.aval.shape[-1]
    whole = pad(ct, scalar_like(ct, 0), [*[(0, 0, 0)] * (ct.aval.ndim - 1), (0, missing, 0)])
    return real(bind(fft_p, (whole,), {"fft_type": FftType.FFT, "fft_lengths": lengths}))


def _to_half(ct, lengths):
    """The transpose of the inverse real transform: frequencies with a conjugate count twice."""
    half = conj(bind(fft_p, (ct,), {"fft_type": FftType.RFFT, "fft_lengths": lengths}))
    shape, n = half.aval.shape, lengths[-1]
    place = broadcasted_iota(np.dtype("int32"), shape, len(shape) - 1)
    alone = (place == 0) | (2 * place == n)
    once, twice = (_over(ct, w, lengths) for w in (1.0, 2.0))
    return mul(
        half,
        convert_element_type(choose(alone, broadcast_to(twice, shape), broadcast_to(once, shape)), half.aval.dtype),
    )


def _over(ct, weight: float, lengths):
    """`weight` divided by the number of points, at least one, as a scalar of the dtype of `ct`."""
    lengths = [larger(n, 1) for n in lengths]
    if not is_symbolic_shape(lengths):
        return scalar_like(ct, weight / math.prod(lengths))
    for n in lengths:
        weight = weight / (convert_element_type(dim_as_value(n), ct.aval.dtype) if type(n) is SymbolicDim else n)
    return weight


fft_p = Fft("fft")


def fft(x: ArrayLike, fft_type: str | FftType, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last axes.

    Args:
        x: complex, or real as a complex array without imaginary parts; real for RFFT.
        fft_type: an `FftType` or its name, in letters of either case.
        fft_lengths: the lengths of the last one to three axes, which are transformed; for RFFT and
            IRFFT, those of the real array. FFT and IFFT also take none.

    Raises:
        ValueError: `fft_type` is unknown.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.fft(jnp.array([1.0, 0.0, 0.0]), lax.FftType.RFFT, (3,))
        Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"Unknown fft_type {fft_type!r}: it is one of {', '.join(FftType.__members__)}.")
        kind = FftType[fft_type.upper()]
    else:
        kind = FftType(fft_type)
    lengths = (fft_lengths,) if isinstance(fft_lengths, int) else tuple(fft_lengths)
    x = as_operand("fft", x)
    if kind in (FftType.FFT, FftType.IFFT):
        if x.aval.dtype in dtypes.NUMERIC | dtypes.BOOL and x.aval.dtype not in dtypes.COMPLEX:
            x = convert_element_type(x, dtypes.to_complex_dtype(x.aval.dtype))
        if not lengths:
            return x
    return bind(fft_p, (x,), {"fft_type": kind, "fft_lengths": tuple([as_dim(n) for n in lengths])})
