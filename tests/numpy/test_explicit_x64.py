"""64-bit dtypes asked for by name while x64 is off: kept, narrowed or refused."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, random

KEPT = {
    "array": lambda: jnp.array([1.0, 2.0], dtype=jnp.float64),
    "numpy": lambda: jnp.array(np.ones(2), "float64"),
    "asarray": lambda: jnp.asarray(jnp.ones(2), dtype=jnp.float64),
    "astype": lambda: jnp.ones(2).astype("float64"),
    "zeros": lambda: jnp.zeros(2, "float64"),
    "ones": lambda: jnp.ones(2, np.float64),
    "empty": lambda: jnp.empty(2, "float64"),
    "full": lambda: jnp.full(2, 1.0, "float64"),
    "zeros_like": lambda: jnp.zeros_like(jnp.ones(2), "float64"),
    "full_like": lambda: jnp.full_like(jnp.ones(2), 1, dtype="float64"),
    "eye": lambda: jnp.eye(2, dtype="float64"),
    "arange": lambda: jnp.arange(2, dtype="float64"),
    "linspace": lambda: jnp.linspace(0, 1, 3, dtype="float64"),
    "scalar type": lambda: jnp.float64(3),
    "frombuffer": lambda: jnp.frombuffer(b"12345678", "float64"),
    "sum": lambda: jnp.sum(jnp.ones(2), dtype="float64"),
    "mean": lambda: jnp.mean(jnp.ones(2), dtype="float64"),
    "cumsum": lambda: jnp.cumsum(jnp.ones(2), dtype="float64"),
    "lax.full": lambda: lax.full((2,), 1.0, "float64"),
    "convert_element_type": lambda: lax.convert_element_type(jnp.ones(2), "float64"),
    "normal": lambda: random.normal(random.key(0), (2,), "float64"),
    "uniform": lambda: random.uniform(random.key(0), (2,), "float64"),
    "one_hot": lambda: gradix.nn.one_hot(1, 2, dtype="float64"),
    "complex": lambda: jnp.zeros(2, "complex128").real,
    "view": lambda: jnp.zeros(2, "int64").view("float64"),
}
STAYS = {
    "times a number": lambda x: x * 2.0,
    "plus float32": lambda x: x + jnp.ones(3),
    "sin": jnp.sin,
    "index": lambda x: x[0],
    "where": lambda x: jnp.where(x > 1, x, 0.0),
    "matmul": lambda x: x @ x,
    "sort": jnp.sort,
    "mean": jnp.mean,
    "jit": gradix.jit(lambda x: x * 2 + 1),
    "grad": gradix.grad(lambda x: (x * x).sum()),
    "vmap": gradix.vmap(lambda x: x + 1),
    "scan": lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros((), "float64"), x)[1],
    "from integers": lambda x: x.astype("int64") / 2,
    "exp of integers": lambda x: jnp.exp(x.astype("int64")),
    "inverse": lambda x: jnp.linalg.inv(jnp.diag(x + 1)),
    "median": jnp.median,
    "numpy": np.asarray,
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_asked_for_is_kept(name):
    with gradix.explicit_x64("honour"):
        assert KEPT[name]().dtype == np.float64


@pytest.mark.parametrize("name", STAYS)
def test_and_stays(name):
    with gradix.explicit_x64("honour"):
        out = STAYS[name](jnp.arange(3, dtype="float64"))
        assert out.dtype == np.float64 and not getattr(out, "weak_type", False)


def test_integers_keep_their_values():
    with gradix.explicit_x64("honour"):
        x = jnp.array([2**40, 3], dtype=jnp.int64)
        assert (x + 2**40).tolist() == [2**41, 2**40 + 3] and x.sum().item() == 2**40 + 3
        assert random.bits(random.key(0), (2,), "uint64").dtype == np.uint64
        assert gradix.jit(lambda x: x * 2)(x).tolist() == [2**41, 6]


def test_precision_is_really_wide():
    with gradix.explicit_x64("honour"):
        third = gradix.jit(lambda x: x / 3)(jnp.array(1.0, dtype=jnp.float64))
    assert third.item() == 1 / 3


@pytest.mark.promotes
@pytest.mark.x32
def test_defaults_stay_narrow():
    with gradix.explicit_x64("honour"):
        for x in (
            jnp.ones(2),
            jnp.arange(2.0),
            jnp.array([1.0]),
            jnp.asarray(np.ones(2)),
            jnp.ones(2, float),
            jnp.zeros(2, "float64").astype(float),
            random.normal(random.key(0), (2,)),
            jnp.sin(np.ones(2)),
            gradix.device_put(np.ones(2)),
            jnp.eye(2),
            jnp.linspace(0, 1, 3),
        ):
            assert x.dtype == np.float32
        assert jnp.arange(3).dtype == jnp.argmax(jnp.ones(3)).dtype == np.int32
        assert jnp.result_type("int64", "float32") == jnp.result_type(float) == np.float32
        assert jnp.result_type("float64") == np.float64


@pytest.mark.x32
def test_by_default_narrowed_with_a_warning():
    with pytest.warns(UserWarning, match=r"float64 requested in zeros is not available.*explicit_x64', 'honour'"):
        assert jnp.zeros(2, "float64").dtype == np.float32
    with gradix.explicit_x64("truncate"), pytest.warns(UserWarning, match="int64"):
        assert jnp.ones(2).astype("int64").dtype == np.int32


@pytest.mark.x32
def test_refused():
    with gradix.explicit_x64("error"), pytest.raises(ValueError, match="float64 requested in array is not available"):
        jnp.array([1.0], dtype="float64")


@pytest.mark.x32
def test_a_trace_is_not_reused_under_another_choice():
    double = gradix.jit(lambda: jnp.ones(2, "float64"))
    with gradix.explicit_x64("honour"):
        assert double().dtype == np.float64
    with pytest.warns(UserWarning):
        assert double().dtype == np.float32


@pytest.mark.parametrize("name", ["explicit_x64", "gradix_explicit_x64", "jax_explicit_x64_dtypes"])
def test_names_and_words(name):
    gradix.config.update(name, "honour")
    assert gradix.config.read(name) == gradix.config.jax_explicit_x64_dtypes == "allow"
    gradix.config.update(name, "truncate")
    assert gradix.config.jax_explicit_x64_dtypes == "warn"
    with pytest.raises(ValueError, match="must be one of"):
        gradix.config.update(name, "always")


@pytest.mark.x32
def test_in_the_environment():
    code = "import gradix.numpy as jnp; print(jnp.ones(2, 'float64').dtype, jnp.ones(2).dtype)"
    env = {**os.environ, "GRADIX_EXPLICIT_X64_DTYPES": "honour"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == ["float64", "float32"]
