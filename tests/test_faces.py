"""`dir` of a public module shows what its users call, and nothing of what it is made of."""

import importlib
import pickle
from types import FunctionType, ModuleType

import pytest

from docs.site.public import public_modules

FACES = {
    "numpy": {"fft", "linalg"},
    "numpy.linalg": set(),
    "numpy.fft": set(),
    "lax": {"linalg"},
    "random": set(),
    "nn": {"initializers"},
    "nn.initializers": set(),
    "ops": set(),
    "image": set(),
    "flatten_util": set(),
    "dlpack": set(),
    "scipy.special": set(),
    "scipy.linalg": set(),
    "scipy.signal": set(),
    "scipy.fft": set(),
    "scipy.ndimage": set(),
    "scipy.integrate": set(),
    "scipy.interpolate": set(),
    "scipy.optimize": set(),
    "scipy.cluster.vq": set(),
    "scipy.sparse.linalg": set(),
    "scipy.spatial.transform": set(),
}
HELPERS = {"annotations", "as_operand", "listing", "convert", "Any", "Callable", "Sequence", "np", "jnp"}


@pytest.mark.parametrize("name", FACES)
def test_dir_lists_public_names_and_only_public_modules(name):
    face = importlib.import_module("gradix." + name)
    names = [n for n in dir(face) if not n.startswith("__")]
    modules = {n for n in names if isinstance(getattr(face, n), ModuleType)}
    assert modules == FACES[name]
    assert not HELPERS & set(names) and not [n for n in names if n.startswith("_")]
    assert len(names) == len(set(names)) and {"__name__", "__doc__"} <= set(dir(face))


@pytest.mark.parametrize("name", [n for n in FACES if n not in ("lax", "numpy")])
def test_what_dir_leaves_out_is_a_helper_or_a_module(name):
    """Every function or class made in the face itself is listed."""
    face = importlib.import_module("gradix." + name)
    made = {
        n for n, v in vars(face).items() if not n.startswith("_") and getattr(v, "__module__", None) == face.__name__
    }
    assert made <= set(dir(face))


@pytest.mark.parametrize(
    "name",
    [
        "gradix",
        "gradix.numpy",
        "gradix.lax",
        "gradix.random",
        "gradix.nn",
        "gradix.tree_util",
        "gradix.numpy.linalg",
        "gradix.scipy.linalg",
        "gradix.scipy.special",
        "gradix.scipy.signal",
        "gradix.errors",
    ],
)
def test_functions_say_the_module_that_users_import_them_from(name):
    face = importlib.import_module(name)
    for n in dir(face):
        value = getattr(face, n)
        if isinstance(value, FunctionType) and value.__name__ == value.__qualname__ == n:
            assert not any(part.startswith("_") for part in value.__module__.split(".")), (n, value.__module__)
            assert getattr(importlib.import_module(value.__module__), n) is value
            assert pickle.loads(pickle.dumps(value)) is value


IMPORTED = {
    "annotations",
    "Any",
    "Callable",
    "Sequence",
    "NamedTuple",
    "Iterable",
    "Iterator",
    "Mapping",
    "TypeVar",
    "TYPE_CHECKING",
    "lru_cache",
    "partial",
    "dataclass",
    "np",
    "jnp",
    "lax",
    "functools",
    "itertools",
    "contextlib",
    "math",
    "os",
    "sys",
    "re",
    "operator",
    "warnings",
    "as_array",
    "bind",
    "ArrayImpl",
    "make_aval",
    "listing",
    "boundary",
    "lazy_module",
    "own_names",
    "as_operand",
    "inexact_operand",
}


@pytest.mark.parametrize("name", public_modules())
def test_no_public_module_shows_what_it_imports(name):
    module = importlib.import_module("gradix." + name)
    listed = {n for n in dir(module) if n.isidentifier() and not n.startswith("_")}
    assert not listed & IMPORTED
    for n in listed:  # modules beside it are no part of it, those inside are
        value = getattr(module, n)
        assert not isinstance(value, ModuleType) or value.__name__.startswith(("gradix.", "jaxlib.")), n
    assert set(getattr(module, "__all__", ())) <= listed
