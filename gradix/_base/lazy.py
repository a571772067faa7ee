"""Modules that are imported at their first use, so that `import gradix` stays quick."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

# What to install for a missing module, where the distribution is not named after the module.
_DISTRIBUTIONS = {"opt_einsum": "opt-einsum", "absl": "absl-py", "sklearn": "scikit-learn"}


class LazyModule:
    """Stands for a module; the first attribute asked of it imports the module."""

    __slots__ = ("__dict__", "_lazy_name")

    def __init__(self, name: str):
        self._lazy_name = name

    def __getattr__(self, attribute: str):
        module = _import(self._lazy_name)
        value = getattr(module, attribute)
        if not attribute.startswith("__"):
            self.__dict__[attribute] = value  # later reads do not come here
        return value

    def __dir__(self):
        return dir(_import(self._lazy_name))

    def __repr__(self):
        return f"<lazy module {self._lazy_name!r}>"


def _import(name: str):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise  # the module is there, something it imports is not
        top = error.name.partition(".")[0]
        missing = f"Module {name!r} is needed for this and is not installed"
        raise ModuleNotFoundError(
            f"{missing} ({error}). Install it: pip install {_DISTRIBUTIONS.get(top, top)}", name=error.name
        ) from None


_modules: dict[str, LazyModule] = {}


def lazy_module(name: str) -> LazyModule:
    """A stand-in for module `name` that imports it when an attribute is first read.

    Raises:
        ModuleNotFoundError: at the first attribute, if the module is not installed.

    Example:
        >>> fractions = lazy_module("fractions")
        >>> fractions.Fraction(1, 2)
        Fraction(1, 2)
    """
    module = _modules.get(name)
    if module is None:
        module = _modules[name] = LazyModule(name)
    return module


def lazy_face(face: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module whose further names are loaded when they are first asked for.

    Args:
        face: the module's own name.
        places: for each name the module that it is, or `"module:name"` for a name of one.

    Example:
        >>> load, names = lazy_face("gradix", {"fractions": "fractions", "pi": "math:pi"})
        >>> load("pi")
        3.141592653589793
    """

    def load(name: str) -> Any:
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {face!r} has no attribute {name!r}")
        module, _, attribute = place.partition(":")
        value = importlib.import_module(module)
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[face], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[face]), *places})

    return load, names


def load_package(name: str) -> None:
    """Import a package and all modules in it but those that are run, `__main__`."""
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
