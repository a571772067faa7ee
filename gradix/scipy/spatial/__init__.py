"""Geometry, as in `scipy.spatial`."""

from gradix.scipy.spatial import transform as transform
