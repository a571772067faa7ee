"""How tests say that a result is the one they want."""

import numpy as np

import gradix

# By the size of the real numbers in bytes: relative errors of some operations in a row.
TOLERANCES = {2: 2e-2, 4: 1e-5, 8: 1e-9}


def assert_same(got, want, rtol=None, atol=None):
    """Each leaf of `got` has the shape and the value of its leaf in `want`, up to a tolerance.

    Args:
        got: a pytree of arrays and other values, which have to be equal.
        want: a pytree with as many leaves. Where `got` is an array, nested lists of numbers are an array too, and one
            number is an array full of it.
        rtol: the relative tolerance of floating-point numbers; by default that of the less precise leaf. Other numbers
            and booleans have to be equal.
        atol: the absolute tolerance, by default a tenth of `rtol`.
    """
    if isinstance(want, (str, bytes)):
        assert got == want
    elif hasattr(got, "shape") or np.isscalar(got):
        _assert_same_array(np.asarray(got), np.asarray(want), rtol, atol)
    elif isinstance(got, (list, tuple)) and isinstance(want, (list, tuple)):
        for g, w in zip(got, want, strict=True):
            assert_same(g, w, rtol, atol)
    else:
        leaves = gradix.tree.leaves(got)
        assert not any(x is got for x in leaves), f"{got!r} is no array and no tree"
        assert_same(leaves, gradix.tree.leaves(want), rtol, atol)


def _assert_same_array(got, want, rtol, atol):
    assert want.ndim == 0 or got.shape == want.shape, (got.shape, want.shape)
    if got.dtype == want.dtype == gradix.dtypes.float0:
        return
    if all(x.dtype.kind in "biu" for x in (got, want)):
        np.testing.assert_array_equal(got, want)
        return
    got, want = (x.astype("f4") if x.dtype.kind == "V" else x for x in (got, want))  # floats that NumPy does not know
    if rtol is None:
        rtol = max(TOLERANCES[precision(x)] for x in (got, want) if x.dtype.kind in "fc")
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol / 10 if atol is None else atol)


def precision(x) -> int:
    """The bytes of a real number of an array's dtype."""
    return min(x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1), 8)
