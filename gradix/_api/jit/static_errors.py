"""Errors for static arguments that cannot be compared."""

from __future__ import annotations

from gradix._base.errors import class_of


def not_hashable(name: str, place, value, why) -> ValueError:
    """The error for a static argument of the function `name` that has no fingerprint."""
    which = f"index {place}" if isinstance(place, int) else f"name {place!r}"
    return ValueError(
        f"Non-hashable static arguments are not supported: {name} got the static argument of "
        f"{which} of type {class_of(value)}: {value!r} ({why}). Arrays belong among the other "
        "arguments; pass a Python value whose content can be compared, such as a tuple or a dataclass."
    )


def incomparable(name: str, static, error: Exception) -> ValueError | None:
    """The error for static arguments that cannot be looked up; None if there are no static ones."""
    if not static:
        return None
    kinds = [kind for _, (kind, _) in static]
    return ValueError(
        f"static arguments should be comparable using __eq__; comparing those of {name}, of "
        f"types {kinds}, raised {type(error).__name__}: {error}"
    )
