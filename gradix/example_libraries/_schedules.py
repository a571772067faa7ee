"""Step sizes as functions of the step number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradix import numpy as jnp
from gradix._base.errors import class_of

if TYPE_CHECKING:
    from gradix._core.operators import Array

Schedule = Callable[[Any], Any]


def constant(step_size: float | Callable[[Any], Any]) -> Schedule:
    """A schedule with the same step size for every step.

    Example:
        >>> constant(0.1)(5)
        0.1
    """
    return lambda i: step_size


def exponential_decay(
    step_size: float | Array, decay_steps: float | Array, decay_rate: float | Array
) -> Callable[[Any], Any]:
    """The schedule `step_size * decay_rate ** (i / decay_steps)` of the step i.

    Args:
        step_size: the first step size.
        decay_steps: the number of steps after which it is multiplied by `decay_rate`.
        decay_rate: the factor.

    Example:
        >>> float(exponential_decay(1.0, 10, 0.5)(10))
        0.5
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float | Array, decay_steps: float | Array, decay_rate: float | Array, staircase: bool = False
) -> Callable[[Any], Any]:
    """The schedule `step_size / (1 + decay_rate * i / decay_steps)` of the step i.

    Args:
        step_size: the first step size.
        decay_steps, decay_rate: how fast it decays.
        staircase: whether to round `i / decay_steps` down.

    Example:
        >>> float(inverse_time_decay(1.0, 10, 1.0)(10))
        0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: float | Array, decay_steps: float | Array, final_step_size: float | Array, power: float | Array = 1.0
) -> Callable[[Any], Any]:
    """A schedule from `step_size` to `final_step_size`, as `(1 - i / decay_steps) ** power` falls.

    Args:
        step_size: the first step size.
        decay_steps: the number of steps until the last step size.
        final_step_size: the last step size, which is kept from then on.
        power: the exponent.

    Example:
        >>> float(polynomial_decay(1.0, 10, 0.0)(5))
        0.5
    """

    def schedule(step_num):
        left = 1 - jnp.minimum(step_num, decay_steps) / decay_steps
        return (step_size - final_step_size) * left**power + final_step_size

    return schedule


def piecewise_constant(boundaries: Sequence[float] | Array, values: Sequence[float] | Array) -> Callable[[Any], Any]:
    """A schedule with the step size `values[k]` after `k` of the boundaries.

    Args:
        boundaries: step numbers in increasing order, of shape (n,).
        values: step sizes, of shape (n + 1,).

    Raises:
        ValueError: the shapes are others.

    Example:
        >>> float(piecewise_constant([5, 10], [1.0, 0.5, 0.1])(7))
        0.5
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError(
            f"boundaries and values must be sequences of numbers, got shapes {boundaries.shape} and {values.shape}."
        )
    if not boundaries.shape[0] == values.shape[0] - 1:
        raise ValueError(
            "boundaries length must be one shorter than values length, "
            f"got {boundaries.shape[0]} and {values.shape[0]}."
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """The schedule itself, or a constant schedule of a number.

    Raises:
        TypeError: the argument is neither a function nor a number.

    Example:
        >>> make_schedule(0.1)(3)
        0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size must be a number or a function of the step, got a {class_of(scalar_or_schedule)} of "
        f"shape {jnp.shape(scalar_or_schedule)}."
    )
