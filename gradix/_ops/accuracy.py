"""How exactly elementary functions are computed: `AccuracyMode` and `Tolerance`."""

from __future__ import annotations

import enum


class AccuracyMode(enum.Enum):
    """Which implementation of an elementary function is requested; both are the exact one.

    Example:
        >>> from gradix import lax
        >>> lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST)
        Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error an elementary function may have: `atol` absolute, `rtol` relative, `ulps` in ulps.

    Raises:
        ValueError: one is negative, or none is set.

    Example:
        >>> Tolerance(rtol=1e-3)
        Tolerance(atol=0.0, rtol=0.001, ulps=0)
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerances must be non-negative; got atol={atol}, rtol={rtol}, ulps={ulps}.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set; leave accuracy= out for the default.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(name: str, accuracy) -> None:
    """Check the `accuracy` argument. It changes nothing: every function is as exact as it can be.

    Raises:
        NotImplementedError: it is neither an AccuracyMode nor a Tolerance.
    """
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise NotImplementedError(
            f"{name} got accuracy={accuracy!r}. Give lax.AccuracyMode.HIGHEST or DEFAULT, or "
            "lax.Tolerance(atol=..., rtol=..., ulps=...)."
        )
