"""Functions with several public names tell the one they were asked for by."""

import importlib
import pickle
import types

import pytest

import gradix
import gradix.numpy as jnp

ALIASES = {
    "gradix.numpy": [
        "abs",
        "acos",
        "acosh",
        "around",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "bitwise_invert",
        "bitwise_left_shift",
        "bitwise_not",
        "bitwise_right_shift",
    ],
    "gradix": ["remat", "jacobian", "host_id", "host_count", "host_ids"],
    "gradix.tree": sorted({*gradix.tree.__all__} - {"static"}),
}
MODULES = [
    "",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "lax",
    "tree",
    "tree_util",
    "random",
    "nn",
    "nn.initializers",
    "scipy.special",
    "scipy.linalg",
    "scipy.stats",
    "scipy.signal",
    "scipy.fft",
    "image",
    "ops",
    "debug",
    "errors",
    "dtypes",
]


@pytest.mark.parametrize("module, name", [(module, name) for module, names in ALIASES.items() for name in names])
def test_the_name_of_an_alias(module, name):
    f = getattr(importlib.import_module(module), name)
    assert (f.__name__, f.__qualname__, f.__module__) == (name, name, module)
    assert f.__doc__ and pickle.loads(pickle.dumps(f)) is f


def test_an_alias_does_the_same():
    for other, first in (("abs", "absolute"), ("acos", "arccos"), ("around", "round"), ("bitwise_not", "invert")):
        x = jnp.array([0, 1]) if first == "invert" else jnp.array([-0.5, 0.5])
        for _ in range(20):  # both are replayed from some call on
            assert (getattr(jnp, other)(x) == getattr(jnp, first)(x)).all()
    assert gradix.jacobian(lambda x: x**2)(3.0) == gradix.jacrev(lambda x: x**2)(3.0) == 6


@pytest.mark.parity
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_functions_have_the_names_they_have_on_jax(module):
    pytest.importorskip("jax")
    ours, theirs = (importlib.import_module(f"{top}.{module}".rstrip(".")) for top in ("gradix", "jax"))
    differing = []
    for name in dir(ours):
        a, b = getattr(ours, name), getattr(theirs, name, None)
        if (
            not name.startswith("_")
            and isinstance(a, types.FunctionType)
            and getattr(b, "__name__", a.__name__) != a.__name__
        ):
            differing.append((name, a.__name__, b.__name__))
    assert [d for d in differing if d[2] != "up_and_broadcast"] == []  # what a decorator of JAX leaves
