"""Modules that are imported at their first use, and the names under which users import functions."""

import builtins
import importlib
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .signals import deferring

F = TypeVar("F")

# module -> the distribution to install, if it has another name
_DISTRIBUTIONS = {"opt_einsum": "opt-einsum", "absl": "absl-py", "sklearn": "scikit-learn"}
# A signal that interrupts an import may leave Python's import lock held, or end the process.
_import_module = deferring(importlib.import_module)


class LazyModule:
    """Stands for a module, which is imported when an attribute is first read."""

    __slots__ = ("__dict__", "_lazy_name")

    def __init__(self, name: str):
        self._lazy_name = name

    def __getattr__(self, attribute: str):
        # tools that look for documentation read this of every object
        if attribute == "__wrapped__":
            raise AttributeError(attribute)
        module = _import(self._lazy_name)
        value = getattr(module, attribute)
        if not attribute.startswith("__"):
            self.__dict__[attribute] = value  # later reads do not come here
        return value

    def __dir__(self):
        return dir(_import(self._lazy_name))

    def __reduce__(self):
        return lazy_module, (self._lazy_name,)

    def __repr__(self):
        return f"<lazy module {self._lazy_name!r}>"


def _import(name: str):
    try:
        return _import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise  # the module exists, but something it imports does not
        top = error.name.partition(".")[0]
        missing = f"Module {name!r} is needed for this, but it is not installed"
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


_elsewhere = lazy_module("gradix._base.elsewhere")


class _Place:
    """The module and name of a value that an import would have bound."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def value(self, face: str) -> Any:
        module = _import_module(self.module)
        if self.module == face:  # a module within the package itself
            return _import_module(f"{face}.{self.name}")
        return getattr(module, self.name)


class _Source:
    """Stands for a module while names are imported from it."""

    __slots__ = ("_module",)

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> _Place:
        return _Place(self._module, name)


class on_demand:  # noqa: N801  (read as a statement)
    """`with on_demand(globals()):` makes the imports inside load when a name is first used.

    Readers and type checkers see ordinary imports, all of the form `from module import name`. The
    module gets a `__getattr__` that loads names, a `__dir__` of its public names, and `__all__` for
    `import *`.

    Args:
        face: the module's namespace.

    Example:
        >>> face = {"__name__": "face"}
        >>> with on_demand(face):
        ...     exec("from math import pi, tau as turn", face)
        >>> "pi" in face, face["__all__"]
        (False, ['pi', 'turn'])
    """

    __slots__ = ("_face", "_import")

    def __init__(self, face: dict[str, Any]):
        self._face = face

    def __enter__(self) -> None:
        self._import = builtins.__import__

        def place(name, globals=None, locals=None, fromlist=(), level=0):
            # an import of another thread, or in a module that is loaded meanwhile
            if globals is not self._face:
                return self._import(name, globals, locals, fromlist, level)
            if not fromlist or level:
                raise SyntaxError(f"write 'from {name} import ...' with the full name of the module under on_demand.")
            return _Source(name)

        builtins.__import__ = place

    def __exit__(self, *exc) -> None:
        builtins.__import__ = self._import
        face = self._face
        places = {name: value for name, value in face.items() if type(value) is _Place}
        for name in places:
            del face[name]
        face["__getattr__"], face["__dir__"] = _loader(face, places), lambda: _names(face, places)
        face["__all__"] = [name for name in _names(face, places) if not name.startswith("_")]


def _loader(face: dict[str, Any], places: dict[str, _Place]) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        place = places.get(name)
        if place is None:
            module = face["__name__"]
            what = f"module {module!r} has no attribute {name!r}"
            said = (
                ""
                if name.startswith("_")
                else _elsewhere.advice(module, name) or _elsewhere.close_to(name, _names(face, places))
            )
            # Python offers a name that is close where the error has the object; it should not do so twice
            raise AttributeError(what + said, name=name, **({} if said else {"obj": sys.modules.get(module)}))
        value = face[name] = place.value(face["__name__"])
        if isinstance(value, FunctionType):  # the doctests of classes are found by their module
            tell_face(value, face["__name__"], name)
        return value

    return load


def _names(face: dict[str, Any], places: dict[str, _Place]) -> list[str]:
    """The public names of a module, and its dunder names, without the modules it imports."""
    own = [
        name
        for name, value in face.items()
        if (name.startswith("__") or not name.startswith("_") and not isinstance(value, ModuleType))
    ]
    return sorted({*own, *[name for name in places if not name.startswith("_")]} - {"on_demand"})


def load_package(name: str) -> None:
    """Import a package and all its modules, except `__main__`."""
    pkgutil = lazy_module("pkgutil")
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def tell_face(value: Any, face: str, name: str, is_home: bool = True) -> None:
    """Set `__module__` of a function or class to the face from which users import it.

    If the face is not its home, this applies only to functions and classes of the face's own files.
    """
    if not isinstance(value, (FunctionType, type)) or not value.__name__ == name == value.__qualname__:
        return
    package, _, place = (value.__module__ or "").partition(".")
    is_inside = f"{package}.{place}".startswith(face + ".")
    if package == face.partition(".")[0] and (is_inside or is_home and place.startswith("_")):
        value.__module__ = face


def claim(face: str, *places: str) -> None:
    """Set `__module__` to the face for all it has from modules whose names begin with `places`."""
    namespace = vars(sys.modules[face])
    for name in list(namespace.get("__all__") or namespace):
        value: Any = namespace.get(name)  # others are loaded on demand
        is_told = isinstance(value, (FunctionType, type)) and value.__module__.startswith(places)
        if is_told and value.__name__ == name == value.__qualname__:
            value.__module__ = face


def alias(function: F, name: str, module: str | None = None) -> F:
    """A function that does the same under another name: as `__name__`, in `repr` and in tracebacks.

    Args:
        function: a function of Python, with or without decorators.
        name: the other name.
        module: the module in which it has this name; by default that of the function.

    Example:
        >>> def absolute(x):
        ...     return x if x >= 0 else -x
        >>> size = alias(absolute, "size")
        >>> size.__name__, size(-3), absolute.__name__
        ('size', 3, 'absolute')
    """
    f: Any = function
    other: Any = FunctionType(f.__code__, f.__globals__, name, f.__defaults__, f.__closure__)
    other.__kwdefaults__, other.__annotations__ = f.__kwdefaults__, f.__annotations__
    other.__dict__.update(f.__dict__)
    other.__doc__, other.__module__ = f.__doc__, module or f.__module__
    other.__qualname__ = name
    return other
