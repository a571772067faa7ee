"""`DisabledSafetyCheck`: what names a check of exported programs that is left out."""

from __future__ import annotations


class DisabledSafetyCheck:
    """A check that `export` or a call leaves out: made by its class methods.

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
        """Let the program be called on platforms it was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let the program call this function of the runtime, whatever becomes of it in other versions."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The function's name, for a check of a custom call."""
        return self._impl.partition(":")[2] if self._impl.startswith("custom_call:") else None

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__

    def __eq__(self, other) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)
