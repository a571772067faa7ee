"""What users of other libraries write, what they misspell, and what they pass: the errors say what to write."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._core.operators import _FOREIGN


@pytest.mark.parametrize(
    "name, words",
    [
        ("numpy", r"np.asarray\(x\)"),
        ("cuda", "device_put"),
        ("backward", r"gradix.grad\(f\)\(x\)"),
        ("detach", "stop_gradient"),
        ("to", r"device_put\(x, device\)"),
        ("fill_", r"x.at\[index\].set"),
        ("softmax", "nn.softmax"),
    ],
)
def test_members_of_other_libraries(name, words):
    x = jnp.ones(3)
    with pytest.raises(AttributeError, match=f"arrays have no attribute '{name}': .*{words}") as e:
        getattr(x, name)()
    # without the array, for whose other names Python would offer one that is close
    assert e.value.name == name and e.value.obj is None
    with pytest.raises(AttributeError, match=words):
        gradix.jit(lambda x: getattr(x, name)())(x)


def test_they_are_no_members():
    x = jnp.ones(3)
    assert not any(hasattr(x, name) or hasattr(gradix.Array, name) for name in _FOREIGN)
    assert not {*dir(x)}.intersection(_FOREIGN)
    assert getattr(x, "numpy", None) is None


def test_misspelt_names_and_options():
    for f, words in (
        (lambda: gradix.vamp, "Did you mean 'vmap'"),
        (lambda: jnp.matmull, "Did you mean 'matmul'"),
        (lambda: gradix.config.jax_debug_nan, "Did you mean 'jax_debug_nans'"),
        (lambda: setattr(gradix.config, "jax_debug_nan", True), "Did you mean 'jax_debug_nans'"),
        (lambda: gradix.numpy.cat, "write concatenate"),
        (lambda: gradix.nn.Relu, "Did you mean 'relu'"),
        (lambda: gradix.nn.Linear, "flax"),
        (lambda: gradix.random.randn, "normal"),
        (lambda: jnp.scan, "write gradix.lax.scan"),
        (lambda: jnp.relu, "write gradix.nn.relu"),
        (lambda: gradix.array, "write gradix.numpy.array"),
        (lambda: gradix.lax.normal, "write gradix.random.normal"),
    ):
        with pytest.raises(AttributeError, match=words):
            f()


def test_a_shape_of_traced_sizes_names_the_argument_and_the_line():
    @gradix.jit
    def f(n):
        return jnp.zeros((n, 2))

    with pytest.raises(
        TypeError, match=r"(?s)shape=\(.*, 2\).*where: .*test_names_of_others.py.*function f.*argument n"
    ):
        f(3)
    with pytest.raises(TypeError, match=r"(?s)differentiating the function"):
        gradix.grad(lambda n: jnp.ones(n).sum())(3.0)


class Model:
    def __init__(self):
        self.w = 2.0

    @gradix.jit
    def call(self, x):
        return self.w * x


def test_objects_of_own_classes():
    for f in (lambda: Model().call(1.0), lambda: gradix.grad(lambda m: m.w)(Model())):
        with pytest.raises(TypeError, match="If a Model holds arrays, make its class a pytree: .*register_dataclass"):
            f()
    with pytest.raises(TypeError, match="argument self of call.*reads or branches on, name it in static_argnums"):
        Model().call(1.0)


def test_trees_that_differ_are_named():
    with pytest.raises(ValueError, match=r"only in tree: 'b', not in rest\[0\]"):
        gradix.tree.map(lambda a, b: a, {"a": 1, "b": 2}, {"a": 1})
    with pytest.raises(ValueError, match=r"only in tree: 'b', not in rest\[1\]; only in rest\[1\]: 'c', not in tree"):
        gradix.tree.map(lambda a, b, c: a, {"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "c": 2})


def test_the_place_is_the_users_where_numpy_asks():
    with pytest.raises(gradix.errors.TracerArrayConversionError, match=r"where: .*test_names_of_others.py"):
        gradix.jit(lambda x: np.linalg.norm(x))(jnp.ones(3))
