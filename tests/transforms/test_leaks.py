"""Traced values that outlive their trace, and state that traced functions change."""

import gc
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.errors import TracerArrayConversionError, TracerBoolConversionError, UnexpectedTracerError

ROOT = pathlib.Path(__file__).parents[2]
x3 = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="module", autouse=True)
def _all_objects_are_looked_through():
    """What holds a value is looked for among all objects, this module's own names too."""
    gc.unfreeze()
    yield
    gc.freeze()


RUNS = {
    "jit": lambda f: gradix.jit(f)(1.0),
    "grad": lambda f: gradix.grad(f)(1.0),
    "jvp": lambda f: gradix.jvp(f, (1.0,), (1.0,)),
    "vmap": lambda f: gradix.vmap(f)(x3),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, x3),
    "cond": lambda f: gradix.jit(lambda p: lax.cond(p, f, lambda x: x, 1.0))(True),
    "checkpoint": lambda f: gradix.grad(gradix.checkpoint(f))(1.0),
    "jit of grad": lambda f: gradix.jit(gradix.grad(f))(1.0),
    "make_jaxpr": lambda f: gradix.make_jaxpr(f)(1.0),
}
USES = {
    "add": lambda t: t + 1,
    "another function's argument": lambda t: gradix.jit(lambda y: y)(t),
    "another function's result": lambda t: gradix.jit(lambda y: t)(1.0),
    "a captured value": lambda t: gradix.grad(lambda y: y * t)(1.0),
    "an unmapped argument": lambda t: gradix.vmap(lambda x, y: x * y, (0, None))(x3, t),
}


def leak(run, raising=False):
    kept = []

    def f(x):
        kept.append(x)
        if raising:
            raise KeyError("stop")
        return x * x

    if raising:
        with pytest.raises(KeyError, match="stop"):
            run(f)
    else:
        run(f)
    return kept[0]


