"""Clusters of points, as `scipy.cluster`."""

from gradix.scipy.cluster import vq as vq
