"""Spectra of signals: short-time Fourier transforms and their inverse, and Welch's estimates."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core import dtypes
from gradix._core.dimensions.expression import check_some
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand, convert, promote_dtypes, raise_rank
from gradix.scipy.signal.detrending import detrend as _detrend
from gradix.scipy.signal.segments import cut, extended, float_of, overlap_add, overlap_of, window_of

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _real(x):
    return dtypes.real_dtype(x.aval.dtype) if x.aval.dtype in COMPLEX else x.aval.dtype


class _Plan:
    """How signals of one length are cut and transformed.

    It has the window, the lengths, and whether spectra have no negative frequencies.
    """

    def __init__(self, x, window, nperseg, noverlap, nfft, detrend, *, onesided: bool):
        given = None if nperseg is None else int(nperseg)
        self.window, self.nperseg = window_of(window, given, x.aval.shape[-1], _real(x))
        self.step = self.nperseg - overlap_of(noverlap, self.nperseg)
        self.nfft = self.nperseg if nfft is None else int(nfft)
        if self.nfft < self.nperseg:
            raise ValueError(f"nfft must be greater than or equal to nperseg, got {self.nfft} and {self.nperseg}.")
        self.detrend = detrend
        if onesided and x.aval.dtype in COMPLEX:
            warnings.warn(
                "The signal is complex, so the spectrum is two-sided. Pass return_onesided=False for that.",
                stacklevel=4,
            )
        self.onesided = onesided and x.aval.dtype not in COMPLEX and self.window.aval.dtype not in COMPLEX

    def spectra(self, x):
        """The spectra of the segments of signals, of shape (..., segments, frequencies)."""
        x = cut(x, self.nperseg, self.step)
        if self.detrend:
            x = self.detrend(x) if callable(self.detrend) else _detrend(x, -1, self.detrend)
        return (jnp.fft.rfft if self.onesided else jnp.fft.fft)(
            x * raise_rank(convert(self.window, x.aval.dtype), x.ndim), self.nfft
        )

    def frequencies(self, fs, dtype):
        """The frequencies of the spectra."""
        rate = (jnp.fft.rfftfreq if self.onesided else jnp.fft.fftfreq)(self.nfft, dtype=dtype)
        return rate * fs


# -- short-time transforms -------------------------------------------------------------------------


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform, which is the spectra of overlapping segments.

    Args:
        x: the signals.
        fs: the number of samples in a unit of time.
        window: a name or tuple as for `scipy.signal.get_window`, or the values of the window.
        nperseg: the length of a segment, at most that of the signal.
        noverlap: the number of samples by which segments overlap; by default half of `nperseg`.
        nfft: the length of the transforms, which are padded with zeros; by default `nperseg`.
        detrend: False, "constant", "linear", or a function of segments along the last axis.
        return_onesided: whether to leave out the negative frequencies of real signals.
        boundary: how the signal is extended: "zeros", "constant", "even", "odd", or None.
        padded: whether to append zeros, so that the segments cover the signal.
        axis: the axis of time.

    Returns:
        The frequencies, the times of the segments, and the transforms, with the frequencies along
        `axis` and the segments along a new last axis.

    Raises:
        ValueError: lengths do not fit each other, or an option has an unknown value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> f, t, z = signal.stft(jnp.ones(16), nperseg=8)
        >>> f.shape, t.shape, z.shape
        ((5,), (5,), (5, 5))
    """
    x = float_of(as_operand("stft", x))
    axis = axis_of(axis, x.aval.ndim)
    check_some("stft", x.aval.shape)
    if not x.aval.size:
        real = jnp.zeros(x.aval.shape, _real(x))
        return real, real, convert(real, dtypes.to_complex_dtype(x.aval.dtype))
    x = jnp.moveaxis(x, axis, -1)
    plan = _Plan(x, window, nperseg, noverlap, nfft, detrend, onesided=return_onesided)
    x = extended(x, boundary, plan.nperseg // 2)
    if padded:
        missing = -(x.aval.shape[-1] - plan.nperseg) % plan.step
        x = jnp.pad(x, [(0, 0)] * (x.aval.ndim - 1) + [(0, missing % plan.nperseg)])
    z = plan.spectra(x)
    z = z / convert(abs(jnp.sum(plan.window)), z.aval.dtype)
    start = 0 if boundary is not None else plan.nperseg / 2
    times = (np.arange(z.aval.shape[-2]) * plan.step + start).astype(_real(x)) / fs
    return (plan.frequencies(fs, _real(x)), jnp.asarray(times), jnp.moveaxis(jnp.swapaxes(z, -1, -2), -2, axis))


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signals whose short-time Fourier transforms fit the given ones in least squares.

    D. Griffin, J. Lim, "Signal estimation from modified short-time Fourier transform" (1984).

    Args:
        Zxx: transforms, as `stft` gives them.
        fs, window: as for `stft`.
        nperseg: the length of a segment; by default it follows from the number of frequencies.
        noverlap: the number of samples by which segments overlap; by default half of `nperseg`.
        nfft: the length of the transforms; by default it follows from the number of frequencies.
        input_onesided: whether the negative frequencies are left out.
        boundary: whether the signal was extended, so that half a segment is cut off on both sides.
        time_axis: the axis of the segments.
        freq_axis: the axis of the frequencies.

    Returns:
        The times of the samples, and the signals, with time along `time_axis`.

    Raises:
        ValueError: lengths or axes do not fit each other.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> t, x = signal.istft(signal.stft(jnp.arange(8.0), nperseg=4)[2])
        >>> x.round(3)
        Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    z = as_operand("istft", Zxx)
    if z.aval.ndim < 2:
        raise ValueError(f"Input stft must be at least 2d! Got shape {z.aval.shape}; pass the transforms of `stft`.")
    rank = z.aval.ndim
    time, freq = axis_of(time_axis, rank), axis_of(freq_axis, rank)
    if time == freq:
        raise ValueError(f"Must specify differing time and frequency axes! Got {time_axis} and {freq_axis}.")
    z = jnp.moveaxis(convert(z, dtypes.to_complex_dtype(z.aval.dtype)), (time, freq), (-2, -1))
    nperseg, nfft = _lengths(z.aval.shape[-1], nperseg, nfft, input_onesided)
    noverlap = overlap_of(noverlap, nperseg)
    values = _synthesis_window(window, nperseg, _real(z))
    x = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, nfft)[..., :nperseg]
    x, weight = (
        overlap_add(x * raise_rank(convert(values * jnp.sum(values), x.aval.dtype), x.ndim), nperseg - noverlap),
        overlap_add(jnp.broadcast_to(values * values, (z.aval.shape[-2], nperseg)), nperseg - noverlap),
    )
    if boundary:
        cut_off = nperseg // 2
        x, weight = [v[..., cut_off : v.aval.shape[-1] - cut_off] for v in (x, weight)]
    weight = convert(jnp.where(abs(weight) > 1e-10, weight, 1), x.aval.dtype)
    x = x / raise_rank(weight, x.aval.ndim)
    times = np.arange(x.aval.shape[-1]).astype(_real(z)) / fs
    return jnp.asarray(times), jnp.moveaxis(x, -1, time - (freq < time))


