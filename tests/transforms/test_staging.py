"""What is recorded, and what is done to it before it is compiled: literals, constants, dead code, equal equations."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._transforms.cse import simplify
from gradix._transforms.dce import dce_jaxpr

x3 = np.arange(3, dtype=np.float32) + 1


def program(f, *args):
    return gradix.make_jaxpr(f)(*args)


def names(closed):
    return [e.primitive.name for e in closed.jaxpr.eqns]


def simple(f, *args):
    return names(simplify(program(f, *args)))


# -- what is recorded --------------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_numbers_are_literals_and_arrays_constants():
    table = jnp.arange(4.0)
    closed = program(lambda x: x * 2 + table, 1.0)
    assert str(closed.jaxpr).count("2.0:f32[]") == 1
    assert len(closed.consts) == 1 and closed.consts[0] is table
    assert len(program(lambda x: x + table + table, 1.0).consts) == 1  # once per array
    assert len(program(lambda x: x + np.arange(4.0), 1.0).consts) == 1


@pytest.mark.x32
def test_literals_keep_their_bits():
    text = str(program(lambda x: (x + 0.0, x + -0.0, x * jnp.nan, x * np.float16(2), x * jnp.inf), 1.0))
    assert "-0.0:f32[]" in text and "nan:f32[]" in text and "inf:f32[]" in text
    plus, minus = gradix.jit(lambda x: (jnp.copysign(1.0, x * 0.0), jnp.copysign(1.0, x * -0.0)))(1.0)
    assert (plus, minus) == (1, -1)
    got = gradix.jit(lambda x: [x * c for c in (np.float32(0.1), 1.5e-38, 3.4e38, -1e-30)])(np.float32(1))
    np.testing.assert_array_equal(np.array(got), np.array([0.1, 1.5e-38, 3.4e38, -1e-30], np.float32))


def test_captured_arrays_are_arguments_of_the_compiled_program():
    big = jnp.arange(50_000.0)
    lowered = gradix.jit(lambda x: x + big).lower(1.0)
    assert len(lowered.as_text()) < 3000
    assert gradix.jit(lambda x: x + big)(1.0)[-1] == 50_000


def test_results_may_be_arguments_constants_and_each_other():
    c = jnp.ones(2)
    y, z, w, v, n = gradix.jit(lambda x: (x, x, c, 3.0, None))(x3)
    np.testing.assert_array_equal(y, z)
    np.testing.assert_array_equal(w, c)
    assert v == 3 and n is None


def test_the_names_in_a_program_do_not_depend_on_the_process():
    f = lambda x: jnp.sin(x) * 2 + x
    assert str(program(f, 1.0)) == str(program(f, 1.0))


# -- dead code ---------------------------------------------------------------------------------------------------------


def test_dead_code():
    assert simple(lambda x: (jnp.sin(x), jnp.cos(x))[0], 1.0) == ["sin"]
    assert simple(lambda x: (jnp.exp(jnp.sin(x)), x)[1], 1.0) == []


def test_dead_results_inside_calls_and_loops():
    f = gradix.jit(lambda x, y: (jnp.sin(x), jnp.cos(y)))
    closed, used = dce_jaxpr(program(lambda x, y: f(x, y)[0], 1.0, 2.0).jaxpr)
    assert names_inside(closed) == ["jit", "sin"] and used == [True, False]
    both = lambda x: lax.scan(lambda c, t: (c * t, jnp.sin(t)), x, x3)
    assert "sin" not in names_inside(simplify(program(lambda x: both(x)[0], 1.0)).jaxpr)
    assert "sin" in names_inside(simplify(program(lambda x: both(x)[1], 1.0)).jaxpr)
    assert float(gradix.jit(lambda x: both(x)[0])(2.0)) == 12


def names_inside(jaxpr):
    out = []
    for eqn in jaxpr.eqns:
        out.append(eqn.primitive.name)
        for p in eqn.params.values():
            inner = getattr(p, "jaxpr", None)
            if hasattr(inner, "eqns"):
                out += names_inside(inner)
    return out


def test_dce_keeps_meaning():
    closed = program(lambda x, y: (x * 2, jnp.sin(y), jnp.cos(x) + y), 1.0, 2.0)
    for used in ([True, False, False], [False, True, True], [False, False, False], [True, True, True]):
        pruned, inputs = dce_jaxpr(closed.jaxpr, used)
        got = gradix.core.eval_jaxpr(pruned, closed.consts, *[v for v, u in zip((1.0, 2.0), inputs) if u])
        want = [o for o, u in zip((2, np.sin(2), np.cos(1) + 2), used) if u]
        np.testing.assert_allclose(np.array(got, np.float32), np.array(want, np.float32), rtol=1e-6)


# -- equal equations ---------------------------------------------------------------------------------------------------


def test_equal_equations_are_one():
    assert simple(lambda x: jnp.sin(x) + jnp.sin(x), 1.0) == ["sin", "add"]
    assert simple(lambda x: jnp.exp(jnp.sin(x)) + jnp.exp(jnp.sin(x)), 1.0) == ["sin", "exp", "add"]
    assert simple(lambda x: (x * 2.0, x * 2.0, x * 3.0), 1.0) == ["mul", "mul"]


def test_what_differs_stays():
    assert simple(lambda x: (x * 0.0, x * -0.0), 1.0) == ["mul", "mul"]
    assert simple(lambda x: (x.sum(0), x.sum(1)), np.ones((2, 2))) == ["reduce_sum"] * 2
    assert simple(lambda x, y: (x - y, y - x), 1.0, 2.0) == ["sub", "sub"]
    x = np.ones((2, 1), np.float32)
    assert (
        simple(lambda x: (lax.convert_element_type(x, bool), lax.convert_element_type(x, "int8")), x).count(
            "convert_element_type"
        )
        == 2
    )
    barrier = lambda x: lax.optimization_barrier(x)
    assert simple(lambda x: (barrier(x), barrier(x)), 1.0).count("optimization_barrier") == 2
    key = gradix.random.key(0)
    a, b = gradix.jit(lambda k: (gradix.random.normal(k), gradix.random.uniform(k)))(key)
    assert float(a) != float(b)


def test_calls_of_one_program_are_one_call():
    f = gradix.jit(lambda x: jnp.sin(x) * 2)
    assert simple(lambda x: f(x) + f(x), 1.0) == ["jit", "add"]
    assert gradix.jit(lambda x: f(x) + f(x))(1.0) == pytest.approx(4 * np.sin(1))


# -- effects -----------------------------------------------------------------------------------------------------------


def test_effects_are_kept_and_not_merged():
    log = []
    note = functools.partial(gradix.debug.callback, lambda v: log.append(float(v)))

    def f(x):
        note(x)
        note(x)
        gradix.jit(lambda y: (note(y), None)[1])(x + 1)
        lax.cond(x > 0, lambda y: note(y), lambda y: None, x + 2)
        return x

    assert simple(f, 1.0).count("debug_callback") == 2
    gradix.jit(f)(1.0)
    gradix.effects_barrier()
    assert sorted(log) == [1, 1, 2, 3]


def test_a_call_with_effects_is_not_merged_with_its_like():
    log = []
    f = gradix.jit(lambda x: (gradix.debug.callback(lambda v: log.append(float(v)), x), x * 2)[1])
    assert gradix.jit(lambda x: f(x) + f(x))(1.0) == 4
    gradix.effects_barrier()
    assert log == [1, 1]


# -- caches of derived programs ----------------------------------------------------------------------------------------


def test_derived_programs_are_made_once_per_program():
    traces = []

    @gradix.jit
    def f(x):
        traces.append(1)
        return jnp.sin(x) * x

    for _ in range(3):
        gradix.grad(f)(x3[0])
        gradix.vmap(f)(x3)
        gradix.vmap(gradix.grad(f))(x3)
        gradix.hessian(f)(x3[0])
    assert len(traces) == 1


def test_one_program_under_different_axes_and_tangents():
    f = gradix.jit(lambda x, y: x * y)
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    for in_axes, args in (
        ((0, None), (m, 2.0)),
        ((1, None), (m, 2.0)),
        ((None, 0), (2.0, m)),
        ((0, 0), (m, m)),
        ((0, 1), (m, m.T)),
    ):
        want = np.stack(
            [
                np.take(args[0], i, in_axes[0]) * args[1]
                if in_axes[1] is None
                else (args[0] if in_axes[0] is None else np.take(args[0], i, in_axes[0]))
                * np.take(args[1], i, in_axes[1])
                for i in range(3 if in_axes == (1, None) else 2)
            ]
        )
        np.testing.assert_array_equal(gradix.vmap(f, in_axes)(*args), want)
    assert (
        gradix.grad(f)(2.0, 3.0) == 3
        and gradix.grad(f, 1)(2.0, 3.0) == 2
        and gradix.grad(f, (0, 1))(2.0, 3.0) == (3, 2)
    )
