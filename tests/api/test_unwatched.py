"""`debug.values()` runs compiled what nobody can see, and all else in Python."""

import collections
import functools
import math
import sys
import types

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api import unwatched
from gradix._api.silent_code import silence_of
from gradix._core import seams

X = jnp.array([1.0, 2.0], "float32")
FACTOR = 2.0
TOLD: list = []
Pair = collections.namedtuple("Pair", ("a", "b"))


Given = collections.namedtuple("Given", ("a", "b"), defaults=([],))
operations = types.ModuleType("operations")
exec("def doubled(x):\n    return 2 * x\n\ndef told(x):\n    print(x)\n    return x", vars(operations))


class WithCode(Pair):
    """A named tuple that has code."""

    @property
    def seen(self):
        TOLD.append(1)
        return self.a


def helper(x, by=3.0):
    return x * by


def telling(x):
    print(x)
    return x


def on_globals(x):
    global FACTOR
    FACTOR = 3.0
    return x


def with_item(x):
    own = {}
    own["x"] = x
    return own


@gradix.jit
def inner(x):
    return helper(x) + 1


def caught(x):
    try:
        return float(x)
    except TypeError:
        return x


class Layer:
    def __call__(self, x):
        return x


def adds_in_place(x):
    own = cells
    own += 1
    return x


layer, listed, cells, held = Layer(), [X], np.ones(2, "float32"), {"w": (X, 1.0)}
large, tellers = np.zeros(10**5), [telling]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sin(x) ** 2 + x[0] * FACTOR + np.float32(2) + math.pi + math.sqrt(2.0),
        lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: helper(-x), x),
        lambda x: [v + 1 for v in (x, x)] and sum(v * v for v in x),
        lambda x: {f"w{i}": x * i for i in range(3)},
        lambda x: inner(x) if x is not None and x.ndim > 0 else x.T,
        lambda x: gradix.vmap(gradix.grad(jnp.sin))(x) + jnp.linalg.norm(x),
        gradix.vmap(gradix.value_and_grad(lambda x: x * X[0])),
        gradix.hessian(lambda x: (x**2).sum()),
        gradix.checkpoint(helper),
        functools.partial(helper, by=4.0),
        gradix.jit(with_item),
        lambda x: operations.doubled(x),
        lambda x: listed[0] + held["w"][0] * x + cells,
    ],
    ids=["arithmetic", "branch", "loops", "names", "jitted", "transformed", "vmap", "hessian", "checkpoint", "partial",
         "items of its own", "another module", "containers"],
)  # fmt: skip
def test_code_that_computes_is_silent(function):
    found = silence_of(function)
    assert found is not None and found.holds()


@pytest.mark.parametrize(
    "function",
    [
        telling,
        lambda x: telling(x),
        lambda x: gradix.grad(telling)(x),
        gradix.vmap(telling),
        gradix.jit(telling),
        lambda x, f=print: x,
        functools.partial(helper, by=print),
        on_globals,
        lambda x: TOLD.append(x) or x,
        lambda x: listed.append(x),
        lambda x: held.update(x=x),
        adds_in_place,
        lambda x: x * large,
        lambda x: tellers[0](x),
        lambda x: layer(x),
        lambda x: operations.told(x),
        lambda x: np.sin(x),
        lambda x: gradix.profiler.start_trace(x),
        lambda x: Given(x),
        Layer(),
        lambda x: x.device,
        lambda x: x.__class__,
        lambda x: sys.stdout.write("x"),
        lambda x: gradix.debug.print("{}", x),
        lambda x: gradix.pure_callback(abs, x, x),
        lambda x: jnp.save("file", x),
        lambda x: breakpoint() or x,
        lambda x: isinstance(x, float),
        lambda x: x is X,
        lambda x: "{}".format(x),  # noqa: UP032
        lambda x: unknown_name(x),  # noqa: F821
        lambda x: __import__("os"),
        caught,
        gradix.custom_jvp(helper),
        abs,
    ],
)
def test_code_that_may_do_more_is_not_silent(function):
    if function is abs:
        assert silence_of(abs) is not None  # a function of the interpreter that computes
    else:
        assert silence_of(function) is None


