"""Errors for what users of other libraries write: they say what to write here."""

import contextlib
import math
import traceback

import numpy as np
import pytest
import scipy.special

import gradix
import gradix.numpy as jnp
from gradix._base import elsewhere, tracebacks, wrong_calls


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


def test_close_names_are_suggested_once():
    """Python suggests one too where the error has the object."""
    for name, obj in (("argmacs", None), ("xxxxxxxx", jnp)):
        with pytest.raises(AttributeError) as e:
            getattr(jnp, name)
        assert e.value.name == name and e.value.obj is obj
        shown = "".join(traceback.format_exception(e.value))
        assert shown.count("Did you mean") == (obj is None)


def larger(x, y):
    return max(x, y)


def by_numpy(x):
    return np.linalg.norm(x)


def by_scipy(x):
    return scipy.special.logsumexp(x)


def drawn(n):
    return np.random.rand(n)


def asserted(x):
    assert x > 0
    return x


def taken(x):
    return (x * 2).item()


@pytest.mark.promotes
@pytest.mark.filterwarnings("ignore:Implicit conversion of an array to a dtype")  # SciPy asks for one
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (larger, r"instead: jnp\.maximum\(a, b\)"),
        (by_numpy, r"where: .*by_numpy.*instead: jnp\.linalg\.norm in place of np\.linalg\.norm"),
        (by_scipy, r"where: .*by_scipy.*instead: gradix\.scipy\.special\.logsumexp in place of"),
        (drawn, r"instead: the functions of gradix\.random, which take a key, in place of np\.random\.rand"),
        (asserted, r"instead: gradix\.experimental\.checkify\.check"),
        (taken, r"instead: leave out \.item\(\)"),
    ],
)
def test_what_to_write_for_the_line(function, words):
    args = [3] * function.__code__.co_argcount
    with pytest.raises(gradix.errors.JAXTypeError, match=f"(?s){words}") as e:
        gradix.jit(function)(*args)
    shown = [f.filename for f in traceback.extract_tb(e.value.__traceback__)]
    assert not [name for name in shown if "scipy" in name or "numpy" in name]


def keyword_of_torch(x):
    return jnp.sum(x, dim=1)


def method_of_torch(x):
    return (x * 2).sum(dim=1)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda x: keyword_of_torch(x), "Write axis in place of dim: sum takes a, axis, "),
        (lambda x: gradix.jit(keyword_of_torch)(x), "Write axis in place of dim: sum takes a"),
        (lambda x: gradix.vmap(method_of_torch)(x), "Write axis in place of dim: sum takes axis, "),
        (lambda x: gradix.nn.softmax(x, dim=1), "Write axis in place of dim: softmax takes x, axis, where."),
        (lambda x: gradix.random.normal(gradix.random.key(0), size=(3,)), "Write shape in place of size: normal takes"),
        (lambda x: jnp.ones(3, 4, "float32"), "Write the sizes in brackets, as one shape: ones((2, 3))."),
        (lambda x: gradix.random.normal(gradix.random.key(0), 1, 2, 3, 4, 5), "as one shape: normal(key, (2, 3))."),
        (lambda x: gradix.grad(jnp.sum, argnames="x"), "Did you mean 'argnums'?"),
        (lambda x: gradix.lax.scan(lambda c, y: (c, y), 0.0, x, lenght=2), "Did you mean 'length'?"),
    ],
)
def test_arguments_that_a_function_does_not_take(use, said, capsys):
    x = jnp.ones((2, 3))
    with pytest.raises(TypeError) as e:
        use(x)
    with contextlib.suppress(TypeError):
        tracebacks._show(TypeError, e.value, e.value.__traceback__)
        tracebacks._show(TypeError, e.value, e.value.__traceback__)
    notes = [note for note in getattr(e.value, "__notes__", ()) if note != tracebacks.NOTE]
    if said in str(e.value):  # newer Pythons say themselves which name is close
        assert not notes
    else:
        assert len(notes) == 1 and said in notes[0]
    assert said in capsys.readouterr().err


def test_no_note_for_functions_of_others():
    def sum(x):
        return x

    for f in (lambda: sum(jnp.ones(3), dim=1), lambda: math.sin(1.0, 2.0), lambda: np.sum(np.ones(3), dim=1)):
        with pytest.raises(TypeError) as e:
            f()
        wrong_calls.explain(e.value)
        assert not getattr(e.value, "__notes__", ())


@pytest.mark.parametrize("face", sorted(elsewhere._NAMES))
def test_no_advice_for_a_name_that_is_there(face):
    module = __import__("importlib").import_module(face)
    assert not [name for name in elsewhere._NAMES[face] if hasattr(module, name)]
