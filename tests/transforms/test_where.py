"""Gradients through selections stay finite where the side that is not selected is not."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


def eye(x):
    return x


# name -> (function, point, derivative): the derivative of what is selected, zero from the other side.
SCALARS = {
    "root": (lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), 0.0, 0.0),
    "logarithm": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), 0.0, 0.0),
    "selected side": (lambda x: jnp.where(x < 1, x, jnp.sqrt(x)), 0.0, 1.0),
    "arctan2": (lambda x: jnp.where(x == 0, 0.0, jnp.arctan2(x, x)), 0.0, 0.0),
    "product with a logarithm": (lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0), 0.0, 0.0),
    "logarithm of a root": (lambda x: jnp.where(x > 0, jnp.log(jnp.sqrt(x)), 0.0), 0.0, 0.0),
    "quotient": (lambda x: jnp.where(x == 0, 1.0, jnp.sin(x) / x), 0.0, 0.0),
    "power": (lambda x: jnp.where(x > 0, x**0.5, 0.0), 0.0, 0.0),
    "negative power": (lambda x: jnp.where(x > 0, x**-2, 0.0), 0.0, 0.0),
    "arcsine": (lambda x: jnp.where(x < 1, jnp.arcsin(x), 2.0), 1.0, 0.0),
    "arctanh": (lambda x: jnp.where(x < 1, jnp.arctanh(x), 2.0), 1.0, 0.0),
    "overflow": (lambda x: jnp.where(x > 20, x, jnp.log(1 + jnp.exp(x))), 200.0, 1.0),
    "select": (lambda x: lax.select(x > 0, jnp.sqrt(x), x), 0.0, 1.0),
    "select_n": (lambda x: lax.select_n(jnp.int32(1), jnp.sqrt(x), 3 * x, jnp.log(x)), 0.0, 3.0),
    "maximum": (lambda x: jnp.maximum(jnp.log(x), -1.0), 0.0, 0.0),
    "clip": (lambda x: jnp.clip(jnp.log(x), -1.0, 1.0), 0.0, 0.0),
    "nested": (lambda x: jnp.where(x > -1, jnp.where(x > 0, jnp.sqrt(x), 2 * x), jnp.log(x)), 0.0, 2.0),
    "nested the other way": (lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 1, x, x * x)), x), 0.0, 1.0),
    "inside a jitted call": (gradix.jit(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)), 0.0, 0.0),
    "of a jitted call": (lambda x: jnp.where(x > 0, gradix.jit(jnp.sqrt)(x), 0.0), 0.0, 0.0),
    "root of a jitted call": (lambda x: jnp.where(x > 0, jnp.sqrt(gradix.jit(lambda x: x * x)(x)), x), 0.0, 1.0),
    "checkpointed": (gradix.checkpoint(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)), 0.0, 0.0),
    "of a branch": (lambda x: jnp.where(x > 0, lax.cond(x > -1, jnp.sqrt, jnp.sin, x), 0.0), 0.0, 0.0),
    "in a branch": (lambda x: lax.cond(x > -1, lambda x: jnp.where(x > 0, jnp.sqrt(x), x), jnp.sin, x), 0.0, 1.0),
    "in a scan": (
        lambda x: lax.scan(lambda c, _: (jnp.where(c > 0, jnp.sqrt(c), 2 * c), None), x, None, length=3)[0],
        0.0,
        8.0,
    ),
    "of a scan": (
        lambda x: jnp.where(x > 0, lax.scan(lambda c, _: (jnp.sqrt(c), None), x, None, length=3)[0], x),
        0.0,
        1.0,
    ),
    "in a while_loop": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.where(s[1] > 0, jnp.sqrt(s[1]), 2 * s[1])), (0, x)
        )[1],
        0.0,
        8.0,
    ),
    "at both ends": (lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0) + jnp.where(x > 0, jnp.log(x), x), 0.0, 1.0),
    "norm": (lambda x: jnp.where(x != 0, jnp.linalg.norm(x * jnp.array([3.0, 4.0])), 0.0), 0.0, 0.0),
}
ARRAYS = {
    "elements": (lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum(), [0.0, 4.0], [0.0, 0.25]),
    "norm": (lambda x: jnp.where((x != 0).any(), jnp.sqrt((x * x).sum()), 0.0), [0.0, 0.0], [0.0, 0.0]),
    "norm of rows": (
        lambda x: jnp.where((x != 0).any(-1), jnp.sqrt((x * x).sum(-1)), 0.0).sum(),
        [[0.0, 0.0], [3.0, 4.0]],
        [[0.0, 0.0], [0.6, 0.8]],
    ),
    "normalised rows": (
        lambda x: jnp.where((x != 0).any(-1, keepdims=True), x / jnp.sqrt((x * x).sum(-1, keepdims=True)), 0.0)[
            :, 0
        ].sum(),
        [[0.0, 0.0], [3.0, 4.0]],
        [[0.0, 0.0], [0.128, -0.096]],
    ),
    "moved": (lambda x: jnp.where(x[::-1].T > 0, jnp.log(x).T[:, ::-1], 0.0).sum(), [[0.0, 2.0]], [[0.0, 0.5]]),
    "entropy": (lambda p: -jnp.where(p > 0, p * jnp.log(p), 0.0).sum(), [0.0, 1.0], [0.0, -1.0]),
    "mean over a part": (
        lambda x: jnp.where(x > 0, jnp.log(x), 0.0).sum() / jnp.maximum((x > 0).sum(), 1),
        [0.0, 2.0],
        [0.0, 0.5],
    ),
    "indexed": (
        lambda x: jnp.where(x[jnp.array([1, 0])] > 0, jnp.log(x)[jnp.array([1, 0])], 0.0).sum(),
        [0.0, 2.0],
        [0.0, 0.5],
    ),
    "joined": (
        lambda x: jnp.where(jnp.concatenate([x, x]) > 0, jnp.concatenate([jnp.sqrt(x), x]), 0.0).sum(),
        [0.0, 4.0],
        [0.0, 1.25],
    ),
    "piecewise": (
        lambda x: jnp.piecewise(x, [x <= 0, x > 0], [lambda x: 2 * x, jnp.sqrt]).sum(),
        [0.0, 4.0],
        [2.0, 0.25],
    ),
    "select": (lambda x: jnp.select([x <= 0], [x], jnp.sqrt(x)).sum(), [0.0, 4.0], [1.0, 0.25]),
    "of a scan over rows": (
        lambda x: jnp.where(x > 0, lax.scan(lambda c, r: (c, jnp.log(r)), 0.0, x)[1], 0.0)[1],
        [2.0, 4.0],
        [0.0, 0.25],
    ),
    "mapped branch": (
        lambda x: gradix.vmap(lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: 2 * x, x))(x).sum(),
        [0.0, 4.0],
        [2.0, 0.25],
    ),
}
# A selection of scans per example: what it cuts is known of a scan's result only as a whole.
NOT_MAPPED = {"of a scan"}
# The second derivative leaves the program in which the selection stands, and with it what is known of it.
ONCE = {"in a branch", "in a scan", "in a while_loop"}
CASES = {**SCALARS, **{"array: " + k: v for k, v in ARRAYS.items()}}


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name):
    f, x, want = CASES[name]
    x, want = jnp.asarray(x), np.asarray(want)
    vmapped = gradix.vmap(gradix.grad(f))(jnp.stack([x, x]))
    mapped = [want] * 2 if name in NOT_MAPPED else gradix.grad(lambda xs: gradix.vmap(f)(xs).sum())(jnp.stack([x, x]))
    for got in (
        gradix.grad(f)(x),
        gradix.grad(gradix.jit(f))(x),
        gradix.jit(gradix.grad(gradix.jit(f)))(x),
        gradix.jacfwd(f)(x),
        vmapped[0],
        mapped[1],
        gradix.grad(gradix.checkpoint(f))(x),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ONCE])
def test_second_derivatives_are_finite_and_agree(name):
    f, x, _ = CASES[name]
    x = jnp.asarray(x)
    want = gradix.jacfwd(gradix.jacfwd(f))(x)
    assert np.isfinite(want).all()
    for second in (
        gradix.jacfwd(gradix.grad(f)),
        gradix.jacrev(gradix.grad(f)),
        gradix.jit(gradix.jacrev(gradix.grad(f))),
        gradix.jacrev(gradix.jacfwd(f)),
    ):
        np.testing.assert_allclose(second(x), want, rtol=1e-4, atol=1e-5)


def test_a_zero_cotangent_that_nothing_cut_keeps_its_second_derivative():
    f = lambda x: jnp.where(x > -0.5, jnp.log(1 + x), 0.0) ** 2
    assert float(gradix.grad(f)(0.0)) == 0.0
    for second in (gradix.jacfwd(gradix.grad(f)), gradix.jacrev(gradix.grad(f)), gradix.hessian(f)):
        np.testing.assert_allclose(second(0.0), 2.0, rtol=1e-6)


def test_what_is_selected_keeps_its_singularities():
    assert np.isinf(gradix.grad(lambda x: jnp.where(x >= 0, jnp.sqrt(x), 0.0))(0.0))
    assert np.isnan(gradix.grad(lambda x: jnp.sqrt(x * x))(0.0))


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


TOTAL = {
    "leaky relu": lambda x: jnp.where(x > 0, x, 0.1 * x).sum(),
    "gated": lambda x: jnp.where(x > 0, jnp.tanh(x) * jnp.sin(x), gradix.nn.sigmoid(x)).sum(),
    "mean": lambda x: jnp.where(x > 0, x * x / 3, x).mean(),
    "layers": lambda x: (jnp.maximum(x @ jnp.ones((3, 3)), 0.0) @ jnp.ones((3, 3)) * jnp.cos(x).sum()).sum(),
}


@pytest.mark.parametrize("name", TOTAL)
def test_programs_without_singularities_are_as_before(name):
    """One selection in reverse for each case that has a derivative, and none to guard a coefficient."""
    f, x = TOTAL[name], jnp.ones(3)
    forward = names(gradix.make_jaxpr(lambda x, t: gradix.linearize(f, x)[1](t))(x, x))
    backward = names(gradix.make_jaxpr(gradix.grad(f))(x))
    cases = sum(
        [
            type(v).__name__ != "Literal"
            for e in gradix.make_jaxpr(f)(x).eqns
            if e.primitive.name == "select_n"
            for v in e.invars[1:]
        ]
    )
    assert forward.count("select_n") <= backward.count("select_n") <= forward.count("select_n") + cases + 2
    assert not {"not", "and", "or"} & set(backward)
