"""Results whose sizes values decide, as they reach Python: they are cut without programs, and without harm to others."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._core.jaxpr import holds
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


# -- what a selection reads and writes -------------------------------------------------------------


def lowered(f, n=N) -> str:
    return gradix.jit(f).lower(gradix.ShapeDtypeStruct((n,), "float32")).as_text()


@pytest.mark.parametrize(
    "f", [lambda x: x[x > 0], lambda x: jnp.nonzero(x > 0)[0], lambda x: jnp.nonzero(x > 0, size=N, fill_value=7)[0]]
)
@pytest.mark.parametrize("n", [50, N])
def test_places_and_their_number_are_found_together(f, n):
    text = lowered(f, n)
    assert len(re.findall(r"= stablehlo.compare  ?GT", text)) == 1
    if n == N:  # a native loop finds both
        assert "@places" in text and "@blocks" not in text and "stablehlo.reduce" not in text


def test_where_the_number_alone_is_used_no_places_are_written():
    for f in (lambda x: x[x > 0].sum(), lambda x: x[x > 0].mean(), lambda x: jnp.arange(5) + x[x > 0].shape[0]):
        text = lowered(f)
        assert "places" not in text and "scatter" not in text
    assert int(gradix.jit(lambda x: jnp.asarray(x[x > 0].shape[0]))(jnp.arange(-2.0, 7))) == 6


def test_the_number_of_places_counts_those_beyond_the_size():
    x = jnp.arange(60).reshape(3, 20) % 7 > jnp.array([[1], [3], [9]])
    f = lambda row: jnp.nonzero(row, size=4, fill_value=-1)[0]  # noqa: E731
    have = gradix.jit(gradix.vmap(f))(x)
    np.testing.assert_array_equal(have, [np.r_[np.flatnonzero(r)[:4], [-1] * 4][:4] for r in np.asarray(x)])


@pytest.mark.parametrize("f", [jnp.cumsum, jnp.sort])
def test_what_lies_past_a_result_is_not_written(f):
    """The host, and programs that take it, read the elements alone."""
    selected = gradix.make_jaxpr(gradix.jit(lambda x: f(x[x > 0])))(jnp.ones(4))
    assert holds(selected.jaxpr, lambda e: e.primitive.name == "buffer")
    assert not holds(selected.jaxpr, lambda e: e.primitive.name == "whole")


# -- options that look for NaN ---------------------------------------------------------------------


@pytest.fixture
def looking_for_nan():
    gradix.config.update("jax_debug_nans", True)
    yield
    gradix.config.update("jax_debug_nans", False)


def _with_programs_inside(x):
    y = lax.scan(lambda c, v: (c + v, c * v), 0.0, x[x > 0])[1]
    z = gradix.jit(lambda y: y[y > 1] * y.shape[0])(y)
    return jnp.log(4 - z).sum() / z.shape[0]


def _roots(x):
    return jnp.sqrt(x[x > 0] - 2)


def test_elements_past_a_result_are_no_nan(looking_for_nan):
    x = jnp.array([3.0, -1.0, 4.0, -2.0, 5.0])
    for f in (_roots, lambda x: jnp.sort(jnp.log(x[x > 0])), lambda x: gradix.jit(_roots)(x)[:1]):
        want = f(x)
        np.testing.assert_allclose(gradix.jit(f)(x), want, rtol=1e-6)
        np.testing.assert_allclose(
            gradix.grad(lambda x: gradix.jit(f)(x).sum())(x), gradix.grad(lambda x: f(x).sum())(x)
        )


@pytest.mark.parametrize("f, name", [(_roots, "sqrt"), (_with_programs_inside, "log")])
def test_the_operation_that_gave_a_nan_is_named(f, name, looking_for_nan):
    x = jnp.array([1.0, -2.0, 3.0, -4.0, 5.0])
    with pytest.raises(
        FloatingPointError, match=rf"encountered in {name}\..*comes from {name} of float32\[.*test_results.py:\d+:"
    ):
        gradix.jit(f)(x)


def test_results_that_were_traced_before_are_looked_at_too():
    f = gradix.jit(_roots)
    x = jnp.array([3.0, -1.0, 4.0])
    want = np.asarray(f(x))
    gradix.config.update("jax_debug_nans", True)
    try:
        np.testing.assert_array_equal(f(x), want)
    finally:
        gradix.config.update("jax_debug_nans", False)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: gradix.random.choice(gradix.random.key(1), x, (4,)),
        lambda x: gradix.random.choice(gradix.random.key(1), x, (2,), replace=False),
        lambda x: gradix.random.choice(gradix.random.key(1), x, (4,), p=x / x.sum()),
        lambda x: gradix.random.choice(gradix.random.key(1), x, (2,), p=x / x.sum(), replace=False),
        lambda x: gradix.random.choice(gradix.random.key(1), jnp.outer(x, x), (2,), replace=False, axis=1),
        lambda x: gradix.random.choice(gradix.random.key(1), x, x.shape, replace=False),
        lambda x: gradix.random.choice(gradix.random.key(1), x.shape[0], (4,)),
        lambda x: gradix.random.choice(gradix.random.key(1), x.shape[0], (2,), replace=False),
    ],
)
def test_choices_among_elements(f):
    """Their number is known when the program runs, and decides no error when it is traced."""
    x = np.array([0.7, -0.4, 0.9, -0.6, 1.2, 0.3], np.float32)
    compiled = gradix.jit(lambda x, m: f(x[m]))
    for m in (x > 0, x > 0.8):
        np.testing.assert_array_equal(compiled(x, m), f(jnp.asarray(x[m])))
