"""Functions given again to loops, branches and checkpoint, which are traced once for each signature."""

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api import boundary

FACTOR = 2.0


def step(carry, x):
    return carry * FACTOR + x, carry


def small(x):
    return x < 10


def double(x):
    return x * FACTOR


def plus(x):
    return x + FACTOR


CALLS = {
    "scan": (lambda: lax.scan(step, 1.0, jnp.ones(3))[0], 1),
    "while_loop": (lambda: lax.while_loop(small, double, 1.0), 2),
    "cond": (lambda: lax.cond(True, double, plus, 3.0), 2),
    "switch": (lambda: lax.switch(1, [double, plus, double], 3.0), 2),
    "checkpoint": (lambda: gradix.grad(gradix.checkpoint(double))(3.0), 1),
}


@pytest.fixture
def traces(monkeypatch):
    count = []
    stage = boundary.stage_with_refs

    def counted(*args):
        count.append(1)
        return stage(*args)

    monkeypatch.setattr(boundary, "stage_with_refs", counted)
    gradix.clear_caches()
    return count


@pytest.mark.parametrize("name", CALLS)
def test_a_function_given_again_is_traced_once(name, traces, monkeypatch):
    call, expected = CALLS[name]
    first = [float(call()) for _ in range(3)]
    assert len(traces) == expected and first == first[:1] * 3
    monkeypatch.setitem(globals(), "FACTOR", 3.0)  # what it reads has changed
    assert float(call()) != first[0] and len(traces) > expected


def test_what_closures_hold_tells_functions_apart(traces):
    def times(factor):
        return lambda x: x * factor

    for factor in (2.0, 3.0, 2.0):
        assert float(lax.cond(True, times(factor), plus, 5.0)) == 5 * factor


def test_changes_of_a_captured_list_are_seen(traces):
    factors = [2.0]

    def body(x):
        return x * factors[0]

    def run():
        return float(gradix.checkpoint(body)(1.0))

    assert [run(), run()] == [2.0, 2.0] and len(traces) == 1
    factors[0] = 5.0
    assert run() == 5.0


def test_captured_tracers_belong_to_one_trace(traces):
    def total(a):
        def body(x):
            return x * a

        repeated = gradix.checkpoint(body)
        return repeated(2.0) + repeated(3.0)

    for transformed in (gradix.grad(total), gradix.jit(gradix.grad(total))):
        assert [float(transformed(x)) for x in (1.0, 4.0)] == [5.0, 5.0]
    assert gradix.vmap(total)(jnp.arange(3.0)).tolist() == [0.0, 5.0, 10.0]


def test_refs_are_used_at_each_call(traces):
    ref = gradix.new_ref(jnp.float32(0))

    def body(x):
        ref[...] += x
        return x

    for _ in range(3):
        lax.cond(True, body, plus, 2.0)
    assert float(ref[...]) == 6.0


def test_static_arguments_of_checkpoint_tell_traces_apart(traces):
    def power(x, n):
        return x**n

    repeated = gradix.checkpoint(power, static_argnums=1)
    assert [float(repeated(3.0, n)) for n in (2, 3, 2, 3, 2)] == [9.0, 27.0, 9.0, 27.0, 9.0]
    assert len(traces) == 2
    listed = gradix.checkpoint(lambda x, ns: x * sum(ns), static_argnums=1)
    assert float(listed(3.0, [1, 2])) == 9.0  # a static argument without a hash
