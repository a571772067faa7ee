"""`DisabledSafetyCheck`, the name of a check of exported programs that is disabled."""

from __future__ import annotations


class DisabledSafetyCheck:
    """A check that `export` or a call omits, made by one of the class methods.

    Example:
        >>> from gradix import export
        >>> export.DisabledSafetyCheck.custom_call("my_kernel").is_custom_call()
        'my_kernel'
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow calls of the program on platforms for which it was not exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow the program to call this runtime function, which other versions may not have."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the function for a check of a custom call; None for other checks."""
        return self._impl.partition(":")[2] if self._impl.startswith("custom_call:") else None

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__

    def __eq__(self, other) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)
