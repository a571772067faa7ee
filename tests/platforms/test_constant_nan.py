"""NaN that the compiler can foresee: a compiled program must keep it, as the host does.

LLVM makes any number of the conversion to an integer inside XLA:CPU's exponential where it knows the operand to be NaN.
"""

import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn
from gradix._core.dtypes import FLOAT
from gradix._ops.families import Elementwise

NAN, INF = np.nan, np.inf
DTYPES = ["float32", "float16", *[pytest.param(name, marks=pytest.mark.slow) for name in ("bfloat16", "float64")]]
CAPTURED = np.float32(NAN)


def elementwise() -> dict:
    """The functions of lax for elementwise operations that take floats."""
    named = {name.removesuffix("_p"): getattr(lax, name) for name in dir(lax) if name.endswith("_p")}
    return {
        name: getattr(lax, name)
        for name, p in named.items()
        if isinstance(p, Elementwise) and p.accepts & FLOAT and hasattr(lax, name)
    }


# How a program comes by NaN, given a number.
SOURCES = {
    "literal": lambda x: x * NAN,
    "added": lambda x: NAN + x,
    "captured": lambda x: x - jnp.asarray(CAPTURED, x.dtype),
    "0·∞": lambda x: x * (lax.full_like(x, 0) * INF),
    "∞ - ∞": lambda x: x + (lax.full_like(x, INF) - lax.full_like(x, INF)),
    "0/0": lambda x: x + lax.full_like(x, 0) / lax.full_like(x, 0),
    "√-1": lambda x: x + lax.sqrt(lax.full_like(x, -1)),
    "log -1": lambda x: x + lax.log(lax.full_like(x, -1)),
    "√(-1 - x²)": lambda x: lax.sqrt(-1 - x * x),
    "selected": lambda x: jnp.where(x > 100, 0, NAN) + x,
    "filled": lambda x: jnp.full_like(x, NAN),
    "of a loop": lambda x: x + lax.fori_loop(0, 3, lambda _, y: y - INF, jnp.asarray(INF, x.dtype)),
    "of a scan": lambda x: x + lax.scan(lambda c, _: (c * 0, c), jnp.asarray(INF, x.dtype), None, 3)[0],
    "of a branch": lambda x: lax.cond(x.ravel()[0] > 100, lambda: x, lambda: x * NAN),
}
FUNCTIONS = {
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "sigmoid": nn.sigmoid,
    "softplus": nn.softplus,
    "exp2": jnp.exp2,
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": nn.logsumexp,
    "silu": nn.silu,
    "elu": nn.elu,
    "selu": nn.selu,
    "gelu": nn.gelu,
    "tanh": jnp.tanh,
    "erf": lax.erf,
    "erfc": lax.erfc,
    "erf_inv": lax.erf_inv,
    "lgamma": lax.lgamma,
    "digamma": lax.digamma,
    "chain": lambda x: (2 * jnp.exp(-jnp.abs(x)) + 1).sum() * x,
    "power": lambda x: jnp.power(2.0, x),
    "logaddexp": lambda x: jnp.logaddexp(x, 1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x.ravel()),
    "of a vmap": lambda x: gradix.vmap(lambda y: jnp.exp(y) + 1)(x.ravel()),
    "of a scan": lambda x: lax.scan(lambda c, y: (jnp.exp(c) + y, jnp.exp(y)), x.ravel()[0], x.ravel())[1],
    "gradient": lambda x: gradix.grad(lambda y: (nn.sigmoid(y) * nn.softplus(y)).sum())(x),
}


def same(f, x):
    with np.errstate(all="ignore"):
        on_host = np.asarray(f(x))
    compiled = np.asarray(gradix.jit(lambda x: f(x))(x))
    assert np.isnan(on_host).any(), "the program has no NaN"
    np.testing.assert_array_equal(np.isnan(compiled), np.isnan(on_host))


@pytest.fixture(params=DTYPES)
def dtype(request):
    with gradix.enable_x64(request.param == "float64"):
        yield request.param


@pytest.mark.parametrize("size", [8, pytest.param(5000, marks=pytest.mark.slow)])
def test_every_elementwise_operation_keeps_nan(dtype, size):
    x = jnp.linspace(0.1, 0.9, size).astype(dtype)
    tried = 0
    for name, function in elementwise().items():
        for f in (lambda x: function(x * NAN), lambda x: function(x * NAN, x), lambda x: function(x, x * NAN)):
            try:
                with np.errstate(all="ignore"):
                    on_host = np.asarray(f(x))
            except (TypeError, ValueError):
                continue  # another number of operands, or parameters
            tried += 1
            compiled = np.asarray(gradix.jit(f)(x))
            np.testing.assert_array_equal(np.isnan(compiled), np.isnan(on_host), err_msg=name)
    assert tried > 40


@pytest.mark.parametrize("source", SOURCES)
def test_wherever_the_nan_comes_from(source, dtype):
    for shape in ((), (3, 4)):
        x = jnp.full(shape, 0.5, dtype)
        for f in (jnp.exp, nn.sigmoid, lambda x: nn.softmax(x.ravel())):
            same(lambda x: f(SOURCES[source](x)), x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whatever_is_computed_of_nan(name, dtype):
    for shape in ((2, 3), (70, 64))[: 1 if dtype == "float16" else 2]:
        same(lambda x: FUNCTIONS[name](x * NAN), jnp.full(shape, 0.5, dtype))


def test_in_fresh_processes():
    program = (
        "import numpy as np, gradix, gradix.numpy as jnp; "
        "print(gradix.jit(lambda x: [f(x * np.nan) for f in (jnp.exp, jnp.sinh, jnp.cosh, gradix.nn.sigmoid)])(.5))"
    )
    for _ in range(2):
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert out.count("nan") == 4
