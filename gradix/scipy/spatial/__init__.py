"""Geometry, as `scipy.spatial`."""

from gradix.scipy.spatial import transform as transform
