"""`Slerp`: interpolation between rotations."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradix import numpy as jnp
from gradix._core.operators import Array
from gradix.numpy.promotion import inexact_operand
from gradix.scipy.spatial.transform.rotation import Rotation


class Slerp(NamedTuple):
    """Rotations as a function of time, which go from each to the next at constant angular velocity.

    K. Shoemake, "Animating rotation with quaternion curves" (1985).

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.spatial.transform import Rotation, Slerp
        >>> ends = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> Slerp.init([0, 1], ends)(0.5).magnitude().round(4)
        Array(0.7854, dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times, rotations: Rotation):
        """The interpolation of rotations at given times.

        Args:
            times: a vector of at least two times in increasing order.
            rotations: an array of as many rotations.

        Raises:
            TypeError: `rotations` is not a `Rotation`.
            ValueError: there are less than two rotations, or the numbers differ.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"`rotations` must be a `Rotation` instance, got {type(rotations).__name__}.")
        if rotations.single or len(rotations) <= 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = inexact_operand("Slerp", jnp.asarray(times))
        times = times.astype(times.dtype)
        if times.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {times.ndim} dimensions.")
        if times.shape[0] != len(rotations):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and {times.shape[0]} timestamps."
            )
        begins: Any = rotations[:-1]
        return cls(times, jnp.diff(times), begins, (begins.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times):
        """The rotations at other times; outside of the given times the motion is continued.

        Args:
            times: a number or a vector.

        Raises:
            ValueError: `times` has more than one axis.
        """
        times = inexact_operand("Slerp", jnp.asarray(times))
        if times.ndim > 1:
            raise ValueError(f"`times` must be at most 1-dimensional, got shape {times.shape}.")
        place = jnp.clip(jnp.searchsorted(self.times, times, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        part = (times - self.times[place]) / self.timedelta[place]
        return self.rotations[place] * Rotation.from_rotvec(self.rotvecs[place] * part[..., None])
