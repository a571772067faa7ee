"""Solvers of large linear systems, as in `scipy.sparse`."""

from gradix.scipy.sparse import linalg as linalg
