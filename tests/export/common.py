"""What the tests of exported programs share."""

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from gradix._core.dimensions.expression import SymbolicDim

SIZES = tuple(dict(a=a, b=b, c=c) for a, b, c in ((3, 5, 2), (1, 2, 3), (6, 4, 1), (2, 2, 2), (9, 3, 4)))


def function_of(text: str, count: int, names: dict | None = None):
    return eval(f"lambda {', '.join('xyz'[:count])}: {text}", names or {"jax": gradix, "jnp": jnp, "lax": lax})


def specs_of(shapes, jax=gradix, exporter=export):
    scope = exporter.SymbolicScope()
    return [jax.ShapeDtypeStruct(exporter.symbolic_shape(s, scope=scope), np.float32) for s in shapes]


def arrays_of(shapes, sizes: dict, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)
    scope = export.SymbolicScope()
    return [
        rng.normal(
            size=[d.evaluate(sizes) if type(d) is SymbolicDim else d for d in export.symbolic_shape(s, scope=scope)]
        ).astype(np.float32)
        for s in shapes
    ]


def numbers(x) -> np.ndarray:
    """An array of any dtype, keys included, as complex numbers."""
    if hasattr(x, "dtype") and "key" in str(x.dtype):
        x = gradix.random.key_data(x)
    return np.asarray(x).astype(np.complex128)


def assert_same(have, want, **tolerance) -> None:
    tolerance = {"rtol": 2e-3, "atol": 2e-4, **tolerance}
    have, want = gradix.tree.leaves(have), gradix.tree.leaves(want)
    assert len(have) == len(want)
    for h, w in zip(have, want):
        assert h.shape == w.shape and h.dtype == w.dtype
        np.testing.assert_allclose(numbers(h), numbers(w), **tolerance)
