"""The tiers before the whole compilation: what runs by them, how often, and that nothing else is different."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api.jit.tiers import HOST_CALLS
from gradix._base.config import override
from gradix._runtime import xla


@pytest.fixture
def tier():
    gradix.config.update("gradix_tier", "auto")
    yield
    gradix.config.update("gradix_tier", "xla")


def _made(f) -> int:
    return f.stats().compiles + f.stats().loads


def test_by_default_the_first_call_compiles():
    f = gradix.jit(lambda x: x * 2 + 1)
    assert float(f(2.0)) == 5.0 and _made(f) == 1


@pytest.mark.x32
def test_tiny_functions_are_compiled_after_some_calls(tier):
    f = gradix.jit(lambda x, y: {"a": jnp.sin(x) * y, "b": gradix.jit(lambda v: v + 1)(y), "c": x, "d": 2})
    want = {"a": np.sin(np.arange(3.0)) * 2, "b": 3.0, "c": np.arange(3.0), "d": 2}
    for i in range(2 * HOST_CALLS + 4):
        got = f(jnp.arange(3.0), 2.0)
        assert _made(f) == (i >= HOST_CALLS), i
        assert got["d"].weak_type and got["b"].weak_type and got["a"].dtype == np.float32
        gradix.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, want)
    assert f.stats().traces == 1 and f.stats().calls == 2 * HOST_CALLS + 4


@pytest.mark.parametrize(
    "function,x",
    [
        (lambda x: lax.fori_loop(0, 3, lambda _, v: v + 1, x), np.ones(3, "f4")),
        (lambda x: x + 1, np.ones(1 << 13, "f4")),
        (lambda x: (gradix.debug.callback(lambda v: None, x), x)[1], np.ones(3, "f4")),
    ],
    ids=["a loop", "a large array", "an effect"],
)
def test_all_other_functions_are_compiled_at_once(tier, function, x):
    f = gradix.jit(function)
    f(x)
    assert _made(f) == 1


def test_donated_arguments_and_captured_arrays(tier):
    captured = jnp.arange(3.0)
    f = gradix.jit(lambda x: x + captured, donate_argnums=0)
    x = jnp.ones(3) + 0
    f(x)
    assert x.is_deleted() and _made(f) == 1
    g = gradix.jit(lambda: captured)
    g().delete()
    assert not captured.is_deleted() and float(g().sum()) == 3.0


def test_checks_of_values_stay(tier):
    with gradix.debug_nans(True):
        f = gradix.jit(lambda x: jnp.log(x))
        with pytest.raises(FloatingPointError):
            f(-1.0)


def test_the_environment_chooses_the_tier():
    code = (
        "import gradix; f = gradix.jit(lambda x: x + 1); f(1.0); s = f.stats(); "
        "from gradix._runtime import xla; print(s.compiles + s.loads, xla.is_started())"
    )
    for value, want in (("auto", "0 False"), ("xla", "1 True")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "GRADIX_TIER": value},
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == want.split(), value


# -- sizes of jit(symbolic=...) ------------------------------------------------------------------------------------


def _calls(n: int):
    return override("gradix_quick_calls", n)


def _layer(w, x):
    return jnp.tanh(x @ w).sum(0) / x.shape[0]


def test_a_size_is_compiled_quickly_and_whole_when_it_comes_again():
    w, x = jnp.eye(4), jnp.arange(12.0).reshape(3, 4)
    with _calls(3):
        f = gradix.jit(_layer, symbolic=(None, "n, _"))
        for i in range(7):
            np.testing.assert_allclose(f(w, x), np.tanh(np.asarray(x)).sum(0) / 3, rtol=1e-6)
            assert _made(f) == 1 + (i >= 3), i
        for n in (5, 6):
            f(w, jnp.ones((n, 4)))
    assert (f.stats().traces, _made(f)) == (1, 4)


def test_the_quick_program_asks_for_no_optimizations(monkeypatch):
    asked = []
    real = xla.compile
    monkeypatch.setattr(xla, "compile", lambda *args, **rest: asked.append(args[4]) or real(*args, **rest))
    with _calls(1):
        f = gradix.jit(lambda x: x * 3.25 + 1, symbolic="n")
        for _ in range(2):
            f(jnp.ones(7))
    assert len(asked) == 2 and asked[0] != asked[1]


@pytest.mark.parametrize(
    "calls, options",
    [(0, {}), (3, {"donate_argnums": 0}), (3, {"compiler_options": {"xla_cpu_enable_fast_math": False}})],
)
def test_all_other_sizes_are_compiled_whole_at_once(calls, options):
    with _calls(calls):
        f = gradix.jit(lambda x: x * 2 + 1, symbolic="n", **options)
        for _ in range(5):
            assert f(jnp.ones(3) + 0).tolist() == [3, 3, 3]
        assert _made(f) == 1


def test_every_function_is_compiled_quickly_if_asked_for():
    gradix.config.update("gradix_tier", "quick")
    try:
        with _calls(3):
            f = gradix.jit(gradix.grad(lambda x: jnp.sin(x).sum()))
            for i in range(5):
                np.testing.assert_allclose(f(jnp.arange(4.0)), np.cos(np.arange(4.0)), rtol=1e-6)
                assert _made(f) == 1 + (i >= 3)
    finally:
        gradix.config.update("gradix_tier", "xla")


def test_calls_are_a_number():
    with pytest.raises(ValueError, match="gradix_quick_calls must be a number of calls"):
        gradix.config.update("gradix_quick_calls", -1)