@pytest.mark.x32
@pytest.mark.parametrize("raising", [False, True], ids=["returning", "raising"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_transformation(run, raising):
    escaped = leak(run, raising)
    assert escaped.shape == () and escaped.dtype == np.float32
    with pytest.raises(UnexpectedTracerError, match="escaped the function.*used by"):
        escaped + 1
    assert jnp.sin(0.0) == 0 and gradix.jit(jnp.cos)(0.0) == 1  # the state of tracing is as before


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_use(use):
    with pytest.raises(UnexpectedTracerError):
        use(leak(RUNS["jit"]))


def test_other_uses_raise_as_for_any_traced_value():
    escaped = leak(RUNS["jit"])
    with pytest.raises(TracerBoolConversionError):
        bool(escaped)
    with pytest.raises(TracerArrayConversionError):
        np.asarray(escaped)
    with pytest.raises(TypeError, match="unhashable"):
        {escaped: 1}


@pytest.mark.x32
def test_the_message_says_where():
    kept = {}

    def remember(some_argument):
        kept["value"] = some_argument * 2
        return some_argument

    gradix.jit(remember)(1.0)
    with pytest.raises(UnexpectedTracerError) as caught:
        kept["value"] + 1
    message = str(caught.value)
    assert "float32[]" in message and "'add'" in message and "test_leaks.py" in message
    assert "remember" in message and "the argument some_argument" in message


def test_a_tracer_kept_from_an_outer_trace_is_fine_while_that_lasts():
    kept = []

    def outer(x):
        gradix.jit(lambda y: kept.append(x) or y)(1.0)
        return kept[0] * x

    assert gradix.grad(outer)(3.0) == 6


def test_state_changes_once_per_trace():
    log = []
    f = gradix.jit(lambda x: log.append(x.shape) or x)
    f(1.0)
    f(2.0)
    f(x3)
    assert log == [(), (3,)]
    gradix.grad(lambda x: log.append("eager") or x)(1.0)
    gradix.vmap(lambda x: log.append("eager") or x)(x3)
    assert log[2:] == ["eager", "eager"]


def test_results_that_are_traced_values_of_arrays_do_not_leak():
    out = gradix.jit(lambda x: (x, [x], {"a": x}))(x3)
    assert all(type(leaf).__name__ == "Array" for leaf in gradix.tree_util.tree_leaves(out))
    (y, aux), pull = gradix.vjp(lambda x: (x, x * 2), 1.0)
    assert aux + 1 == 3 and y + 1 == 2
    _, aux = gradix.grad(lambda x: (x, {"x": x * 2}), has_aux=True)(1.0)
    assert aux["x"] + 1 == 3


def test_methods_of_traced_arrays_named_like_parts_of_a_trace():
    m = np.arange(9, dtype=np.float32).reshape(3, 3)
    for f in (
        lambda x: x.trace(),
        lambda x: x.var(),
        lambda x: x.mean(),
        lambda x: x.val if hasattr(x, "nope") else x.sum(),
    ):
        np.testing.assert_allclose(gradix.jit(f)(m), f(jnp.asarray(m)), rtol=1e-6)
        np.testing.assert_allclose(gradix.vmap(f)(m[None]), [f(jnp.asarray(m))], rtol=1e-6)
        assert gradix.grad(f)(m).shape == (3, 3)


# -- where it was made, and where it was stored -----------------------------------------------------------------------


class Model:
    def __init__(self):
        self.state = {"last": [None]}


class Slotted:
    __slots__ = ("value",)


MODEL, KEPT, SLOTTED = Model(), {}, Slotted()


def message_of(use) -> str:
    with pytest.raises(UnexpectedTracerError) as caught:
        use()
    return str(caught.value)


def test_a_global():
    def f(x):
        KEPT["x", 1] = [jnp.sin(x)]
        return x

    gradix.jit(f)(1.0)
    message = message_of(lambda: KEPT["x", 1][0] + 1)
    KEPT.clear()
    assert f"kept in: the global variable `KEPT[('x', 1)][0]` of module {__name__}" in message
    assert "by 'sin'" in message and "test_leaks.py" in message.partition("made:")[2].partition("\n")[0]


@pytest.mark.parametrize("run", ["jit", "grad", "vmap", "scan"])
def test_an_attribute(run):
    def f(x):
        MODEL.state["last"][0] = x * 2
        return x

    RUNS[run](f)
    message = message_of(lambda: MODEL.state["last"][0] + 1)
    MODEL.state["last"][0] = None
    assert "kept in: `MODEL.state['last'][0]`, where `MODEL` is a global variable" in message
    assert "the function" in message.partition("traced:")[2].partition("\n")[0]


def test_a_slot_and_a_local_object():
    local = Model()

    def f(x):
        SLOTTED.value = local.value = x + 1
        return x

    gradix.jit(f)(1.0)
    message = message_of(lambda: jnp.sin(SLOTTED.value))
    assert "`SLOTTED.value`" in message and f"the attribute `value` of an object of class {__name__}.Model" in message
    SLOTTED.value = None


def test_a_closure():
    found = None

    def f(x):
        nonlocal found
        found = x * 3
        return x

    gradix.grad(f)(1.0)
    message = message_of(lambda: found + 1)
    assert "the variable `found` that test_a_closure.<locals>." in message
    assert "while differentiating the function f" in message


def test_conversions_of_what_leaked_say_so_too():
    def f(x):
        KEPT["y"] = x * 2
        return x

    gradix.jit(f)(1.0)
    with pytest.raises(TracerArrayConversionError, match="kept in: the global variable `KEPT"):
        np.asarray(KEPT["y"])
    KEPT.clear()


def test_checking_leaks_finds_what_nobody_used():
    """In a process with few objects, as each trace looks through all of them."""
    if not os.environ.get("GRADIX_TEST_ALONE"):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"GRADIX_TEST_ALONE": "1"}
        test = f"{__file__}::test_checking_leaks_finds_what_nobody_used"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", test],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        return

    def leaks(x):
        KEPT["z"] = x * 2
        return x

    with pytest.raises(UnexpectedTracerError, match="(?s)still alive.*KEPT"), gradix.checking_leaks():
        gradix.jit(leaks)(1.0)
    KEPT.clear()
    with pytest.raises(UnexpectedTracerError, match="still alive"), gradix.check_tracer_leaks(True):
        gradix.vmap(leaks)(x3)
    KEPT.clear()
    with gradix.checking_leaks():  # at the call that leaks, not at a later one, nor at the end
        for leaking in (gradix.jit(leaks), gradix.grad(leaks), gradix.jit(lambda x: gradix.checkpoint(leaks)(x))):
            with pytest.raises(UnexpectedTracerError, match="(?s)still alive.*KEPT"):
                leaking(1.0)
            KEPT.clear()
            gradix.jit(lambda x: x * 3)(1.0)
    with gradix.checking_leaks():  # and nothing where nothing leaked
        gradix.jit(lambda x: gradix.grad(lambda y: jnp.sin(y) ** 2)(x))(1.0)
        gradix.vmap(gradix.grad(gradix.custom_jvp(jnp.sin).fun))(x3)
        lax.scan(lambda c, x: (c + x, c), 0.0, x3)
