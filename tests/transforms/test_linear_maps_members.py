"""Members of what linearize, vjp and linear_transpose return, and errors of wrong cotangents."""

import pytest

import gradix
import gradix.numpy as jnp


def test_the_program_of_a_linearized_function():
    push = gradix.linearize(jnp.sin, jnp.float32(0.0))[1]
    jaxpr = push.func.args[0]
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul"]
    assert float(push.func(jnp.float32(2.0))[0]) == 2.0


def test_residuals_can_be_taken_away_and_given_again():
    pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)[1]
    pull.args_res = [None, None]
    with pytest.raises(ValueError, match="needs its argument 0"):
        pull(1.0)
    pull.args_res = [2.0, 5.0]
    assert [float(ct) for ct in pull(1.0)] == [5.0, 2.0]
    with pytest.raises(ValueError, match="each of the 2 inputs"):
        pull.args_res = [1.0]


@pytest.mark.parametrize(
    ("f", "ct", "text"),
    [
        (lambda x: [x, x], 1.0, "cotangent tree does not match"),
        (lambda x: jnp.stack([x, x]), 1.0, "cotangent type does not match"),
        (lambda x: x, 1j, "cotangent type does not match"),
    ],
)
def test_cotangents_that_do_not_fit(f, ct, text):
    with pytest.raises(TypeError, match=text):
        gradix.linear_transpose(f, 1.0)(ct)
    with pytest.raises(ValueError, match=text):
        gradix.vjp(f, 1.0)[1](ct)
    with pytest.raises(TypeError, match="cotangent tree does not match"):
        gradix.linear_transpose(lambda x: [x, x], jnp.int32(1))(jnp.int32(1))


@pytest.mark.parametrize(("shape", "text"), [((3,), "an array with more than one element"), ((0,), "an empty array")])
def test_traced_arrays_without_one_element_have_no_truth_value(shape, text):
    with pytest.raises(ValueError, match=f"truth value of {text} is ambiguous"):
        gradix.jit(bool)(jnp.ones(shape))
    with pytest.raises(gradix.errors.TracerBoolConversionError):
        gradix.jit(bool)(jnp.ones(1))


def test_efforts_of_a_compilation():
    options = {"exec_time_optimization_effort": 0.0, "optimization_level": 1}
    assert float(gradix.jit(lambda x: 3 * x, compiler_options=options)(2.0)) == 6.0


def test_names_of_functions_that_cannot_be_shown():
    class Unshown:
        def __call__(self):
            return 1

        def __repr__(self):
            raise ValueError("none")

    assert repr(gradix.jit(Unshown())) == "<jit of Unshown>"


def test_wrapped_arrays_as_shifts_and_matrices():
    class Wrapped:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return self.x

    assert jnp.roll(jnp.arange(3), Wrapped(jnp.int32(1))).tolist() == [2, 0, 1]
    assert jnp.tril_indices_from(Wrapped(jnp.ones((2, 2))))[0].tolist() == [0, 1, 1]
    assert jnp.triu_indices_from(Wrapped(jnp.ones((2, 2))))[1].tolist() == [0, 1, 1]
