"""Signal processing, as `scipy.signal`."""

from gradix.scipy.signal.convolution import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from gradix.scipy.signal.detrending import detrend as detrend
from gradix.scipy.signal.spectra import csd as csd, istft as istft, stft as stft, welch as welch
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
