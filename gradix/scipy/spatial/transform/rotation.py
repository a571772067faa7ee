"""`Rotation`: rotations in three dimensions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradix import lax, numpy as jnp, random
from gradix._core.operators import Array
from gradix.numpy.promotion import promote_dtypes_inexact
from gradix.scipy.spatial.transform import quaternions


class Rotation(NamedTuple):
    """A rotation, or an array of rotations; it is a pytree of quaternions.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.spatial.transform import Rotation
        >>> r = Rotation.from_euler("z", 90.0, degrees=True)
        >>> r.apply(jnp.array([1.0, 0.0, 0.0])).round(4)
        Array([0., 1., 0.], dtype=float32)
        >>> (r * r).magnitude().round(4)
        Array(3.1416, dtype=float32)
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations):
        """The concatenation of rotations, as one array of rotations."""
        quats = [r.quat if r.quat.ndim > 1 else r.quat[None] for r in rotations]
        return cls(jnp.concatenate(quats))

    @classmethod
    def from_euler(cls, seq: str, angles, degrees: bool = False):
        """The product of rotations about one to three axes.

        Args:
            seq: letters of "xyz" for fixed axes, or of "XYZ" for axes that are rotated too.
            angles: the angles, one for each letter along the last axis; for one letter also a
                number.
            degrees: whether the angles are in degrees.

        Raises:
            ValueError: `seq` is not such a string, or the shape of `angles` does not fit.
        """
        count = len(quaternions.axes_of(seq)[0])
        angles = jnp.asarray(angles)
        angles = quaternions.floats("from_euler", angles if angles.ndim else angles[None], count)
        return cls(quaternions.from_euler(seq, jnp.deg2rad(angles) if degrees else angles))

    @classmethod
    def from_matrix(cls, matrix):
        """The rotations of matrices in the last two axes.

        The matrices must be orthogonal with determinant 1, which is not checked.
        """
        return cls(quaternions.from_matrix(quaternions.floats("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp):
        """The rotations of modified Rodrigues parameters, which have the length tan(angle / 4)."""
        v = quaternions.floats("from_mrp", mrp, 3)
        square = quaternions.square_sum(v)
        return cls(jnp.concatenate([2 * v, 1 - square], -1) / (1 + square))

    @classmethod
    def from_quat(cls, quat):
        """The rotations of quaternions (x, y, z, w) in the last axis, which are normalized."""
        return cls(quaternions.normalized(quaternions.floats("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec, degrees: bool = False):
        """The rotations of vectors along their axes, whose lengths are the angles."""
        v = quaternions.floats("from_rotvec", rotvec, 3)
        return cls(quaternions.from_vector(jnp.deg2rad(v) if degrees else v))

    @classmethod
    def identity(cls, num: int | None = None, dtype=float):
        """The identity, or an array of `num` identities."""
        none = jnp.asarray(np.array([0, 0, 0, 1]), dtype)
        return cls(none if num is None else jnp.broadcast_to(none, (num, 4)))

    @classmethod
    def random(cls, random_key, num: int | None = None):
        """A uniformly distributed rotation, or an array of `num` of them."""
        # Normal variables in four dimensions have uniformly distributed directions.
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    def __getitem__(self, indexer):
        """The rotations at an index of an array of rotations."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return type(self)(self.quat[indexer])

    def __len__(self):
        """The number of rotations in the array."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other):
        """The rotation by `other` followed by that of `self`."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return type(self)(quaternions.product(*promote_dtypes_inexact("Rotation", self.quat, other.quat)))

    def apply(self, vectors, inverse: bool = False):
        """Vectors rotated by the rotations.

        Args:
            vectors: vectors of shape (..., 3), which are broadcast against the rotations.
            inverse: whether to apply the inverse rotations.

        Raises:
            ValueError: the shapes do not broadcast.
        """
        q, v = promote_dtypes_inexact("Rotation.apply", self.quat, quaternions.floats("apply", vectors, 3))
        return quaternions.rotated(q, v, inverse)

    def as_euler(self, seq: str, degrees: bool = False):
        """The angles of rotations about three axes, of shape (..., 3).

        Args:
            seq: three letters, as for `from_euler`.
            degrees: whether to give the angles in degrees.

        Returns:
            The angles. The second is between -90° and 90° for three different axes, and between 0°
            and 180° for two. Where it is at an end, only the sum or difference of the others is
            determined, and the third is zero.
        """
        angles = quaternions.to_euler(seq, self.quat)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self):
        """The matrices that rotate columns, of shape (..., 3, 3)."""
        return quaternions.to_matrix(self.quat)

    def as_mrp(self):
        """The modified Rodrigues parameters for angles up to 180°, of shape (..., 3)."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_rotvec(self, degrees: bool = False):
        """The vectors along the axes whose lengths are the angles, which are at most 180°."""
        v = quaternions.to_vector(self.quat)
        return jnp.rad2deg(v) if degrees else v

    def as_quat(self, canonical: bool = False, scalar_first: bool = False):
        """The quaternions, of shape (..., 4).

        Args:
            canonical: whether to give the quaternion with w > 0, of the two of each rotation.
            scalar_first: whether to give (w, x, y, z) instead of (x, y, z, w).
        """
        q = quaternions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    def inv(self):
        """The inverse rotation."""
        return type(self)(quaternions.conjugate(self.quat))

    def magnitude(self):
        """The angle of the rotation, between 0 and π."""
        size = jnp.sqrt(jnp.sum(self.quat[..., :3] ** 2, -1))
        return 2 * jnp.arctan2(size, abs(self.quat[..., 3]))

    def mean(self, weights=None):
        """The rotation with the least weighted sum of squared distances of matrices.

        F. Markley, Y. Cheng, J. Crassidis, Y. Oshman, "Averaging quaternions" (2007).

        Args:
            weights: the weights of the rotations; equal by default.

        Raises:
            TypeError: this is a single rotation.
            ValueError: the number of weights is not that of the rotations.
        """
        count = len(self)
        q, w = promote_dtypes_inexact(
            "Rotation.mean", self.quat, jnp.ones(count) if weights is None else jnp.asarray(weights)
        )
        if w.shape != (count,):
            raise ValueError(
                "Expected `weights` to have number of values equal to number of rotations, got "
                f"{w.shape[0] if w.ndim else 1} values and {count} rotations."
            )
        together = jnp.matmul((w[:, None] * q).T, q, precision=lax.Precision.HIGHEST)
        return type(self)(jnp.linalg.eigh(together)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation and not an array of rotations."""
        return self.quat.ndim == 1
