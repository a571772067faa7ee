"""Minimization of functions, as in `scipy.optimize`."""

from gradix.scipy.optimize.minimization import OptimizeResults as OptimizeResults, minimize as minimize
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
