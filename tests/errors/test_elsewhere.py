"""Errors for what users of other libraries write: they say what to write here."""

import math

import pytest

import gradix
import gradix.numpy as jnp
from gradix._base import elsewhere


def of_math(x):
    return math.atan2(x, 2.0)


def in_a_text(x):
    return f"{float(x)}"


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda: jnp.cat, AttributeError, "module 'gradix.numpy' has no attribute 'cat': write concatenate"),
        (lambda: gradix.no_grad, AttributeError, "no attribute 'no_grad': derivatives are taken only where"),
        (lambda: jnp.no_such_name, AttributeError, "module 'gradix.numpy' has no attribute 'no_such_name'$"),
        (
            lambda: gradix.config.update("jax_enable_x46", True),
            AttributeError,
            "jax_enable_x46. Did you mean 'jax_enable_x64'",
        ),
        (lambda: gradix.config.update("zzz", True), AttributeError, "Unrecognized config option: zzz$"),
        (
            lambda: jnp.concatenate(jnp.ones(3), jnp.ones(3)),
            TypeError,
            r"takes one list of arrays.*concatenate\(\[a, b\]\)",
        ),
        (
            lambda: gradix.grad(of_math)(1.0),
            gradix.errors.ConcretizationTypeError,
            r"instead: jnp\.arctan2, which takes arrays; math\.atan2 takes",
        ),
        (lambda: gradix.jit(in_a_text)(1.0), gradix.errors.ConcretizationTypeError, r"instead: gradix\.debug\.print"),
        (
            lambda: gradix.jit(lambda x: float(x))(1.0),
            gradix.errors.ConcretizationTypeError,
            r"instead: pass the argument",
        ),
    ],
)
def test_what_to_write_is_told(use, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        use()


def test_python_can_suggest_close_names():
    with pytest.raises(AttributeError) as e:
        jnp.argmacs  # noqa: B018
    assert e.value.name == "argmacs" and e.value.obj is jnp


@pytest.mark.parametrize("face", sorted(elsewhere._NAMES))
def test_no_advice_for_a_name_that_is_there(face):
    module = __import__("importlib").import_module(face)
    assert not [name for name in elsewhere._NAMES[face] if hasattr(module, name)]
