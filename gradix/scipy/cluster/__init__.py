"""Clusters of points, as in `scipy.cluster`."""

from gradix.scipy.cluster import vq as vq
