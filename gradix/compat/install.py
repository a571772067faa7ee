"""`install_as_jax`: an import finder that gives `gradix.X` for `import jax.X`."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from gradix._api import callbacks
from gradix._base import advice, config
from gradix._base.lazy import lazy_module
from gradix._runtime.xla import jaxlib_version
from gradix.compat import internal_members
from gradix.compat.removed import why_removed

_elsewhere, _internals = (lazy_module("gradix.compat.elsewhere"), lazy_module("gradix.compat.internals"))

JAX_VERSION = "0.10.2"  # the JAX whose interface gradix offers
_JAX, _OURS = "jax", "gradix"
_SOURCE, _ADAPTERS = "jax._src", "gradix.compat.internals"
_INTERNAL = "is internal to JAX, and gradix does not have it. Public names are in jax, jax.extend and jax.interpreters"


class _JaxModule(ModuleType):
    """The module `jax`, which has gradix's names under JAX's name and version."""

    def __getattr__(self, name: str):
        if name == "_src":
            return importlib.import_module(_SOURCE)
        try:
            value = getattr(sys.modules[_OURS], name)
        except AttributeError:
            why = (
                f"jax.{name} {_INTERNAL}"
                if name[:1] == "_"
                else why_removed(name) or f"gradix, which replaces it here, has no {name!r}"
            )
            raise AttributeError(f"module 'jax' has no attribute {name!r}: {why}.") from None
        self.__dict__[name] = value
        return value

    def __dir__(self):
        return sorted({*self.__dict__, *dir(sys.modules[_OURS])})


class _Alias:
    """A loader that returns an existing module and does not change it."""

    def __init__(self, module: ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module) -> None:
        # The import under the other name has replaced the module's spec.
        module.__spec__ = self.spec


class _Distribution(importlib.metadata.Distribution):
    """The distribution `jax` for `importlib.metadata`, which is in no record of packages."""

    def read_text(self, filename) -> str | None:
        return f"Metadata-Version: 2.1\nName: {_JAX}\nVersion: {JAX_VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path):
        return Path(sys.modules[_OURS].__file__ or "").parent / path


class _Finder:
    """A finder that gives `gradix.X` for `jax.X`."""

    def find_distributions(self, context: importlib.metadata.DistributionFinder.Context):
        return [_Distribution()] if (context.name or "").lower() == _JAX else []

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        if not name.startswith(_JAX + "."):
            return None
        ours = _OURS + name[len(_JAX) :]
        if name == _SOURCE or name.startswith(_SOURCE + "."):
            return _internal(name)
        if _is_private(ours):
            raise ModuleNotFoundError(f"No module named {name!r}: it {_INTERNAL}.", name=name)
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as e:
            if e.name is None or not (ours + ".").startswith(e.name + "."):
                raise
            why = why_removed(name[len(_JAX) + 1 :]) or (f"gradix, which replaces jax here, has no {ours}")
            raise ModuleNotFoundError(f"No module named {name!r}: {why}.", name=name) from None
        return _found(name, module)


def _internal(name: str) -> ModuleSpec:
    """The spec of the adapter for an internal module of JAX."""
    area = name[len(_SOURCE) + 1 :]
    if area and not _internals.is_mapped(area):
        raise ModuleNotFoundError(f"No module named {name!r}. {_internals.explanation(area)}", name=name)
    if area in _internals.AREAS and _internals.AREAS[area].code:
        return _found(name, importlib.import_module(f"{_ADAPTERS}.{area}"))
    return _made(name, _internals.InternalModule(name, area))


def _made(name: str, module: ModuleType) -> ModuleSpec:
    """The spec of a module that is made here and has none."""
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    return _found(name, module)


def _found(name: str, module: ModuleType) -> ModuleSpec:
    """The spec by which importing `name` gives an existing module."""
    spec = ModuleSpec(name, _Alias(module), is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]
    spec.submodule_search_locations = getattr(module, "__path__", None)
    return spec


class _FinderOfAbsent:
    """A finder for modules that gradix lacks and that libraries import without using them.

    It is asked last, because `from jax.X import Y` tries `gradix.X.Y` first.
    """

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        absent = _elsewhere.find(name[len(_OURS) + 1 :]) if name.startswith(_OURS + ".") else None
        return _made(name, _elsewhere.AbsentModule(_JAX + name[len(_OURS) :], absent)) if absent else None


# Libraries expect these modules in sys.modules after `import jax` alone.
_LOADED_WITH_JAX = "dtypes", "errors", "tree", "tree_util", "typing"

# Programs for JAX count on XLA's selection of 0 where a mask is false, also before infinity.
_REWRITES = "all,-products_with_masks,-inner_products_with_masks"

# Private modules of gradix that stand for modules of the same name that tests of others import.
_ASKED_FOR = frozenset(["gradix.experimental.key_reuse._core"])

_finder, _finder_of_absent = _Finder(), _FinderOfAbsent()


def install_as_jax() -> None:
    """Make `import jax` and imports of its submodules give gradix, in this process.

    Raises:
        RuntimeError: JAX itself has been imported, so the program would mix the two.

    Example:
        >>> import gradix
        >>> gradix.install_as_jax()
        >>> import jax, jax.numpy as jnp
        >>> jax.grad(jnp.sin)(0.0)
        Array(1., dtype=float32, weak_type=True)
        >>> from gradix import compat
        >>> compat.uninstall()
    """
    found = sys.modules.get(_JAX)
    if isinstance(found, _JaxModule):
        return
    if found is not None:
        raise RuntimeError(
            "install_as_jax() must be called before jax is imported, but jax has been imported from "
            f"{getattr(found, '__file__', None)}. Call gradix.install_as_jax() first of all, or run the "
            "program with python -m gradix program.py."
        )
    ours = sys.modules[_OURS]
    module, version = _JaxModule(_JAX, ours.__doc__), ModuleType("jax.version")
    for m in (module, version):
        m.__dict__.update(__version__=JAX_VERSION, __version_info__=tuple(map(int, JAX_VERSION.split("."))))
    spec = ModuleSpec(_JAX, None, origin=ours.__file__, is_package=True)
    module.__dict__.update(version=version, __path__=list(ours.__path__), __file__=ours.__file__, __spec__=spec)
    lib = ModuleType("jax.lib", "The module `jax.lib`, which has the version of jaxlib.")
    lib.__dict__.update(__version__=jaxlib_version, __path__=[])
    lib.__spec__ = ModuleSpec("jax.lib", None, is_package=True)
    module.__dict__["lib"] = lib
    sys.modules.update({_JAX: module, "jax.version": version, "jax.lib": lib})
    advice.to_log(True)
    callbacks.told.as_runtime_errors = True
    internal_members.add()
    if config.state.gradix_rewrites == "all":
        config.config.preset("gradix_rewrites", _REWRITES)
    sys.meta_path.insert(0, _finder)
    sys.meta_path.append(_finder_of_absent)
    for name in _LOADED_WITH_JAX:
        importlib.import_module(f"{_OURS}.{name}")
    for name in [n for n in sys.modules if n.startswith(_OURS + ".") and not _is_private(n)]:
        sys.modules.setdefault(_JAX + name[len(_OURS) :], sys.modules[name])
    names = sys.modules["jax.numpy"]
    # Some libraries copy the namespace of jax.numpy, which is otherwise filled on demand.
    for attribute in dir(names):
        getattr(names, attribute)


def _is_private(name: str) -> bool:
    parts = name.split(".")
    if name in _ASKED_FOR:
        return False
    return parts[1] == "compat" or any(p.startswith("_") for p in parts)


def is_installed() -> bool:
    """Whether `import jax` gives gradix."""
    return isinstance(sys.modules.get(_JAX), _JaxModule)


def uninstall() -> None:
    """Undo `install_as_jax`; modules that have imported gradix's objects keep them."""
    if not is_installed():
        return
    advice.to_log(False)
    callbacks.told.as_runtime_errors = False
    internal_members.remove()
    if config.state.gradix_rewrites == _REWRITES:
        config.config.preset("gradix_rewrites", "all")
    sys.meta_path[:] = [f for f in sys.meta_path if f not in (_finder, _finder_of_absent)]
    for name in [n for n in sys.modules if n == _JAX or n.startswith(_JAX + ".")]:
        del sys.modules[name]
