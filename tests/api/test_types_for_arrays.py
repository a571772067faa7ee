"""A `ShapeDtypeStruct` stands for an array wherever a program is only looked at, as argument and as result."""

import pytest

import gradix
import gradix.numpy as jnp

VECTOR = gradix.ShapeDtypeStruct((3,), jnp.float32)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: VECTOR,
        lambda x: gradix.jit(lambda y: VECTOR)(x),
        lambda x: gradix.jit(gradix.jit(lambda y: {"a": VECTOR}))(x)["a"],
        lambda x: gradix.jit(lambda y, z: z * y)(x, VECTOR),
        lambda x: gradix.jit(lambda y: y + 1)(gradix.eval_shape(lambda: VECTOR)),
    ],
    ids=["result", "of jit", "of nested jit", "argument", "own result"],
)
def test_types_as_results(fun):
    got = gradix.eval_shape(fun, 1.0)
    assert (got.shape, got.dtype) == ((3,), jnp.float32)
    jaxpr = gradix.make_jaxpr(fun)(1.0)
    assert [a.str_short() for a in jaxpr.out_avals] == ["float32[3]"]


def test_types_as_arguments():
    assert gradix.eval_shape(gradix.jit(lambda x: x.sum()), VECTOR).shape == ()


def test_a_type_is_no_value():
    with pytest.raises(TypeError, match="argument x .*abstract array"):
        gradix.jit(lambda x: x)(VECTOR)
    with pytest.raises(TypeError, match="does not have a value"):
        gradix.jit(lambda x: VECTOR)(1.0)
    with pytest.raises(TypeError, match="does not have a value"):
        gradix.jit(lambda x: gradix.jit(lambda y: y + x)(VECTOR))(1.0)


def test_a_description_says_first_that_its_spec_is_too_long():
    with pytest.raises(ValueError, match="rank at least 3, but was applied to a value of rank 2"):
        gradix.ShapeDtypeStruct((4, 4), "float32", sharding=gradix.P(None, "x", None))
