"""Iterative solvers of linear systems, as in `scipy.sparse.linalg`."""

from gradix.scipy.sparse.linalg.conjugate_gradients import cg as cg
from gradix.scipy.sparse.linalg.minimal_residuals import gmres as gmres
from gradix.scipy.sparse.linalg.stabilized_gradients import bicgstab as bicgstab
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
