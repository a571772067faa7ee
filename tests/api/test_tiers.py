"""The host tier: what it runs on the host, how often, and that nothing else is different."""
import os
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api.jit.tiers import HOST_CALLS


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


def test_tiny_functions_are_compiled_after_some_calls(tier):
    f = gradix.jit(lambda x, y: {"a": jnp.sin(x) * y, "b": gradix.jit(lambda v: v + 1)(y), "c": x, "d": 2})
    want = {"a": np.sin(np.arange(3.0)) * 2, "b": 3.0, "c": np.arange(3.0), "d": 2}
    for i in range(2 * HOST_CALLS + 4):
        got = f(jnp.arange(3.0), 2.0)
        assert _made(f) == (i >= HOST_CALLS), i
        assert got["d"].weak_type and got["b"].weak_type and got["a"].dtype == np.float32
        gradix.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, want)
    assert f.stats().traces == 1 and f.stats().calls == 2 * HOST_CALLS + 4


@pytest.mark.parametrize("function,x", [
    (lambda x: lax.fori_loop(0, 3, lambda _, v: v + 1, x), np.ones(3, "f4")),
    (lambda x: x + 1, np.ones(1 << 13, "f4")),
    (lambda x: (gradix.debug.callback(lambda v: None, x), x)[1], np.ones(3, "f4")),
], ids=["a loop", "a large array", "an effect"])
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
    code = ("import gradix; f = gradix.jit(lambda x: x + 1); f(1.0); s = f.stats(); "
            "from gradix._runtime import xla; print(s.compiles + s.loads, xla.is_started())")
    for value, want in (("auto", "0 False"), ("xla", "1 True")):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "GRADIX_TIER": value}, check=True,
                              capture_output=True, text=True)
        assert done.stdout.split() == want.split(), value
