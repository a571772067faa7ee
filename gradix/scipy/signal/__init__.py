"""Signal processing, as `scipy.signal`."""
from gradix.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve
from gradix.scipy.signal.detrending import detrend
from gradix.scipy.signal.spectra import csd, istft, stft, welch
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
