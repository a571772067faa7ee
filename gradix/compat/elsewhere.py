"""Modules of JAX that gradix lacks, and that libraries import even if they do not use them.

The imports succeed. Using a name of such a module raises an error that says what the module is for.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple


class Absent(NamedTuple):
    """A module that gradix lacks: the libraries that import it, and what it is for."""

    users: str
    what: str


MODULES = {
    "experimental.pallas.ops": Absent("keras, flax", "has further kernels for TPUs and GPUs, such as sparse attention"),
    "experimental.fused": Absent(
        "nobody known", "fuses a function into one kernel of an accelerator, and has no rule for CPUs"
    ),
    **dict.fromkeys(
        [
            f"experimental.colocated_python.{part}"
            for part in ("func", "func_backend", "obj", "obj_backend", "serialization")
        ],
        Absent("orbax-checkpoint", "runs Python on the hosts of remote devices"),
    ),
    "extend.ifrt_programs": Absent("orbax-checkpoint", "builds programs for remote clusters"),
}


def find(name: str) -> Absent | None:
    """The row of the table for a module or a name below it, given without `jax.`; None if none."""
    return next((row for module, row in MODULES.items() if f"{name}.".startswith(f"{module}.")), None)


class AbsentModule(ModuleType):
    """A module that gradix lacks; each of its names is an `AbsentName`."""

    def __init__(self, name: str, row: Absent):
        super().__init__(name, f"`{name}`, which {row.what}.")
        self.__dict__.update(_row=row, __path__=[])

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.__dict__[name] = AbsentName(f"{self.__name__}.{name}", self._row)
        return value


class AbsentName:
    """An object of a module that gradix lacks; calling it raises an error."""

    def __init__(self, name: str, row: Absent):
        self._name, self._row = name, row

    def _refuse(self):
        return NotImplementedError(
            f"{self._name} is not part of gradix, which replaces jax here: its module {self._row.what}."
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
