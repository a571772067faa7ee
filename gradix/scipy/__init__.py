"""Functions of SciPy on arrays, with their derivatives."""

from gradix.scipy import cluster as cluster
from gradix.scipy import fft as fft
from gradix.scipy import integrate as integrate
from gradix.scipy import interpolate as interpolate
from gradix.scipy import linalg as linalg
from gradix.scipy import ndimage as ndimage
from gradix.scipy import optimize as optimize
from gradix.scipy import signal as signal
from gradix.scipy import sparse as sparse
from gradix.scipy import spatial as spatial
from gradix.scipy import special as special
from gradix.scipy import stats as stats
