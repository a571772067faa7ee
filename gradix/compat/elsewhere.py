"""Parts of JAX for hardware and services not served here, which libraries import whether they use them or not.

The imports succeed; using what they gave raises an error that says what it is for.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple


class Absent(NamedTuple):
    """A module of which nothing is there."""

    users: str
    what: str


MODULES = {
    "experimental.pallas": Absent(
        "keras, jax-md", "is for kernels of GPUs and TPUs written in Pallas"
    ),
    "experimental.colocated_python": Absent(
        "orbax-checkpoint", "runs Python on the hosts of remote devices"
    ),
    "extend.ifrt_programs": Absent("orbax-checkpoint", "builds programs for remote clusters"),
}


def find(name: str) -> Absent | None:
    """The row of the table for a module, or one below it; `name` is without `jax.`."""
    return next(
        (row for module, row in MODULES.items() if f"{name}.".startswith(f"{module}.")), None
    )


class AbsentModule(ModuleType):
    """Such a module: each of its names stands for something that cannot be used."""

    def __init__(self, name: str, row: Absent):
        super().__init__(name, f"`{name}`, which {row.what}.")
        self.__dict__.update(_row=row, __path__=[])

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.__dict__[name] = AbsentName(f"{self.__name__}.{name}", self._row)
        return value


class AbsentName:
    """What a name of such a module stands for."""

    def __init__(self, name: str, row: Absent):
        self._name, self._row = name, row

    def _refuse(self):
        return NotImplementedError(
            f"{self._name} is not part of gradix, which stands in for jax here: its module "
            f"{self._row.what}."
        )

    def __call__(self, *args, **kwargs):
        raise self._refuse()

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentName(f"{self._name}.{name}", self._row)

    def __mro_entries__(self, bases):
        raise self._refuse()

    def __repr__(self) -> str:
        return f"<{self._name}: not part of gradix>"