def _lengths(frequencies: int, nperseg, nfft, onesided: bool) -> tuple[int, int]:
    usual = 2 * (frequencies - 1) if onesided else frequencies
    nperseg = usual if nperseg is None else int(nperseg)
    if nperseg < 1:
        raise ValueError(f"nperseg must be a positive integer, got {nperseg}.")
    if nfft is None:
        # An odd nperseg has the same number of one-sided frequencies as the even one below it.
        nfft = nperseg if onesided and nperseg == usual + 1 else usual
    if int(nfft) < nperseg:
        raise ValueError(f"FFT length ({nfft}) must be longer than nperseg ({nperseg}).")
    return nperseg, int(nfft)


def _synthesis_window(window, nperseg: int, dtype):
    values = window if isinstance(window, (str, tuple)) else jnp.asarray(window)
    if not isinstance(values, (str, tuple)) and values.shape != (nperseg,):
        raise ValueError(f"window must have length of {nperseg}, along its only axis; got shape {values.shape}.")
    return window_of(values, nperseg, nperseg, dtype)[0]


# -- power spectra ---------------------------------------------------------------------------------


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals, averaged over segments.

    P. Welch, "The use of the fast Fourier transform for the estimation of power spectra" (1967).

    Args:
        x: the signals.
        y: other signals of the same rank, or None for the power spectrum of `x`. The shorter of the
            two is padded with zeros.
        fs: the number of samples in a unit of time.
        window: a name or tuple as for `scipy.signal.get_window`, or the values of the window.
        nperseg: the length of a segment, at most that of the signal; 256 by default.
        noverlap: the number of samples by which segments overlap; by default half of `nperseg`.
        nfft: the length of the transforms, which are padded with zeros; by default `nperseg`.
        detrend: False, "constant", "linear", or a function of segments along the last axis.
        return_onesided: whether to leave out the negative frequencies of real signals.
        scaling: "density" for power per frequency, "spectrum" for power.
        axis: the axis of time.
        average: "mean" or "median", which is taken over the segments.

    Returns:
        The frequencies, and the densities with the frequencies along `axis`. The densities are real
        if `y` is None.

    Raises:
        ValueError: lengths do not fit each other, or an option has an unknown value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> f, p = signal.csd(jnp.arange(16.0) % 2, None, nperseg=8)
        >>> f.shape, int(p.argmax())
        ((5,), 4)
    """
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}. Use 'density' or 'spectrum'.")
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}.')
    x, y = _signals(x, y)
    axis = axis_of(axis, x.aval.ndim)
    check_some("a spectral density", x.aval.shape)
    if not x.aval.size or (y is not None and not y.aval.size):
        empty = jnp.zeros(x.aval.shape if not x.aval.size else y.aval.shape, _real(x))
        return empty, empty if y is None else convert(empty, dtypes.to_complex_dtype(x.aval.dtype))
    x, y = jnp.moveaxis(x, axis, -1), None if y is None else jnp.moveaxis(y, axis, -1)
    if y is not None:
        x, y = _of_one_length(x, y)
    plan = _Plan(x, window, nperseg, noverlap, nfft, detrend, onesided=return_onesided)
    left = plan.spectra(x)
    power = lax.real(left * lax.conj(left)) if y is None else lax.conj(left) * plan.spectra(y)
    power = _one_sided(power, plan.nfft) if plan.onesided else power
    size: Any = fs * jnp.sum(abs(plan.window) ** 2) if scaling == "density" else abs(jnp.sum(plan.window)) ** 2
    power = _average(power / convert(size, power.aval.dtype), average)
    return plan.frequencies(fs, _real(x)), jnp.moveaxis(power, -1, axis)


def _signals(x, y):
    if y is None:
        return float_of(as_operand("csd", x)), None
    x, y = promote_dtypes("csd", x, y)
    if x.aval.ndim != y.aval.ndim:
        raise ValueError(f"csd: both signals must have the same rank, got shapes {x.aval.shape} and {y.aval.shape}.")
    return float_of(x), float_of(y)


def _of_one_length(x, y):
    n = max(x.aval.shape[-1], y.aval.shape[-1])
    return [jnp.pad(v, [(0, 0)] * (v.aval.ndim - 1) + [(0, n - v.aval.shape[-1])]) for v in (x, y)]


def _one_sided(power, nfft: int):
    """The power with that of negative frequencies added.

    Frequency zero, and for even lengths the last one, have no negative counterpart.
    """
    twice = np.full(power.aval.shape[-1], 2.0)
    twice[0] = 1
    if nfft % 2 == 0:
        twice[-1] = 1
    return power * raise_rank(jnp.asarray(twice.astype(power.aval.dtype)), power.aval.ndim)


def _average(power, average: str):
    if average == "mean":
        return jnp.mean(power, axis=-2)
    n = power.aval.shape[-2]
    even = 2 * np.arange(1, (n - 1) // 2 + 1)
    # The median of exponential variables is smaller than their mean by this factor.
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if power.aval.dtype not in COMPLEX:
        return jnp.median(power, axis=-2) / bias
    return lax.complex(jnp.median(lax.real(power), axis=-2), jnp.median(lax.imag(power), axis=-2)) / bias


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, averaged over segments; see also `csd`.

    P. Welch, "The use of the fast Fourier transform for the estimation of power spectra" (1967).

    Args:
        x: the signals.
        fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as for
            `csd`.

    Returns:
        The frequencies, and the densities with the frequencies along `axis`.

    Raises:
        ValueError: lengths do not fit each other, or an option has an unknown value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> f, p = signal.welch(jnp.arange(16.0) % 4, nperseg=8)
        >>> f[p.argmax()]
        Array(0.25, dtype=float32)
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
