"""Objects with `__jax_array__`, or with a shape and a dtype alone, have the shape, size and type that they say."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp


class Weight:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


@gradix.tree_util.register_pytree_node_class
class Node(Weight):
    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Typed:
    """It tells its type, and has no value."""

    shape, dtype, ndim, size = (2, 3), np.dtype("float16"), 2, 6

    def __jax_array__(self):
        raise ValueError("This has no value.")


@pytest.mark.parametrize("make", [Weight, Node, lambda value: Typed()])
def test_shape_size_and_type(make):
    x = make(jnp.ones((2, 3), jnp.float16))
    assert jnp.shape(x) == (2, 3) and jnp.ndim(x) == 2 and jnp.size(x) == 6 and jnp.size(x, 1) == 3
    assert jnp.result_type(x) == jnp.result_type(x, 1.0) == np.float16
    for like in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 2)):
        assert (like(x).shape, like(x).dtype) == ((2, 3), np.float16)


def test_the_same_while_tracing():
    def shapes(value):
        assert jnp.shape(Weight(value)) == (4,) and jnp.result_type(Weight(value)) == np.float32
        return jnp.zeros_like(Weight(value))

    assert gradix.jit(shapes)(jnp.ones(4, jnp.float32)).shape == (4,)


class Operator:
    """It answers to every name with a method that gives NotImplemented, and has rules for arrays on its left."""

    def __getattr__(self, name):
        return lambda *args: NotImplemented

    def __rmul__(self, other):
        return "mul", type(other)

    def __rmatmul__(self, other):
        return "matmul", type(other)

    def __rpow__(self, other):
        return "pow", type(other)


def test_the_right_operand_decides_if_it_gives_no_array():
    x = jnp.ones((2, 2))
    assert (x * Operator(), x @ Operator(), x ** Operator()) == (
        ("mul", type(x)),
        ("matmul", type(x)),
        ("pow", type(x)),
    )
    with pytest.raises(TypeError, match="unsupported operand"):
        x - Operator()
    assert (x == Operator()) is False and (Weight(x) - x).shape == (x @ Weight(x)).shape == (2, 2)
