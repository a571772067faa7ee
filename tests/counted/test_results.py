"""Results whose sizes values decide, as they reach Python: they are cut without programs, and without harm to others."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._runtime import xla

N = 400_000  # more elements than operations on the host take


@pytest.fixture
def compiled(monkeypatch):
    """The texts of the programs that are compiled from here on."""
    texts, compile = [], xla.compile

    def counting(text, *args, **kwargs):
        texts.append(text)
        return compile(text, *args, **kwargs)

    monkeypatch.setattr(xla, "compile", counting)
    return texts


ROWS = {
    "elements": (lambda x, m: x[m], lambda x, m: x[m]),
    "rows": (lambda x, m: x.reshape(-1, 2)[m[::2]], lambda x, m: x.reshape(-1, 2)[m[::2]]),
    "columns": (lambda x, m: x.reshape(2, -1)[:, m[::2]], lambda x, m: x.reshape(2, -1)[:, m[::2]]),
    "a part": (lambda x, m: x[m][1:], lambda x, m: x[m][1:]),
    "of bfloat16": (lambda x, m: x.astype("bfloat16")[m], lambda x, m: x.astype(jnp.bfloat16.dtype)[m]),
}


@pytest.mark.parametrize("name", ROWS)
def test_no_size_compiles_a_program_of_its_own(name, compiled):
    f, meant = gradix.jit(ROWS[name][0]), ROWS[name][1]
    x, order = np.arange(N, dtype=np.float32), np.arange(N)
    f(x, order < 9)
    before = len(compiled)
    for n in (0, 1, 10, 1000, 7000, 310_000, N - 2, N):
        np.testing.assert_array_equal(np.asarray(f(x, order < n)), meant(x, order < n))
    assert len(compiled) == before


def test_a_result_that_is_donated_takes_nothing_from_views():
    f = gradix.jit(lambda x: x[x > 9])
    g = gradix.jit(lambda y: y * 2, donate_argnums=0)
    x = jnp.arange(float(N))
    y = f(x)
    view = np.asarray(y)
    meant = view.copy()
    out = g(y)
    np.testing.assert_array_equal(view, meant)
    np.testing.assert_array_equal(out, 2 * meant)
    assert y.is_deleted() and not view.flags.writeable


def test_few_elements_do_not_keep_the_whole_buffer():
    f = gradix.jit(lambda x, n: x[x < n])
    x = jnp.arange(float(N))
    few, many = f(x, 10.0).host, f(x, N - 10.0).host
    assert few.base is None and many.base is not None


TREES = {
    "one": lambda x: x[x > 0],
    "a tree": lambda x: {"some": (x[x > 0], x.sum()), "others": [x[x < 0], None]},
    "sizes made of counts": lambda x: (
        x[x > 0][1:],
        jnp.concatenate([x[x > 0], x[x < 0]]),
        jnp.outer(x[x > 0], x[x < 0]),
    ),
    "a node of users": lambda x: gradix.tree_util.Partial(len, x[x > 0]),
    "none of elements": lambda x: x[x > 9],
}


@pytest.mark.parametrize("kind", [jnp.asarray, np.asarray], ids=["arrays", "NumPy"])
@pytest.mark.parametrize("name", TREES)
def test_warm_calls_cut_as_the_first(name, kind):
    f, rng = gradix.jit(TREES[name]), np.random.default_rng(0)
    values = [np.float32(3 * rng.normal(size=6)) for _ in range(3)]
    values += [np.zeros(6, np.float32), np.ones(6, np.float32), np.float32([0, 0, 0, 0, 0, 2])]
    cold = [f(kind(x)) for x in values[:2]]
    for x in 2 * values:
        f(kind(x))
    assert f._fast
    warm = [f._first((kind(x),), {}) for x in values]
    cold += [gradix.jit(TREES[name])(kind(x)) for x in values[2:]]
    for a, b in zip(cold, warm, strict=True):
        assert gradix.tree.structure(a) == gradix.tree.structure(b)
        for x, y in zip(gradix.tree.leaves(a), gradix.tree.leaves(b), strict=True):
            assert x.aval is y.aval
            np.testing.assert_array_equal(x, y)
