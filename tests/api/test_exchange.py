"""Arrays from other libraries, and pytrees as vectors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import dlpack
from gradix.flatten_util import ravel_pytree


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32", "complex64"])
def test_from_dlpack(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    got = dlpack.from_dlpack(x)
    assert got.dtype == dtype and dlpack.is_supported_dtype(dtype)
    np.testing.assert_array_equal(got, x)
    x[0, 0] = 1  # the array is not changed with its source
    assert not np.asarray(got)[0, 0]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy asks for `dtype` itself")
def test_an_array_is_no_dtype():
    for x in (jnp.ones(2, "int8"), gradix.device_put(np.ones(2, np.int8), gradix.devices()[0])):
        with pytest.warns(DeprecationWarning, match=r"array to a dtype is deprecated: write x\.dtype"):
            assert np.dtype(x) == np.int8
        with pytest.warns(DeprecationWarning, match="array to a dtype"):
            assert np.zeros(2, x).dtype == np.int8


def test_what_cannot_be_exchanged():
    assert dlpack.is_supported_dtype(jnp.bfloat16) and not dlpack.is_supported_dtype("int4")
    with pytest.raises(TypeError, match="__dlpack_device__"):
        dlpack.from_dlpack(np.ones(2).__dlpack__())
    with pytest.raises(ValueError, match="copy=False"):
        dlpack.from_dlpack(np.ones(2, "f4"), copy=False)


TREE = {"b": jnp.arange(3, dtype="int32"), "a": (jnp.ones((2, 2), "float32"), 2.0)}


@pytest.mark.x32
def test_vector_and_back():
    flat, unravel = ravel_pytree(TREE)
    np.testing.assert_array_equal(flat, [1, 1, 1, 1, 2, 0, 1, 2])
    back = unravel(flat)
    assert gradix.tree.structure(back) == gradix.tree.structure(TREE)
    assert [x.dtype for x in gradix.tree.leaves(back)] == ["float32", "float32", "int32"]
    with pytest.raises(TypeError, match="float16, but expected dtype float32"):
        unravel(flat.astype("float16"))
    with pytest.raises(ValueError, match="8 elements"):
        unravel(flat[:3])


def test_unravel_is_known_again_by_jit():
    traced = []

    @gradix.jit
    def make(tree):
        return ravel_pytree(tree)[0]

    def run(vector, unravel):
        traced.append(1)
        return unravel(vector)

    jitted = gradix.jit(run, static_argnums=1)
    for scale in (1.0, 2.0):
        flat, unravel = ravel_pytree([scale * jnp.ones((2, 1))])
        np.testing.assert_array_equal(jitted(flat, unravel)[0], scale * np.ones((2, 1)))
        np.testing.assert_array_equal(make([scale * jnp.ones((2, 1))]), flat)
    assert len(traced) == 1


def test_gradient_through_the_vector():
    got = gradix.grad(lambda w: (ravel_pytree({"w": w, "n": 3.0})[0] ** 2).sum())(jnp.arange(3.0))
    np.testing.assert_array_equal(got, [0, 2, 4])
