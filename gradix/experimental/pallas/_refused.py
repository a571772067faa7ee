"""Names of Pallas that need an accelerator's own compiler: importable, and refused when used."""

from __future__ import annotations


class Refused:
    """A name that is not implemented; calling it raises an error that says why and what to do."""

    def __init__(self, name: str, why: str):
        self._name, self._why = name, why

    def _error(self) -> NotImplementedError:
        return NotImplementedError(f"{self._name} is not implemented: {self._why}")

    def __call__(self, *args, **kwargs):
        raise self._error()

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return Refused(f"{self._name}.{name}", self._why)

    def __mro_entries__(self, bases):
        raise self._error()

    def __repr__(self) -> str:
        return f"<{self._name}: not implemented>"


def refused(module: str, names: str, why: str) -> dict[str, Refused]:
    """An object for each of the names, given with spaces between them."""
    return {name: Refused(f"{module}.{name}", why) for name in names.split()}
