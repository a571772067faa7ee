"""Logs or refuses transfers between host and devices, as the options `transfer_guard...` say."""

from __future__ import annotations

from gradix._base import config, errors, events

_options = config.state
_LOGGED = {False: ("log", "log_explicit"), True: ("log_explicit",)}
_REFUSED = {False: ("disallow", "disallow_explicit"), True: ("disallow_explicit",)}


def check(direction: str, what, is_explicit: bool = False) -> None:
    """Log or refuse a transfer, if the options say so.

    Args:
        direction: "host_to_device", "device_to_device" or "device_to_host".
        what: a text that describes the array and its destination.
        is_explicit: whether the user requested the transfer, by `device_put` or a similar function.

    Raises:
        JaxRuntimeError: the transfer is disallowed.
    """
    level = getattr(_options, "jax_transfer_guard_" + direction)
    name = direction.replace("_", "-")
    if level in _REFUSED[is_explicit]:
        way_out = "" if is_explicit else "Write it out with device_put before, where that is allowed, or "
        raise errors.JaxRuntimeError(
            f"INVALID_ARGUMENT: Disallowed {name} transfer: {what}. The option "
            f"jax_transfer_guard_{direction} is {level!r}. {way_out}"
            f"{'a' if way_out else 'A'}llow it with gradix.transfer_guard_{direction}('allow')."
        )
    if level in _LOGGED[is_explicit]:
        events.warn("transfer", "%s transfer: %s", name, what)


class _FromHost:
    """Marks an array that was converted implicitly from NumPy while transfers are guarded."""

    __slots__ = ()


FROM_HOST = _FromHost()