def compiled(function, *args, calls=unwatched.CALLS + 2):
    """The results of calls in `debug.values()`, and whether the function runs compiled in the end."""
    with gradix.debug.values():
        results = [function(*args) for _ in range(calls)]
    return results, function.unwatched.run is not None


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (gradix.grad(lambda x: (jnp.tanh(x) ** 2).sum()), (X,)),
        (lambda p: Pair(p.a + p.b, p.a * 2), (Pair(X, X),)),
        (lambda d, n=2: {k: v * n for k, v in d.items()}, ({"w": X},)),
        (lambda x: lax.fori_loop(0, 20, lambda i, c: jnp.sin(c) + i, x), (X,)),
    ],
)
def test_what_looks_at_nothing_is_compiled_after_some_calls(function, args):
    jitted = gradix.jit(function)
    results, is_compiled = compiled(jitted, *args)
    assert is_compiled
    for a, b in zip(gradix.tree.leaves(results[-1]), gradix.tree.leaves(results[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert type(results[-1]) is type(results[0])


def test_static_arguments_are_kept():
    f = gradix.jit(lambda x, n: x * n if n > 1 else x, static_argnums=1)
    assert compiled(f, X, 3)[1]
    with gradix.debug.values():
        np.testing.assert_array_equal(f(X, 1), X)
        np.testing.assert_array_equal(f(X, 4), 4 * X)


def by_numbers(x):
    return x if x.sum() > 0 else -x


def named(x):
    return {f"{x}": x}


def changes(d):
    d["more"] = d["x"] * 2
    return d["more"]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (by_numbers, (X,)),
        (named, (X,)),
        (changes, ({"x": X},)),
        (lambda p: p.a, (WithCode(X, X),)),
        (lambda x: x * 2, (2.0,)),
        (lambda x: x * 2, (np.ones(2),)),
    ],
    ids=["decides", "prints", "changes its argument", "a class with code", "a number", "an array of NumPy"],
)
def test_what_can_be_seen_runs_in_python(function, args):
    results, is_compiled = compiled(gradix.jit(function), *args, calls=2 * unwatched.CALLS)
    assert not is_compiled
    with gradix.debug.values():
        assert str(results[-1]) == str(function(*args))
    assert type(results[-1]) is type(results[0])


def test_every_step_that_is_looked_at_is_seen(monkeypatch):
    monkeypatch.setattr(unwatched, "STEPS", 40)
    told = []

    def body(c, _):
        told.append(f"{c:.0f}")
        return c + 1, c

    jitted = gradix.jit(lambda x: lax.scan(body, x, None, length=50)[0])
    with gradix.debug.values():
        for _ in range(3):
            jitted(jnp.float32(0))
    assert told == 3 * [str(i) for i in range(50)]


@pytest.mark.parametrize("set_hook", [sys.settrace, sys.setprofile])
def test_python_runs_while_a_debugger_or_profiler_watches(set_hook):
    jitted, lines = gradix.jit(lambda x: x * 5.0), []
    assert compiled(jitted, X)[1]

    def hook(frame, event, argument):
        lines.append(frame.f_code)

    before = sys.gettrace() if set_hook is sys.settrace else sys.getprofile()
    with gradix.debug.values():
        set_hook(hook)
        try:
            jitted(X)
        finally:
            set_hook(before)
    assert jitted.__wrapped__.__code__ in lines


class Number(float):
    """A number of a class of its own."""


def test_a_variable_that_was_replaced_counts(monkeypatch):
    jitted = gradix.jit(lambda x: x * FACTOR)
    assert compiled(jitted, X)[1]
    for n in range(3):  # nothing is compiled for each of the values
        monkeypatch.setitem(globals(), "FACTOR", 5.0 + n)
        results, is_compiled = compiled(jitted, X, calls=1)
        np.testing.assert_array_equal(results[0], (5 + n) * X)
        assert not is_compiled
    assert compiled(jitted, X, calls=3 * unwatched.CALLS)[1]
    monkeypatch.setitem(globals(), "FACTOR", Number(2.0))
    assert not compiled(jitted, X, calls=10 * unwatched.CALLS)[1]


@pytest.mark.parametrize(
    ("captured", "change"),
    [
        ([3.0], lambda x: x.__setitem__(0, 4.0)),
        ({0: 3.0}, lambda x: x.update({0: 4.0})),
        ([3.0], lambda x: x.insert(0, 4.0)),
        (np.full(1, 3.0, "f"), lambda x: x.fill(4.0)),
        ([[3.0, 3.0]], lambda x: x[0].__setitem__(slice(None), [4.0, 4.0])),
    ],
    ids=["list", "dict", "longer list", "NumPy", "nested"],
)
def test_a_container_that_was_changed_counts(captured, change):
    jitted = gradix.jit(lambda x: x * jnp.asarray(captured[0]))
    results, is_compiled = compiled(jitted, X)
    assert is_compiled
    np.testing.assert_array_equal(results[-1], 3 * X)
    change(captured)
    with gradix.debug.values():
        np.testing.assert_array_equal(jitted(X), 4 * X)


def test_wrong_programs_raise_what_python_raises():
    jitted = gradix.jit(lambda x: x @ jnp.ones(3))
    with gradix.debug.values():
        for _ in range(2 * unwatched.CALLS):
            with pytest.raises(TypeError):
                jitted(X)
    assert jitted.unwatched.run is None


def decay(c, _):
    return c - 0.01 * jnp.sin(c), c


def scanned(see, x):
    see(x)
    return lax.scan(decay, x, None, length=60)[1].sum()


def turned(see, x):
    see(x)
    return lax.fori_loop(0, 60, lambda i, c: c * 0.99 + i, x)


def waited(see, x):
    see(x)
    return lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] + 1, c[1] * 1.01), (0, x))[1]


@pytest.mark.parametrize("loop", [scanned, turned, waited])
@pytest.mark.parametrize("transform", [lambda f: f, gradix.grad, gradix.vmap], ids=["plain", "grad", "vmap"])
def test_long_loops_run_compiled_in_functions_that_are_looked_at(loop, transform, monkeypatch):
    monkeypatch.setattr(unwatched, "STEPS", 50)
    unwatched._bodies.clear()
    told, operations, evaluate = [], [], seams.evaluate
    function = transform(functools.partial(loop, lambda x: told.append(str(x))))
    x = X if transform is gradix.vmap else jnp.float32(1)
    with gradix.debug.values():
        results = [function(x) for _ in range(2)]
        monkeypatch.setattr(seams, "evaluate", lambda p, *rest: operations.append(p) or evaluate(p, *rest))
        results.append(function(x))
        assert gradix.config.jax_disable_jit
    monkeypatch.undo()
    assert len(told) == 3 and "Tracer" not in told[0]
    assert {p.name for p in operations} & {"scan", "while", "while_save"}
    expected = gradix.jit(transform(functools.partial(loop, str)))(x)
    for result in results:
        np.testing.assert_allclose(result, expected, rtol=2e-4)
