"""Rotations in three dimensions, as in `scipy.spatial.transform`."""

from gradix.scipy.spatial.transform.rotation import Rotation as Rotation
from gradix.scipy.spatial.transform.slerp import Slerp as Slerp
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
