"""What Python functions called from programs may return."""
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

ONE = gradix.ShapeDtypeStruct((), jnp.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("given, declared", [([1, 2], (ONE, ONE)), ((1, 2), [ONE, ONE]), ({"a": [1]}, {"a": (ONE,)})])
def test_lists_for_tuples(given, declared, wrap):
    values = gradix.tree.map(np.float32, given)
    got = wrap(lambda: gradix.pure_callback(lambda: values, declared))()
    assert gradix.tree.structure(got) == gradix.tree.structure(declared)
    assert gradix.tree.leaves(got) == gradix.tree.leaves(given)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("value", [np.int32(1), np.float16(1), np.bool_(True)])
def test_other_dtypes_than_declared(value, wrap):
    with pytest.raises(Exception, match=f"dtype {value.dtype} where its result_shape_dtypes say float32"):
        gradix.block_until_ready(wrap(lambda: gradix.pure_callback(lambda: value, ONE))())


@pytest.mark.x32
def test_doubles_are_rounded():
    assert gradix.pure_callback(lambda: np.float64(0.5), ONE) == 0.5


def test_other_structures():
    with pytest.raises(TypeError, match="returned the structure"):
        gradix.pure_callback(lambda: (np.float32(1),), (ONE, ONE))
