"""What `dir` shows of a face: the names users call, not the modules and helpers it is made of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType


def listing(face: str, *modules: str) -> Callable[[], list[str]]:
    """A `__dir__` for the module named `face`: its `__all__`, or else its public names, of modules only those named."""

    def names() -> list[str]:
        namespace = vars(sys.modules[face])
        public = namespace.get("__all__") or [
            name
            for name, value in namespace.items()
            if not name.startswith("_") and (name in modules or not isinstance(value, ModuleType))
        ]
        return sorted(
            {
                *public,
                *modules,
                *(name for name in namespace if name.startswith("__") and name != "__dir__"),
            }
        )

    return names
