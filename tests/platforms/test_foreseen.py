"""Exponentials are guarded against NaN where a compiler may foresee it, and only there."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
CAPTURED = np.where(X > 1, np.nan, X)
pytestmark = pytest.mark.x32


def masked_scores(x):
    return nn.softmax(jnp.where(jnp.arange(6) < x[:, :1], x, -jnp.inf))


def carried(x):
    return lax.scan(lambda c, row: (jnp.exp(c - row), None), jnp.zeros(6), x)[0]


def placed(x):
    return jnp.exp(x * (jnp.arange(6.0) * 0.5 - 1.0))


UNGUARDED = {
    "exp": jnp.exp,
    "softmax": nn.softmax,
    "masked softmax": masked_scores,
    "sigmoid": nn.sigmoid,
    "gradient": gradix.grad(lambda x: (nn.softmax(x @ x.T) ** 2).sum()),
    "attention": gradix.grad(
        lambda x: (nn.softmax(jnp.where(jnp.tril(jnp.ones((4, 4), bool)), x @ x.T / 2.5, -jnp.inf)) @ x).sum()
    ),
    "without readers": lambda x: (jnp.full(6, np.nan) + x, jnp.exp(x))[1],
    "called": lambda x: gradix.jit(jnp.expm1)(x),
}
GUARDED = {
    "nan": lambda x: jnp.exp(x * np.float32(np.nan)),
    "largest with nan": lambda x: jnp.exp(jnp.maximum(x, np.nan)),
    "difference of infinities": lambda x: jnp.exp(x + (jnp.full(6, jnp.inf) - jnp.full(6, jnp.inf))),
    "quotient of zeros": lambda x: jnp.exp(x + jnp.zeros(6) / jnp.zeros(6)),
    "infinity": lambda x: jnp.exp((x + jnp.inf) - jnp.inf),
    "root": lambda x: jnp.exp(x * jnp.sqrt(jnp.full(6, -1.0))),
    "captured": lambda x: jnp.exp(x + CAPTURED),
    "from a loop": lambda x: lax.scan(lambda c, row: (jnp.exp(c + row), None), jnp.full(6, np.nan), x)[0],
    "in a loop": lambda x: lax.scan(lambda c, row: (jnp.exp(c + np.nan), None), x[0], x)[0],
    "in a function": lambda x: gradix.jit(lambda y: jnp.exp(y * np.nan))(x),
    "quotient of products": lambda x: jnp.exp(x * 0.0 / 0.0),
    "product of quotients": lambda x: jnp.exp(x / 0.0 * 0.0),
    "overflow of factors": lambda x: jnp.exp(x * np.float32(1e38) * np.float32(1e38) * 0.0),
    "underflow of a divisor": lambda x: jnp.exp(x / np.float32(1e-40) * 0.0),
    "zeros of an iota": lambda x: jnp.exp(x * 0.0 / (jnp.arange(6) * 0).astype(x.dtype)),
    "broadcast zeros": lambda x: jnp.exp(x * jnp.full_like(x, 0.0) / jnp.full_like(x, 0.0)),
    "logarithm of what is negative": lambda x: jnp.exp(jnp.log(-1.0 - x * x)),
    "picked zeros": lambda x: jnp.exp(x * jnp.where(x > 0, 0.0, 0.0) / jnp.where(x > 1, 0.0, 0.0)),
    "picked infinities": lambda x: jnp.exp(jnp.where(x > 0, jnp.inf, -jnp.inf) * jnp.where(x > 9, 0.0, 0.0)),
    "sum of picked zeros": lambda x: jnp.exp(x + jnp.sum(x * jnp.where(x > 9, 0.0, 0.0)) / jnp.where(x > 1, 0.0, 0.0)),
    "the larger of infinity": lambda x: jnp.exp(jnp.maximum(x, jnp.inf) - jnp.maximum(x + 1, jnp.inf)),
    "overflow of summands": lambda x: jnp.exp((x + 3e38 + 3e38) - (2 * x + 3e38 + 3e38)),
    "into a function": lambda x: gradix.jit(jnp.sinh)(jnp.full(6, np.nan)) + x,
}
# Guarded since it is not known that nothing gives NaN.
CAREFUL = {"loop": carried, "places": placed, "log-sum-exp": nn.logsumexp}
AS_ARGUMENTS = {"captured"}  # captured arrays are arguments of the compiled program


def is_guarded(f) -> bool:
    text = gradix.jit(f).lower(X).as_text()
    return any("compare" in line and "EQ" in line and "FLOAT" in line for line in text.splitlines())


@pytest.mark.parametrize("name", UNGUARDED)
def test_without_such_constants_there_is_no_guard_and_arguments_keep_their_nan(name):
    f = UNGUARDED[name]
    assert not is_guarded(f)
    x = X.copy()
    x[1, 2] = np.nan
    with gradix.disable_jit():
        want = np.asarray(f(x))
    assert (np.isnan(np.asarray(gradix.jit(f)(x))) == np.isnan(want)).all()
    assert np.isnan(want).any()


@pytest.mark.parametrize("name", CAREFUL)
def test_what_is_not_known_is_guarded(name):
    assert is_guarded(CAREFUL[name])


@pytest.mark.parametrize("name", GUARDED)
def test_where_nan_may_be_foreseen_the_result_is_nan(name):
    f = GUARDED[name]
    assert is_guarded(f) or name in AS_ARGUMENTS
    got = np.asarray(gradix.jit(f)(X))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(CAPTURED) if name == "captured" else True)
