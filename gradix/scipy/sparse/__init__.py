"""Equations with large linear maps, as `scipy.sparse`."""

from gradix.scipy.sparse import linalg as linalg
