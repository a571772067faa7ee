"""`jit(f)` made anew finds the traces of `f`, as long as all that `f` captures is as it was."""

import functools
import gc
import types
import weakref

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._api.jit import sharing

count, scale, table, weights = 0, 2.0, {"step": 1.0, "more": [1, 2]}, jnp.ones(3)


def helper(x):
    return x * scale + table["step"]


def counted(x):
    global count
    count += 1
    return helper(x) * weights


def traces(calls) -> int:
    global count
    before, count = count, 0
    for call in calls:
        call()
    made, count = count, before
    return made


def anew():
    return gradix.jit(counted)(jnp.ones(3))


def test_a_function_jitted_anew_is_traced_and_compiled_once():
    assert traces([anew] * 4) == 1
    again = gradix.jit(counted)
    again(jnp.ones(3))
    assert (again.stats().traces, again.stats().compiles, again.stats().calls) == (0, 0, 1)
    assert traces([lambda: gradix.jit(counted)(jnp.ones((2, 3)))] * 2) == 1, "another signature"
    assert traces([lambda: gradix.vmap(gradix.jit(counted))(jnp.ones((2, 3)))] * 2) == 0, "that of an example is known"


@pytest.mark.parametrize(
    "options",
    [
        {"inline": True},
        {"donate_argnums": 0},
        {"check": "nan"},
        {"device": 0},
        {"keep_unused": True},
        {"compiler_options": {"xla_cpu_enable_fast_math": False}},
    ],
    ids=lambda o: next(iter(o)),
)
def test_options_have_traces_of_their_own(options):
    if "device" in options:
        options = {"device": gradix.devices()[0]}
    anew()
    assert traces([lambda: gradix.jit(counted, **options)(jnp.ones(3) + 0)] * 3) == 1


def _global(value):
    global scale
    scale = value


def _weights(value):
    global weights
    weights = value


CHANGES = {
    "a global": (lambda: _global(3.0), lambda: _global(2.0)),
    "an entry of a dict": (lambda: table.update(step=5.0), lambda: table.update(step=1.0)),
    "a list in a dict": (lambda: table["more"].append(3), lambda: table["more"].pop()),
    "an array": (lambda: _weights(jnp.ones(3)), lambda: None),
    "a default": (lambda: setattr(helper, "__defaults__", ()), lambda: setattr(helper, "__defaults__", None)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_seen(change):
    make, undo = CHANGES[change]
    anew()
    try:
        make()
        assert traces([anew] * 2) == 1
        np.testing.assert_allclose(anew(), scale + table["step"])
    finally:
        undo()


class Settings:
    rate = 1.0


def reads_a_class(x):
    return x * Settings.rate


def test_attributes_of_modules_and_classes_are_seen(monkeypatch):
    module = types.ModuleType("settings_of_a_user")
    module.rate = 1.0
    scope = {"settings": module}
    exec("def f(x):\n    return x * settings.rate", scope)
    for function, holder in ((reads_a_class, Settings), (scope["f"], module)):
        for rate in (1.0, 2.0, 2.0, 3.0):
            monkeypatch.setattr(holder, "rate", rate)
            assert float(gradix.jit(function)(1.0)) == rate


def test_closures_and_objects():
    class Model:
        rate = 1.0

        def __init__(self):
            self.size, self.parts = 2, {"w": jnp.ones(2)}

    model, seen = Model(), []

    def f(x):
        seen.append(1)  # which the trace itself changes
        return x * model.size

    call = lambda: float(gradix.jit(f)(1.0))
    assert [call() for _ in range(3)] == [2] * 3 and len(seen) == 1
    model.size = 3
    assert [call() for _ in range(3)] == [3] * 3 and len(seen) == 2
    model.parts["w"] = jnp.ones(2)
    assert call() == 3 and len(seen) == 3
    many = list(range(10_000))

    def g(x):
        seen.append(2)
        return x * many[-1]

    for n in (1, 2):
        many[-1] = n
        assert float(gradix.jit(g)(1.0)) == n


def test_traced_captures_are_not_shared():
    def outer(y):
        def inner(x):
            return x * y

        return gradix.jit(inner)(2.0)

    assert float(gradix.grad(outer)(3.0)) == 2 and float(gradix.jit(outer)(4.0)) == 8

    def loss(w):
        holder["w"] = w
        return gradix.jit(use)(2.0)

    holder = {}

    def use(x):
        return x * holder["w"] ** 2

    assert [float(gradix.grad(loss)(w)) for w in (1.0, 2.0)] == [4, 8]


def test_caches_are_cleared_and_functions_die():
    anew()
    gradix.jit(counted).clear_cache()
    assert traces([anew]) == 1
    gradix.clear_caches()
    assert traces([anew]) == 1
    big = jnp.ones(5)

    def local(x):
        return x + big

    gradix.jit(local)(jnp.ones(5))
    number, alive = id(local), weakref.ref(local)
    del local
    gc.collect()
    assert alive() is None and number not in sharing._known


def test_arrays_divided_over_devices_share_too():
    mesh = gradix.sharding.Mesh(gradix.devices()[:1], ("a",))
    x = gradix.device_put(jnp.ones(3), gradix.sharding.NamedSharding(mesh, gradix.sharding.PartitionSpec("a")))
    f = gradix.jit(counted)
    f(x)
    g = gradix.jit(counted)
    g(x)
    assert (f.stats().traces, g.stats().traces, g.stats().compiles + g.stats().loads) == (1, 0, 0)


def test_nothing_that_holds_the_function_is_kept():
    """Neither its class, by way of an object among the static arguments or a captured one, nor its globals."""

    def made():
        class Local:
            factor = jnp.ones(3)

            @functools.partial(gradix.jit, static_argnums=0)
            def read(self, x):
                return x * self.factor

        one = Local()

        def captures(x):
            return x * one.factor

        one.read(1.0)
        gradix.jit(captures)(1.0)
        scope = {"gradix": gradix, "jnp": jnp}
        exec("w = jnp.ones(3)\ndef f(x): return x * w\ny = gradix.jit(f)(1.0)", scope)
        return [weakref.ref(x) for x in (Local, one, captures, scope["f"])]

    gone = made()
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4


def test_a_function_may_outlive_the_names_of_the_module(monkeypatch):
    """As at the end of a process, when Python clears modules before it drops their functions; a failure would warn."""

    def double(x):
        return x * 2

    gradix.jit(double)(1.0)
    known, number = sharing._known, id(double)
    assert number in known
    monkeypatch.setattr(sharing, "_known", None)
    del double
    gc.collect()
    assert number not in known
