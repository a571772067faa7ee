"""Loops of small operations: XLA:CPU makes one function of them, with the same results, and leaves the others alone."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._platforms.cpu import compiling
from gradix._runtime import program, xla

MARK = "xla_cpu_small_call"


def _scalars(v):
    def step(s, t):
        s = tuple(0.9 * a + 0.05 * jnp.tanh(s[(i + 3) % 12] * t) for i, a in enumerate(s))
        return s, sum(s)

    return lax.scan(step, tuple(v[i] for i in range(12)), jnp.linspace(0, 1, 50))[1]


def _filter(v):
    a, h = jnp.eye(4) * 0.9, jnp.ones((2, 4)) * 0.1

    def step(c, z):
        m, p = c
        p = a @ p @ a.T + 0.01 * jnp.eye(4)
        k = p @ h.T
        m = a @ m + k @ (z - h @ (a @ m))
        return (m, p - 0.1 * k @ h @ p), m.sum()

    return lax.scan(step, (v[:4], jnp.eye(4)), jnp.ones((30, 2)))[1]


LOOPS = {
    "scalars": _scalars,
    "gradient of scalars": lambda v: gradix.grad(lambda v: _scalars(v).sum())(v),
    "filter": _filter,
    "gradient of the filter": lambda v: gradix.grad(lambda v: _filter(v).sum())(v),
    "while": lambda v: lax.while_loop(lambda s: s[0] < 20, lambda s: (s[0] + 1, jnp.sin(s[1]) + v), (0, v))[1],
    "vmapped while": lambda v: gradix.vmap(
        lambda x: lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 1.1, s[1] + s[0]), (x, x))[0]
    )(v + 0.1),
    "cond inside": lambda v: lax.fori_loop(0, 20, lambda i, s: lax.cond(i % 2 == 0, jnp.sin, jnp.cos, s), v),
    "update of a row": lambda v: lax.fori_loop(0, 12, lambda i, s: s.at[i].set(s[i - 1] * 0.5 + 1), v),
    "random": lambda v: lax.scan(
        lambda k, _: (gradix.random.split(k)[0], gradix.random.uniform(k)), gradix.random.key(0), None, length=20
    )[1],
    "sort inside": lambda v: lax.fori_loop(0, 5, lambda _, s: jnp.sort(s * 1.7 % 1), v),
    "cumulative sum inside": lambda v: lax.fori_loop(0, 5, lambda _, s: jnp.cumsum(s) * 0.1, v),
    "transform inside": lambda v: lax.fori_loop(0, 3, lambda _, s: jnp.abs(jnp.fft.fft(s)).astype(s.dtype) * 0.1, v),
    "product inside": lambda v: lax.fori_loop(0, 9, lambda _, s: jnp.tanh(s @ s), jnp.outer(v, v)),
    "large product inside": lambda v: lax.fori_loop(
        0, 2, lambda _, s: jnp.tanh(s @ s), jnp.outer(jnp.tile(v, 20), jnp.tile(v, 20))
    ),
    "integers": lambda v: lax.fori_loop(0, 30, lambda i, s: (s * 1103515245 + i) % 1000, jnp.arange(12)),
    "loop in a loop": lambda v: lax.fori_loop(0, 4, lambda i, s: lax.fori_loop(0, i, lambda j, r: r * 0.5 + j, s), v),
}


def _run(function, v, options, monkeypatch):
    with monkeypatch.context() as m:
        m.setattr(program.xla, "options", lambda **kw: options)
        closed = gradix.make_jaxpr(function)(v)
        made = program.Program(closed, "loop")
        return [np.asarray(r) for r in made([v])]


@pytest.mark.parametrize("name", LOOPS)
def test_results_are_those_of_plain_loops(name, monkeypatch):
    function, v = LOOPS[name], jnp.linspace(0.1, 0.9, 12)
    plain = _run(function, v, xla.Options(small_loops=False), monkeypatch)
    ours = gradix.jit(function)(v)
    for a, b in zip(plain, gradix.tree.leaves(ours)):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.x32
@pytest.mark.rewritten
@pytest.mark.parametrize(
    "name,small",
    [
        ("scalars", True),
        ("gradient of scalars", True),
        ("filter", True),
        ("product inside", True),
        ("large product inside", False),
        ("sort inside", False),
    ],
)
def test_small_loops_are_one_function(name, small, has_flag):
    if not xla.honours_small_loops():
        pytest.skip("this XLA has no such option")
    text = gradix.jit(LOOPS[name]).lower(jnp.linspace(0.1, 0.9, 12)).compile().as_text()
    if small and " dot(" in text and not has_flag("xla_cpu_use_fusion_emitters", False):
        pytest.skip("this XLA, newer than that flag, keeps loops with products apart")
    assert (MARK in text) is small


@pytest.mark.x32
def test_products_are_kept_small_only_in_loops_and_only_if_all_are():
    def wanted(function, *shapes):
        facts = gradix.jit(function).lower(*[jnp.ones(s) for s in shapes])._module.facts
        return compiling.has_loops_of_small_products(facts, 2)

    def loop(body):
        return lambda v: lax.fori_loop(0, 3, lambda _, s: body(s), v)

    assert wanted(loop(lambda s: s @ s), (8, 8)) and wanted(loop(lambda s: s @ s), (16, 16))
    assert not wanted(loop(lambda s: s @ s), (32, 32))
    assert not wanted(lambda a: a @ a, (8, 8))
    assert not wanted(loop(lambda s: s * 2), (8, 8))
    assert not wanted(lambda a, b: (loop(lambda s: s @ s)(a), b @ b), (8, 8), (64, 64))
    assert wanted(gradix.jit(loop(lambda s: gradix.jit(lambda t: t @ t)(s))), (8, 8))
    assert not wanted(loop(lambda s: (s.astype(int) @ s.astype(int)).astype(s.dtype)), (8, 8))
